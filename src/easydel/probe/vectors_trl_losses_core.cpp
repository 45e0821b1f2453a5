// Recorded cases of the losses of torch, transformers and TRL: losses/cross_entropy, losses/jsd, losses/kl_estimators,
// losses/moe_load_balancing. A case's name says what it is.
#include <ATen/ops/eye.h>

#include "easydel/base/error.h"
#include "easydel/ops/divergence.h"
#include "easydel/ops/head_divergence.h"
#include "easydel/ops/routing.h"
#include "easydel/ops/token_scores.h"
#include "easydel/probe/vector_tensors.h"
#include "easydel/probe/vectors.h"

namespace easydel::probe {
namespace {

const Value& recorded_in(const VectorFile& file, const char* key) {
  const Value* const found = file.document.find(key);
  if (!found) refuse(file.path.string(), str("has no \"", key, "\""));
  return *found;
}

// "value" and "grads", as the cases record them.
Value with_gradients(const Tensor& value, const std::vector<Tensor>& inputs) {
  value.sum().backward();
  Value out = Value::map(), gradients = Value::list();
  for (const Tensor& input : inputs) gradients.items.push_back(nested_of(input.grad()));
  out.set("value", nested_of(value));
  out.set("grads", std::move(gradients));
  return out;
}

Value expected_losses(const VectorCase& vector, const VectorFile&) {
  Value out = Value::map();
  out.set("value", needed(vector, "value"));
  out.set("grads", needed(vector, "grads"));
  return out;
}

double number_behind(const std::string& text, const std::string& word) {
  return std::stod(text.substr(text.find(word) + word.size()));
}

Value cross_entropy(const VectorCase& vector, const VectorFile& file) {
  const std::string& name = vector.id;
  const Value& inputs = needed(vector, "inputs");
  const Tensor logits = tensor_of(recorded_in(file, "logits")).requires_grad_(true);
  Tensor all = logits, labels = tensor_of(recorded_in(file, "labels"), at::kLong);
  if (name.starts_with("hf_")) all = logits.slice(1, 0, logits.size(1) - 1), labels = labels.slice(1, 1);
  const int64_t vocabulary = all.size(2);
  const Tensor valid = labels.ne(-100).reshape({-1}).to(at::kFloat);
  const Tensor weights = inputs.find("class_weights") ? tensor_of(*inputs.find("class_weights")) : Tensor();
  ops::TokenScoreRequest request;
  request.uniform = name.find("smooth") != std::string::npos;
  request.entropy = name == "entropy_per_token";
  request.class_weights = weights;
  const Tensor known = labels.clamp_min(0).reshape({-1});
  const ops::TokenScores scores = ops::token_scores(all.reshape({-1, vocabulary}), known, request);
  const auto as_rows = [&](const Tensor& t) { return with_gradients(t.view(labels.sizes()), {logits}); };
  const auto done = [&](const Tensor& t) { return with_gradients(t, {logits}); };
  if (name == "entropy_per_token") return as_rows(scores.entropy);
  if (name == "selective_log_softmax") return as_rows(scores.logps);

  const bool t5x = name == "ce_t5x_smoothing";
  const bool named = name.starts_with("ce_label_smoothing_");
  const double smoothing = named ? number_behind(name, "ce_label_smoothing_") : request.uniform ? 0.1 : 0.0;
  const double z = t5x ? 1e-3 : name.find("z_loss") != std::string::npos ? 0.01 : 0.0;
  const Tensor own = weights.defined() ? weights.index_select(0, known) : Tensor();
  const Tensor logps = own.defined() ? scores.logps * own : scores.logps;
  Tensor tokens = ops::smoothed_loss(logps, scores.uniform, vocabulary, smoothing,
                                     t5x ? ops::Smoothing::t5x : ops::Smoothing::torch);
  if (z > 0) tokens = tokens + z * scores.log_normalizer.square();
  Tensor counted = valid;
  if (const Value* given = inputs.find("token_weights")) counted = valid * tensor_of(*given).reshape({-1});
  const Tensor sum = (tokens * counted).sum();
  if (name == "ce_none") return done(tokens * counted);
  if (name == "ce_sum") return done(sum);
  if (name == "hf_causal_lm_num_items") return done(sum / 7.0);
  if (name == "ce_divide_by_attended") return done(sum / tensor_of(*inputs.find("attention_mask")).sum());
  return done(sum / (own.defined() ? own * counted : counted).sum());
}

Value divergence(const VectorCase& vector, const VectorFile& file) {
  const std::string& name = vector.id;
  const Tensor student = tensor_of(recorded_in(file, "student_logits")).requires_grad_(true);
  const Tensor labels = tensor_of(recorded_in(file, "labels"), at::kLong);
  const Tensor teacher = tensor_of(recorded_in(file, "teacher_logits"));
  const double beta = number_behind(name, "_b"), temperature = number_behind(name, "_t");
  const Tensor rows = labels.ne(-100).reshape({-1}).nonzero().squeeze(1);
  const auto learned = [&](const Tensor& t) { return t.reshape({-1, t.size(-1)}).index_select(0, rows); };
  if (name.ends_with("_none"))
    return with_gradients(learned(ops::jensen_shannon(student, teacher, beta, temperature)), {student});
  // As methods compute it: the logits are hidden states under a head that changes nothing.
  const Tensor head = at::eye(student.size(-1));
  const auto terms = [&](const Tensor& logits) { return ops::HeadTerms{learned(logits), {head, head, nullptr}}; };
  const Tensor sum =
      ops::head_divergence(terms(student), terms(teacher), {.beta = beta, .temperature = temperature, .chunk = 4})
          .divergence.sum();
  return with_gradients(name.ends_with("_sum") ? sum : sum / double(rows.size(0)), {student});
}

const char* const estimators[] = {"k1", "k2", "k3"};

Value estimate(const VectorCase& vector, const VectorFile&) {
  Value out = Value::map();
  for (int kind = 0; kind < 3; ++kind)
    out.set(estimators[kind], nested_of(ops::kl_estimate(ops::KlEstimator(kind), tensor_of(needed(vector, "logp")),
                                                         tensor_of(needed(vector, "ref_logp")))));
  return out;
}

Value expected_estimates(const VectorCase& vector, const VectorFile&) {
  Value out = Value::map();
  for (const char* const kind : estimators) out.set(kind, needed(vector, kind));
  return out;
}

Value balance(const VectorCase& vector, const VectorFile& file) {
  std::vector<Tensor> layers;
  for (const Value& layer : recorded_in(file, "gate_logits_per_layer").items)
    layers.push_back(tensor_of(layer).requires_grad_(true));
  const Value& mask = needed(vector, "attention_mask");
  const Tensor counts = mask.is_null() ? Tensor() : tensor_of(mask).reshape({-1});
  return with_gradients(ops::load_balancing_loss(layers, needed(vector, "top_k").as_int().value_or(1), counts), layers);
}

}  // namespace

VectorKind cross_entropy_vectors() {
  return {.name = "losses/cross_entropy", .answer = cross_entropy, .expected = expected_losses};
}
VectorKind jsd_vectors() { return {.name = "losses/jsd", .answer = divergence, .expected = expected_losses}; }
VectorKind kl_estimators_vectors() {
  return {.name = "losses/kl_estimators", .answer = estimate, .expected = expected_estimates};
}
VectorKind moe_load_balancing_vectors() {
  return {.name = "losses/moe_load_balancing", .answer = balance, .expected = expected_losses};
}

}  // namespace easydel::probe
