#include "easydel/nn/moe.h"

#include "easydel/nn/weight.h"
#include "easydel/ops/dropout.h"

namespace easydel::nn {
Router::Router(const Scope& scope, int64_t size, const ops::RouterSpec& spec, const RouterNames& names, bool exact,
               double deviation)
    : spec_(spec), bias_counts_(names.bias_counts) {
  weight_ = scope.parameter(names.weight, {spec.experts, size}, Role::weight,
                            {.initial = Initial::normal(deviation), .exact = exact, .router = true});
  if (!names.bias.empty()) bias_ = scope.parameter(names.bias, {spec.experts}, Role::bias, {.exact = exact});
  if (!names.correction.empty())
    correction_ = scope.parameter(
        names.correction,
        names.correction_is_row ? std::vector<int64_t>{1, spec.experts} : std::vector<int64_t>{spec.experts},
        Role::other, {.exact = true, .trainable = false});
}

std::pair<ops::Routing, Tensor> Router::operator()(const Tensor& x, Pass& pass) const {
  const Tensor bias = bias_ && bias_counts_ ? bias_.value() : Tensor();
  constexpr std::string_view name = "moe_router_logits";
  const Tensor logits =
      pass.name(name, weight_.entry().weight->product(x.to(weight_.entry().compute), bias, name, pass));
  const int64_t lots = pass.random().training ? ops::lots_of(spec_) : 0;
  const Tensor drawn =
      lots > 0 ? pass.random().uniform("moe_router_lots", x.size(0), lots).to(logits.device()) : Tensor();
  return {ops::route(logits, spec_, correction_ ? correction_.value() : Tensor(), drawn), logits};
}

Moe::Moe(const Scope& block, MoeSpec spec)
    : spec_(std::move(spec)),
      router_(block / spec_.name, spec_.experts.size, spec_.router, spec_.router_names, spec_.exact_router,
              spec_.experts.deviation),
      experts_(block / spec_.name, spec_.experts) {
  const Scope scope = block / spec_.name;
  LinearOptions shared;
  shared.bias = spec_.shared_bias;
  shared.deviation = spec_.experts.deviation;
  if (spec_.shared_inner > 0)
    shared_.emplace(scope / spec_.shared, spec_.experts.size, spec_.shared_inner, spec_.shared_activation, shared);
  if (!spec_.shared_gate.empty())
    shared_gate_.emplace(scope / spec_.shared_gate, spec_.experts.size, 1,
                         LinearOptions{.deviation = spec_.experts.deviation});
  if (spec_.output_bias) bias_ = scope.parameter("bias", {spec_.experts.size}, Role::bias, {});
}

LayerOutput Moe::forward(const Tensor& given, Pass& pass) const {
  Tensor x = pass.random().jitter("moe_input", given, spec_.input_jitter);
  if (spec_.jittered_twice) x = pass.random().jitter("moe_router_input", x, spec_.input_jitter);
  auto [routing, logits] = router_(x, pass);
  Tensor out = pass.name("moe_expert_output", experts_(x, routing.indices, routing.weights, pass));
  if (shared_) {
    Tensor shared = (*shared_)(x, pass);
    if (shared_gate_)
      shared = ops::activate((*shared_gate_)(x, pass, "moe_shared_gate"), ops::Activation::sigmoid) * shared;
    out = out + shared;
  }
  if (bias_) out = out + bias_.value().to(out.scalar_type());
  LayerOutput result{pass.name("moe_output", pass.random().dropout("mlp_dropout", out, spec_.output_dropout)), {}};
  result.extras["router_logits"] = logits;
  if (pass.requests("expert_tokens"))
    result.extras["expert_tokens"] = ops::tokens_of_experts(routing.indices, router_.spec().experts);
  return result;
}

}  // namespace easydel::nn
