// Recorded cases of the losses of TRL's XPOTrainer and NashMDTrainer: online_dpo/xpo_loss, online_dpo/nash_md_loss.
#include <ATen/ops/arange.h>

#include "easydel/base/error.h"
#include "easydel/probe/vector_tensors.h"
#include "easydel/probe/vectors.h"
#include "easydel/train/online_losses.h"

namespace easydel::probe {
namespace {

Tensor in_file(const VectorFile& file, const char* key) {
  const Value* const found = file.document.find(key);
  if (!found) refuse(file.path.string(), str("has no \"", key, "\""));
  return tensor_of(*found);
}

double number(const VectorCase& vector, const char* key) { return needed(vector, key).as_double().value_or(0); }

// What the case records of these.
Value recorded(const VectorCase& vector, std::initializer_list<const char*> keys) {
  Value out = Value::map();
  for (const char* key : keys) out.set(key, needed(vector, key));
  return out;
}

Value explored(const VectorCase& vector, const VectorFile& file) {
  const Tensor own = in_file(file, "model_logprobs_model_data").requires_grad_(true),
               other = in_file(file, "model_logprobs_ref_data").requires_grad_(true);
  const train::CompletionLogps first{own.sum(1), in_file(file, "ref_logprobs_model_data").sum(1)},
      second{other.sum(1), in_file(file, "ref_logprobs_ref_data").sum(1)};
  const Tensor first_wins = in_file(file, "chosen_mask_model_is_chosen").ne(0);
  const auto loss = needed(vector, "loss_type").scalar == "ipo" ? train::OnlineLoss::ipo : train::OnlineLoss::sigmoid;
  const Tensor preference =
      train::online_loss(loss, number(vector, "beta"), train::online_margins(first, second, first_wins));
  const Tensor exploration = train::exploration_loss(number(vector, "alpha"), second);
  const Tensor mean = (preference + exploration).mean();
  mean.backward();
  Value out = Value::map();
  out.set("loss", nested_of(mean));
  out.set("dpo_losses", nested_of(preference));
  out.set("xpo_losses", nested_of(exploration));
  out.set("grad_model_logprobs_model_data", nested_of(own.grad()));
  out.set("grad_model_logprobs_ref_data", nested_of(other.grad()));
  return out;
}

Value expected_exploration(const VectorCase& vector, const VectorFile&) {
  return recorded(
      vector, {"loss", "dpo_losses", "xpo_losses", "grad_model_logprobs_model_data", "grad_model_logprobs_ref_data"});
}

Value nash(const VectorCase& vector, const VectorFile& file) {
  const Tensor policy = in_file(file, "model_logprobs").requires_grad_(true);
  const Tensor sequence = at::arange(policy.size(0), at::kLong).unsqueeze(1).expand_as(policy).reshape({-1});
  const train::NashLoss found =
      train::nash_loss(number(vector, "beta"), {policy.reshape({-1}), in_file(file, "ref_logprobs").reshape({-1})},
                       sequence, in_file(file, "probability"));
  const Tensor mean = found.loss.mean();
  mean.backward();
  Value out = Value::map();
  out.set("loss", nested_of(mean));
  out.set("score", nested_of(found.score));
  out.set("kl_div_log", nested_of(found.divergence));
  out.set("grad_model_logprobs", nested_of(policy.grad()));
  return out;
}

Value expected_nash(const VectorCase& vector, const VectorFile&) {
  return recorded(vector, {"loss", "score", "kl_div_log", "grad_model_logprobs"});
}

}  // namespace

VectorKind nash_md_loss_vectors() {
  return {.name = "online_dpo/nash_md_loss", .answer = nash, .expected = expected_nash};
}
VectorKind xpo_loss_vectors() {
  return {.name = "online_dpo/xpo_loss", .answer = explored, .expected = expected_exploration};
}

}  // namespace easydel::probe
