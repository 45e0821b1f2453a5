#include "easydel/nn/layers.h"

#include <algorithm>

#include "easydel/nn/weight.h"
#include "easydel/ops/joint_products.h"

namespace easydel::nn {
namespace {

LinearOptions in_region(LinearOptions options, Split split, const Region& region) {
  options.split = split;
  options.region = region;
  return options;
}

}  // namespace

Linear::Linear(const Scope& scope, int64_t in, int64_t out, const LinearOptions& options) {
  const bool divided = options.region.divided() && options.split != Split::none;
  const Use use = divided ? Use::part : Use::whole;
  weight_ = scope.parameter("weight", {out, in}, Role::weight,
                            {options.split, options.initial.value_or(Initial::normal(options.deviation)), "kernel",
                             scope.transposed_weights(), use, options.split == Split::input ? 1 : 0});
  // A bias is added once, after the sum over the input's parts, so it is split only with the output.
  const Split bias_split = options.split == Split::input ? Split::none : options.split;
  if (options.bias)
    bias_ = scope.parameter("bias", {out}, Role::bias,
                            {bias_split, Initial::zeros(), {}, false, bias_split == Split::none ? Use::whole : use, 0});
  if (divided && options.split == Split::input) sum_ = options.region;
}

template <class Product>
Tensor Linear::finish(Pass& pass, std::string_view name, Product&& product) const {
  const Tensor bias = bias_ ? bias_.value() : Tensor();
  if (!sum_.divided()) return pass.name(name, product(bias, name));
  const Tensor sum = sum_.leave(product(Tensor(), std::string_view()));
  return pass.name(name, bias.defined() ? sum + bias.to(sum.scalar_type()) : sum);
}

Tensor Linear::operator()(const Tensor& x, Pass& pass, std::string_view name) const {
  return finish(pass, name, [&](const Tensor& bias, std::string_view kept) {
    return weight_.entry().weight->product(x, bias, kept, pass);
  });
}

std::vector<Tensor> Linear::of_one_input(const Tensor& x, Pass& pass, std::span<const Named> layers) {
  std::vector<ops::JointFactor> factors;
  std::vector<std::vector<ops::AddedRows>> added;
  if (!pass.activations().has_backward())
    for (const Named& one : layers) {
      if (one.layer->sum_.divided()) break;
      auto of = one.layer->weight_.entry().weight->adapted_matrix(x, pass);
      if (!of) break;
      factors.push_back({std::move(of->matrix), one.layer->bias_ ? one.layer->bias_.value() : Tensor()});
      added.push_back(std::move(of->added));
    }
  std::vector<Tensor> out;
  if (factors.size() < layers.size()) {
    for (const Named& one : layers) out.push_back((*one.layer)(x, pass, one.name));
    return out;
  }
  out = ops::products(x, factors);
  if (std::ranges::any_of(added, [](const auto& of) { return !of.empty(); })) ops::add_low_ranks(out, x, added);
  for (size_t i = 0; i < layers.size(); ++i) out[i] = pass.name(layers[i].name, std::move(out[i]));
  return out;
}

Tensor Linear::gated(const Tensor& gate, const Tensor& up, ops::Activation kind, Pass& pass,
                     std::string_view name) const {
  return finish(pass, name, [&](const Tensor& bias, std::string_view kept) {
    return weight_.entry().weight->gated_product(gate, up, kind, bias, kept, pass);
  });
}

Embedding::Embedding(const Scope& scope, int64_t rows, int64_t size, double deviation, Split split, int64_t padding)
    : padding_(padding), of_tokens_(split == Split::vocabulary) {
  Initial initial = Initial::normal(deviation);
  initial.zero_row = padding;
  weight_ = scope.parameter("weight", {rows, size}, Role::embedding, {split, initial, "embedding", false});
}

Tensor Embedding::operator()(const Tensor& indices, Pass& pass) const {
  const Tensor out = weight_.entry().weight->lookup(indices, padding_, pass);
  return of_tokens_ ? pass.random().noised_embeddings(out, pass.stream().cu_seqlens) : out;
}

Norm::Norm(const Scope& scope, int64_t size, const Options& options) : options_(options) {
  if (!options.weight) return;
  const bool layer = options.kind == NormKind::layer;
  const Initial initial = options.offset == 0.0 || layer ? Initial::ones() : Initial::zeros();
  const Use use = options.in_region ? Use::shared : Use::whole;
  weight_ =
      scope.parameter("weight", {size}, Role::norm, {Split::none, initial, layer ? "scale" : "kernel", false, use});
  if (layer ? options.bias : options.shift)
    bias_ = scope.parameter("bias", {size}, Role::norm, {Split::none, Initial::zeros(), {}, false, use});
}

// Adds the bias of an rms norm, in the compute dtype.
Tensor Norm::shifted(const Tensor& x) const { return bias_ ? x + bias_.value().to(x.scalar_type()) : x; }

Tensor Norm::operator()(const Tensor& x) const {
  Tensor weight = weight_ ? weight_.value() : Tensor();
  if (options_.kind == NormKind::rms)
    return shifted(ops::rms_norm(x, weight, options_.epsilon, weight_ ? options_.offset : 0.0, options_.wide));
  if (weight_ && options_.offset != 0.0) weight = weight + options_.offset;
  return ops::layer_norm(x, weight, bias_ ? bias_.value() : Tensor(), options_.epsilon);
}

ops::NormOfSum Norm::after_sum(const Tensor& x, const Tensor& added) const {
  Tensor weight = weight_ ? weight_.value() : Tensor();
  if (options_.kind == NormKind::rms) {
    ops::NormOfSum out =
        ops::add_rms_norm(x, added, weight, options_.epsilon, weight_ ? options_.offset : 0.0, options_.wide);
    out.norm = shifted(out.norm);
    return out;
  }
  if (weight_ && options_.offset != 0.0) weight = weight + options_.offset;
  return ops::add_layer_norm(x, added, weight, bias_ ? bias_.value() : Tensor(), options_.epsilon);
}

GatedMlp::GatedMlp(const Scope& scope, int64_t size, int64_t inner, ops::Activation activation,
                   const LinearOptions& options)
    : region_(scope.team(), {inner}),
      gate_(scope / "gate_proj", size, inner, in_region(options, Split::output, region_)),
      up_(scope / "up_proj", size, inner, in_region(options, Split::output, region_)),
      down_(scope / "down_proj", inner, size, in_region(options, Split::input, region_)),
      activation_(activation) {}

Tensor GatedMlp::operator()(const Tensor& x, Pass& pass) const {
  const Tensor inside = region_.enter(x);
  const Linear::Named both[] = {{&gate_, "mlp_gate"}, {&up_, "mlp_up"}};
  const std::vector<Tensor> out = Linear::of_one_input(inside, pass, both);
  return down_.gated(out[0], out[1], activation_, pass, "mlp_down");
}

Mlp::Mlp(const Scope& scope, int64_t size, int64_t inner, ops::Activation activation, const LinearOptions& up,
         const LinearOptions& down, const Names& names)
    : region_(scope.team(), {inner}),
      up_(scope / names.up, size, inner, in_region(up, Split::output, region_)),
      down_(scope / names.down, inner, size, in_region(down, Split::input, region_)),
      activation_(activation) {}

Tensor Mlp::operator()(const Tensor& x, Pass& pass) const {
  return down_(ops::activate(up_(region_.enter(x), pass, "mlp_up"), activation_), pass, "mlp_down");
}

}  // namespace easydel::nn
