#include "easydel/nn/experts.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>

#include "easydel/base/error.h"
#include "easydel/nn/weight.h"
#include "easydel/ops/gradient.h"

namespace easydel::nn {
namespace {

enum class Half : uint8_t { first, second, whole };

std::string absolute(const Scope& scope, const std::string& name) { return (scope / name).path(); }

// Where such files hold one kind of weight. `shape` [experts, out, in], or [experts, out] of a bias; `half`: which part
// of a shared tensor it is; `stacked`: how many experts have a tensor of their own, if they have.
TensorSource source_of(const Scope& scope, const ExpertFiles& files, const std::string& name,
                       std::vector<int64_t> shape, Half half, bool flat_transposed, int64_t stacked) {
  TensorSource source;
  const bool bias = shape.size() == 2;
  const size_t slot = name.find("{}");
  source.stacked = slot != std::string::npos;
  if (source.stacked) {
    for (int64_t e = 0; e < stacked; ++e)
      source.tensors.push_back(absolute(scope, name.substr(0, slot) + std::to_string(e) + name.substr(slot + 2)));
  } else {
    source.tensors = {absolute(scope, name)};
  }
  if (half != Half::whole) {
    // The output dimension, as a dimension of the file tensor after it was transposed.
    const int64_t out = shape[1], dimension = source.stacked ? 0 : 1;
    source.dimension = dimension;
    source.step = files.interleaved ? 2 : 1;
    source.begin = half == Half::first ? 0 : files.interleaved ? 1 : out;
    source.end = files.interleaved ? 2 * out : source.begin + out;
    shape[1] *= 2;
  }
  source.shape.assign(shape.begin() + (source.stacked ? 1 : 0), shape.end());
  if (files.flat) {
    source.viewed = shape;
    source.transposed = flat_transposed;
    if (flat_transposed) std::swap(source.viewed[1], source.viewed[2]);
    source.shape = {source.viewed[0] * source.viewed[1], source.viewed[2]};
  } else if (files.packing == Packing::mxfp4 && !bias) {
    source.packing = files.packing;
    source.tensors = {absolute(scope, name + "_blocks"), absolute(scope, name + "_scales")};
  } else if (files.transposed && !bias) {
    source.transposed = true;
    std::swap(source.shape[source.shape.size() - 1], source.shape[source.shape.size() - 2]);
  }
  return source;
}

}  // namespace

std::vector<ExpertFiles> ExpertFiles::numbered() {
  return {each("experts", "w1", "w3", "w2"), fused("experts.gate_up_proj", "experts.down_proj")};
}

ExpertFiles ExpertFiles::each(const std::string& experts, const std::string& gate, const std::string& up,
                              const std::string& down) {
  const std::string one = experts + ".{}.";
  ExpertFiles files;
  files.gate = one + gate + ".weight", files.up = one + up + ".weight", files.down = one + down + ".weight";
  return files;
}

ExpertFiles ExpertFiles::fused(const std::string& gate_up, const std::string& down) {
  ExpertFiles files;
  files.gate = files.up = gate_up, files.down = down;
  return files;
}

std::vector<ExpertFiles> ExpertFiles::usual(const std::string& experts) {
  return {each(experts, "gate_proj", "up_proj", "down_proj"), fused(experts + ".gate_up_proj", experts + ".down_proj")};
}

ExpertLinear::ExpertLinear(const Scope& scope, int64_t experts, int64_t in, int64_t out, const Options& options) {
  const bool divided = options.region.divided() && options.split != Split::none;
  const bool by_output = options.split == Split::output;
  ParameterOptions weight{.split = options.split,
                          .initial = Initial::normal(options.deviation),
                          .easydel_name = "kernel",
                          .use = divided ? Use::part : Use::whole,
                          .use_dimension = by_output ? 1 : 2,
                          .sources = options.sources};
  weight_ = scope.parameter("weight", {experts, out, in}, Role::weight, weight);
  if (options.bias_sources.empty()) return;
  ParameterOptions bias{.split = by_output ? options.split : Split::none,
                        .initial = Initial::zeros(),
                        .use = divided && by_output ? Use::part : Use::whole,
                        .use_dimension = 1,
                        .sources = options.bias_sources};
  bias_ = scope.parameter("bias", {experts, out}, Role::bias, bias);
}

Tensor ExpertLinear::operator()(const Tensor& x, const ops::ExpertRows& rows, Pass& pass) const {
  const RowScope sorted(pass.stream(), rows.place.size(0), [&rows] { return rows.tokens(); });
  return weight_.entry().stack->product(x, rows.begin, bias_ ? bias_.value() : Tensor(), pass);
}

Experts::Experts(const Scope& scope, ExpertsSpec spec) : spec_(std::move(spec)), method_(scope.moe_method()) {
  // In a divided region every rank would add the biases and identities, which must be added once.
  if (!spec_.bias && spec_.identities == 0) region_ = Region(scope.team(), {spec_.inner});
  const int64_t experts = spec_.experts, inner = spec_.inner, size = spec_.size;
  const auto linear = [&](const char* name, std::string ExpertFiles::*file, std::string ExpertFiles::*bias_file,
                          int64_t in, int64_t out, Split split, double deviation) {
    // Checkpoints may hold gates of the identity experts; nothing reads them.
    const int64_t held = experts + (split == Split::input ? 0 : spec_.identities);
    ExpertLinear::Options options{split, deviation, region_, {}, {}};
    for (const ExpertFiles& files : spec_.files) {
      const bool down = split == Split::input;
      const auto half = [&](const std::string& a, const std::string& b) {
        return down || a != b || !spec_.gated ? Half::whole : file == &ExpertFiles::gate ? Half::first : Half::second;
      };
      for (const int64_t stacked : {held, experts}) {
        options.sources.push_back(
            source_of(scope, files, files.*file, {held, out, in}, half(files.gate, files.up), down, stacked));
        if (held == experts || !options.sources.back().stacked) break;
      }
      if (spec_.bias)
        options.bias_sources.push_back(
            source_of(scope, files, files.*bias_file, {held, out}, half(files.gate_bias, files.up_bias), false, held));
    }
    return ExpertLinear(scope / "experts" / name, held, in, out, options);
  };
  if (spec_.gated)
    gate_.emplace(
        linear("gate_proj", &ExpertFiles::gate, &ExpertFiles::gate_bias, size, inner, Split::output, spec_.deviation));
  up_.emplace(linear("up_proj", &ExpertFiles::up, &ExpertFiles::up_bias, size, inner, Split::output, spec_.deviation));
  down_.emplace(linear("down_proj", &ExpertFiles::down, &ExpertFiles::down_bias, inner, size, Split::input,
                       spec_.output_deviation));
}

Tensor Experts::activated(const Tensor& gate, const Tensor& up) const {
  if (!spec_.gated) return ops::activate(up, spec_.activation);
  if (spec_.clamp_limit <= 0) return ops::gated(gate, up, spec_.activation);
  const Tensor g = gate.clamp_max(spec_.clamp_limit), u = up.clamp(-spec_.clamp_limit, spec_.clamp_limit);
  return (u + 1) * (g * ops::activate(g * spec_.clamp_alpha, ops::Activation::sigmoid));
}

Tensor Experts::computed(const Tensor& x, const ops::ExpertRows& rows, Pass& pass) const {
  ops::ExpertRows held = rows;
  held.begin.resize(size_t(spec_.experts + spec_.identities) + 1, rows.begin.back());
  const Tensor gate = gate_ ? pass.name("mlp_gate", (*gate_)(x, held, pass)) : Tensor();
  const Tensor up = pass.name("mlp_up", (*up_)(x, held, pass));
  return pass.name("mlp_down", (*down_)(activated(gate, up), rows, pass));
}

Tensor Experts::operator()(const Tensor& outside, const Tensor& indices, const Tensor& given_weights,
                           Pass& pass) const {
  const Tensor x = region_.enter(outside), weights = region_.enter(given_weights);
  const int64_t tokens = x.size(0), top_k = indices.size(1), all = spec_.experts + spec_.identities;
  ops::ExpertRows rows;
  Tensor inside;
  if (method_ == ops::MoeMethod::dense_moe) {
    // Every expert gets every token; `place` is the row of a choice in the rows of its expert.
    const Tensor order = at::arange(tokens, indices.options()).unsqueeze(1);
    rows.place = indices * tokens + order;
    for (int64_t e = 0; e <= all; ++e) rows.begin.push_back(e * tokens);
    inside = x.repeat({all, 1});
    if (spec_.weigh_input) {
      const Tensor by_expert = at::zeros({tokens, all}, weights.options()).scatter(1, indices, weights);
      inside = inside * by_expert.t().reshape({-1, 1}).to(inside.scalar_type());
    }
  } else {
    rows = ops::sort_by_expert(indices, all);
    inside = ops::gather_rows(x, rows);
    if (spec_.weigh_input) {
      const Tensor by_row = weights.reshape({tokens * top_k}).index_select(0, rows.choice);
      inside = inside * by_row.to(inside.scalar_type()).unsqueeze(1);
    }
  }
  rows.begin.resize(size_t(spec_.experts) + 1);
  const int64_t real = rows.begin.back();
  const Tensor sorted = inside.narrow(0, 0, real);
  Tensor results = real == 0 ? sorted : computed(sorted, rows, pass);
  if (spec_.identities > 0) results = at::cat({results, inside.narrow(0, real, inside.size(0) - real)});
  const Tensor ones = spec_.weigh_input ? at::ones_like(weights) : weights;
  return region_.leave(ops::combine_rows(results, ones, rows.place));
}

double Experts::idle_elements(int64_t top_k) const {
  const double matrix = double(spec_.inner) * double(spec_.size), above = spec_.gated ? 2.0 : 1.0;
  return matrix *
         ((above + 1.0) * double(std::max<int64_t>(spec_.experts - top_k, 0)) + above * double(spec_.identities));
}

}  // namespace easydel::nn
