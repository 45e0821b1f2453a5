#include "easydel/ops/routing.h"

#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

#include "easydel/base/error.h"
#include "easydel/ops/activation.h"

namespace easydel::ops {
namespace {

constexpr double excluded = -std::numeric_limits<double>::infinity();

Tensor best(const Tensor& scores, int64_t count) { return std::get<1>(at::topk(scores, count, -1)); }

// Experts outside the best groups cannot be chosen.
Tensor within_groups(const Tensor& scores, const RouterSpec& spec) {
  if (spec.top_groups >= spec.groups) return scores;
  const int64_t size = spec.experts / spec.groups;
  const Tensor grouped = scores.view({-1, spec.groups, size});
  const Tensor worth =
      spec.two_for_a_group ? std::get<0>(at::topk(grouped, std::min<int64_t>(2, size), -1)).sum(-1) : grouped.amax(-1);
  const Tensor in =
      at::zeros_like(worth, at::TensorOptions().dtype(at::kBool)).scatter_(1, best(worth, spec.top_groups), true);
  const Tensor out = in.logical_not().unsqueeze(-1).expand_as(grouped).reshape(scores.sizes());
  return scores.masked_fill(out, excluded);
}

// One choice of the sparse mixer: the best of `left`, weighted among those of `left` within twice the jitter. With lots
// [tokens, experts + 1], one of those is sampled in proportion to its weight (Gumbel). If it is not the best, three out
// of four count a third, and gradients flow as if they counted fully (Heun's third order).
std::pair<Tensor, Tensor> mix_one(const Tensor& scores, const Tensor& left, double jitter, const Tensor& lots) {
  Tensor chosen, far;
  {
    const at::NoGradGuard no_gradient;
    const auto [most, index] = left.max(-1, true);
    chosen = index;
    far = ((most - scores) / at::maximum(scores.abs(), most)) > 2 * jitter;
  }
  const Tensor near = left.masked_fill(far, excluded), weights = at::softmax(near, -1);
  if (!lots.defined()) return {chosen, weights.gather(-1, chosen)};
  const Tensor waits = lots.narrow(1, 0, scores.size(1)).neg().log1p().neg();  // exponentially distributed
  const Tensor drawn = (near.detach() - waits.log()).argmax(-1, true), weight = weights.gather(-1, drawn);
  const Tensor whole = drawn.eq(weights.argmax(-1, true)).logical_or(lots.narrow(1, scores.size(1), 1).gt(0.75));
  const Tensor counts = whole.to(weight.scalar_type()) * 0.6667 + 0.3333;
  return {drawn, weight + (weight * (counts - 1)).detach()};
}

Routing sparse_mixer(const Tensor& scores, const RouterSpec& spec, const Tensor& lots) {
  std::vector<Tensor> indices, weights;
  Tensor left = scores;
  const int64_t each = spec.experts + 1;
  for (int64_t i = 0; i < spec.top_k; ++i) {
    auto [index, weight] =
        mix_one(scores, left, spec.jitter, lots.defined() ? lots.narrow(1, i * each, each) : Tensor());
    left = left.scatter(-1, index, excluded);
    indices.push_back(index);
    weights.push_back(weight);
  }
  return {at::cat(indices, -1), at::cat(weights, -1)};
}

Tensor counted(const Tensor& per_token, const Tensor& counts) {
  return counts.defined() ? per_token * counts.to(per_token.scalar_type()).unsqueeze(-1) : per_token;
}

}  // namespace

int64_t lots_of(const RouterSpec& spec) {
  return spec.scoring == Scoring::sparsemixer ? spec.top_k * (spec.experts + 1) : 0;
}

Routing route(const Tensor& given, const RouterSpec& spec, const Tensor& correction, const Tensor& lots) {
  check(given.dim() == 2 && given.size(1) == spec.experts, "route: logits are ", given.sizes(), " for ", spec.experts,
        " experts");
  const Tensor logits = given.to(at::kFloat);
  Routing out;
  switch (spec.scoring) {
    case Scoring::sparsemixer:
      out = sparse_mixer(logits, spec, lots);
      break;
    case Scoring::softmax_of_chosen:
    case Scoring::sigmoid_of_chosen: {
      out.indices = best(logits.detach(), spec.top_k);
      const Tensor chosen = logits.gather(1, out.indices);
      out.weights =
          spec.scoring == Scoring::softmax_of_chosen ? at::softmax(chosen, -1) : activate(chosen, Activation::sigmoid);
      break;
    }
    case Scoring::softmax:
    case Scoring::sigmoid: {
      const Tensor scores =
          spec.scoring == Scoring::softmax ? at::softmax(logits, -1) : activate(logits, Activation::sigmoid);
      Tensor choice = scores.detach();
      if (correction.defined()) choice = choice + correction.detach().to(at::kFloat);
      out.indices = best(within_groups(choice, spec), spec.top_k);
      out.weights = scores.gather(1, out.indices);
      break;
    }
  }
  if (spec.normalise) {
    Tensor norm = spec.norm_order == 1.0
                      ? out.weights.sum(-1, true)
                      : at::linalg_vector_norm(out.weights, spec.norm_order, at::IntArrayRef{-1}, true);
    if (spec.norm_plus > 0) norm = norm + spec.norm_plus;
    if (spec.norm_least > 0) norm = norm.clamp_min(spec.norm_least);
    out.weights = out.weights / norm;
  }
  if (spec.factor != 1.0) out.weights = out.weights * spec.factor;
  return out;
}

Tensor tokens_of_experts(const Tensor& indices, int64_t experts) {
  return at::bincount(indices.flatten(), {}, experts).to(at::kFloat);
}

Tensor load_balancing_loss(const std::vector<Tensor>& logits, int64_t top_k, const Tensor& counts) {
  check(!logits.empty(), "load balancing: no router logits");
  const int64_t experts = logits.front().size(1);
  const auto options = at::TensorOptions().dtype(at::kFloat).device(logits.front().device());
  Tensor chosen = at::zeros({experts}, options), probability = at::zeros({experts}, options);
  Tensor rows = at::zeros({}, options);
  for (const Tensor& layer : logits) {
    const Tensor shares = at::softmax(layer.to(at::kFloat), -1);
    const Tensor picked = at::zeros_like(shares.detach()).scatter_(1, best(shares.detach(), top_k), 1.0);
    chosen = chosen + counted(picked, counts).sum(0);
    probability = probability + counted(shares, counts).sum(0);
    rows = rows + (counts.defined() ? counts.to(at::kFloat).sum() : at::ones({}, options) * layer.size(0));
  }
  return (chosen / rows * (probability / rows)).sum() * experts;
}

Tensor router_z_loss(const std::vector<Tensor>& logits, const Tensor& counts) {
  check(!logits.empty(), "router z-loss: no router logits");
  std::vector<Tensor> layers;
  for (const Tensor& layer : logits) {
    const Tensor squares = at::logsumexp(layer.to(at::kFloat), {-1}).square();
    if (!counts.defined()) {
      layers.push_back(squares.mean());
    } else {
      const Tensor weights = counts.to(at::kFloat);
      layers.push_back((squares * weights).sum() / weights.sum());
    }
  }
  return at::stack(layers).mean();
}

}  // namespace easydel::ops
