// Recorded cases of EasyDeL's losses: losses. Their inputs are formulas in the file's "meta".
#include <ATen/ops/arange.h>

#include "easydel/base/error.h"
#include "easydel/ops/routing.h"
#include "easydel/probe/vector_tensors.h"
#include "easydel/probe/vectors.h"
#include "easydel/train/losses.h"

namespace easydel::probe {
namespace {

using train::LossConfig, train::LossMetrics, train::Targets;

// ((step * i mod modulus) - middle) / 20
Tensor formula(int64_t step, int64_t modulus, int64_t middle, std::vector<int64_t> shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  const Tensor i = at::arange(count, at::TensorOptions().dtype(at::kLong));
  return (((i * step).remainder(modulus) - middle).to(at::kFloat) / 20.0).view(shape);
}

Tensor token_logits() { return formula(37, 101, 50, {2, 6, 11}); }

LossConfig config_of(const VectorCase& vector) {
  LossConfig out;
  const Value* const given = vector.body.find("config");
  if (given && !given->is_null()) config::read(*given, out, "loss_config").throw_if_any();
  return out;
}

// The tensor that a case refers to by a name of "meta"; undefined: it names none.
Tensor named(const VectorCase& vector, const VectorFile& file, const Value& from, const char* key) {
  const Value* const word = from.find(key);
  if (!word || word->is_null()) return {};
  const Value* const meta = file.document.find("meta");
  const Value* const found = meta ? meta->find(word->scalar) : nullptr;
  if (!found) refuse(vector.id, "the file has no " + to_json(*word));
  return tensor_of(*found, at::kLong);
}

Targets targets_of(const VectorCase& vector, const VectorFile& file) {
  Targets out;
  const Value* const inputs = vector.body.find("inputs");
  if (!inputs) return out;
  out.labels = named(vector, file, *inputs, "labels");
  out.attention_mask = named(vector, file, *inputs, "mask");
  if (const Value* extra = vector.body.find("extra"))
    if (const Value* items = extra->find("num_items_in_batch")) out.num_items_in_batch = items->as_double();
  if (const Value* batch = vector.body.find("batch")) {
    if (const Value* weights = batch->find("decoder_loss_weights")) out.weights = tensor_of(*weights);
    if (const Value* segments = batch->find("decoder_segment_ids")) out.segments = tensor_of(*segments, at::kLong);
  }
  return out;
}

// The recorded loss and its gradient.
Value recorded(const VectorCase& vector, const LossMetrics& metrics, const Tensor& logits) {
  Value all = Value::map();
  for (const auto& [key, tensor] :
       {std::pair{"loss", metrics.loss}, std::pair{"z_loss", metrics.z_loss},
        std::pair{"weight_sum", metrics.weight_sum}, std::pair{"accuracy", metrics.accuracy}})
    if (tensor.defined()) all.set(key, shaped_of(tensor));
  all.set("loss_dtype", Value::text("float32"));
  metrics.loss.sum().backward();
  all.set("grad_logits", shaped_of(logits.grad()));
  const Value* const expected = vector.body.find("expect");
  const Value* const wanted = expected ? expected->find("ok") : nullptr;
  if (!wanted || !wanted->is_map()) return all;
  Value out = Value::map();
  for (const auto& [key, unused] : wanted->entries)
    if (const Value* ours = all.find(key)) out.set(key, *ours);
  return out;
}

Value tokens(const VectorCase& vector, const VectorFile& file, bool causal) {
  const Value* const inputs = vector.body.find("inputs");
  Tensor logits;
  if (inputs) {
    const Value* const type = inputs->find("dtype");
    logits = token_logits().to(type && type->scalar == "bfloat16" ? at::kBFloat16 : at::kFloat).requires_grad_(true);
  }
  const Targets targets = targets_of(vector, file);
  const LossConfig config = config_of(vector);
  return recorded(vector,
                  causal ? train::causal_lm_loss(logits, targets, config)
                         : train::token_classification_loss(logits, targets, config),
                  logits);
}

Value sequences(const VectorCase& vector) {
  const Tensor logits = shaped_tensor_of(needed(vector, "logits")).requires_grad_(true);
  const bool whole = needed(vector, "labels_dtype").scalar.starts_with("int");
  const Tensor labels = tensor_of(needed(vector, "labels"), whole ? at::kLong : at::kFloat);
  return recorded(vector, train::sequence_classification_loss(logits, labels, config_of(vector)), logits);
}

Value answers(const VectorCase& vector) {
  const Tensor logits = token_logits().requires_grad_(true);
  const auto positions = [&](const char* key) { return tensor_of(needed(vector, key), at::kLong); };
  return recorded(vector,
                  train::question_answering_loss(logits.select(2, 0), logits.select(2, 1), positions("start_positions"),
                                                 positions("end_positions"), config_of(vector)),
                  logits);
}

Value balance(const VectorCase& vector, const VectorFile& file) {
  const Tensor mask = named(vector, file, vector.body, "mask");
  const Tensor counts = mask.defined() ? mask.reshape({-1}) : mask;
  return shaped_of(ops::load_balancing_loss({formula(37, 101, 50, {12, 4}), formula(53, 97, 48, {12, 4})},
                                            needed(vector, "top_k").as_int().value_or(1), counts));
}

Value answer_loss(const VectorCase& vector, const VectorFile& file) {
  const std::string& what = needed(vector, "fn").scalar;
  if (what == "ForCausalLMLoss" || what == "ForTokenClassification")
    return tokens(vector, file, what == "ForCausalLMLoss");
  if (what == "ForSequenceClassificationLoss") return sequences(vector);
  if (what == "ForQuestionAnsweringLoss") return answers(vector);
  if (what == "auxiliary_load_balancing_loss_func") return balance(vector, file);
  throw VectorNotBuilt("the loss '" + what + "'");
}

}  // namespace

VectorKind losses_vectors() { return {.name = "losses", .answer = answer_loss}; }

}  // namespace easydel::probe
