#include "easydel/models/router_loss.h"

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/zeros.h>

#include <string_view>

#include "easydel/ops/routing.h"

namespace easydel::models {
namespace {

// The extras of that name, from every layer ("router_logits.3", "attention_router_logits.3").
std::vector<Tensor> of_name(const Outputs& outputs, std::string_view wanted) {
  std::vector<Tensor> found;
  for (const auto& [name, tensor] : outputs.extras)
    if (std::string_view(name).substr(0, name.rfind('.')).ends_with(wanted)) found.push_back(tensor);
  return found;
}

}  // namespace

std::vector<Tensor> router_logits(const Outputs& outputs) { return of_name(outputs, "router_logits"); }

RouterTerms router_terms(const Model& model, const Outputs& outputs, nn::Pass& pass, const Tensor& counts) {
  const RouterLoss loss = model.router_loss().value();
  const std::vector<Tensor> logits = router_logits(outputs);
  RouterTerms terms;
  if (loss.logit_z > 0.0) {
    const Tensor any =
        at::zeros({outputs.hidden.size(0)}, at::TensorOptions().dtype(at::kLong).device(outputs.hidden.device()));
    const Tensor squares =
        model.head().score(outputs.hidden, any, pass, {.log_normalizer = true}).log_normalizer.square();
    terms.z = squares.mean();
    terms.sum = terms.z * loss.logit_z;
    return terms;
  }
  if (logits.empty()) return terms;
  terms.balance = ops::load_balancing_loss(logits, loss.top_k, counts);
  terms.sum = terms.balance * loss.coefficient;
  if (loss.z_coefficient == 0.0) return terms;
  terms.z = ops::router_z_loss(logits, counts);
  terms.sum = terms.sum + terms.z * loss.z_coefficient;
  return terms;
}

std::optional<RouterStatistics> router_statistics(const Outputs& outputs) {
  const at::NoGradGuard no_gradient;
  const std::vector<Tensor> logits = router_logits(outputs), met = of_name(outputs, "expert_tokens");
  if (logits.empty() || met.empty()) return std::nullopt;
  RouterStatistics out;
  for (const Tensor& layer : logits) {
    const Tensor logs = at::log_softmax(layer.to(at::kFloat), -1);
    out.entropy -= (logs.exp() * logs).sum(-1).mean().item<double>() / double(logits.size());
  }
  for (const Tensor& layer : met) {
    const Tensor tokens = layer.to(at::kDouble);
    out.busiest_load += (tokens.max() / tokens.mean().clamp_min(1e-9)).item<double>() / double(met.size());
    out.idle_experts += tokens.eq(0).to(at::kDouble).mean().item<double>() / double(met.size());
  }
  return out;
}

}  // namespace easydel::models
