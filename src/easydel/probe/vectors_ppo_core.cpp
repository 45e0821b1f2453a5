// Recorded pieces of TRL 0.24's PPOTrainer: ppo/pieces.
#include "easydel/base/error.h"
#include "easydel/probe/vector_tensors.h"
#include "easydel/probe/vectors.h"
#include "easydel/train/ppo_terms.h"

namespace easydel::probe {
namespace {

constexpr const char* pieces[] = {"padding_mask",
                                  "padding_mask_p1",
                                  "kl",
                                  "rewards_before_whitening",
                                  "rewards",
                                  "advantages_raw",
                                  "returns",
                                  "advantages_whitened",
                                  "pg_loss",
                                  "vf_loss",
                                  "loss",
                                  "pg_clipfrac",
                                  "vf_clipfrac",
                                  "approxkl",
                                  "grad_new_logprobs",
                                  "grad_vpred"};

train::PpoKeys keys_of(const VectorCase& vector) {
  train::PpoKeys out;
  const auto number = [&](const char* name, double& to) { to = needed(vector, name).as_double().value_or(to); };
  number("gamma", out.gamma), number("lam", out.lam), number("kl_coef", out.kl_coef);
  number("cliprange", out.cliprange), number("cliprange_value", out.cliprange_value), number("vf_coef", out.vf_coef);
  out.whiten_rewards = needed(vector, "whiten_rewards").as_bool().value_or(false);
  out.kl_estimator = needed(vector, "kl_estimator").scalar == "k3" ? train::KlEstimator::k3 : train::KlEstimator::k1;
  return out;
}

Value ppo_pieces(const VectorCase& vector, const VectorFile&) {
  const Value& inputs = needed(vector, "inputs");
  const auto input = [&](const char* name, at::ScalarType type = at::kFloat) {
    const Value* const found = inputs.find(name);
    if (!found) refuse(vector.id, str("has no input \"", name, "\""));
    return tensor_of(*found, type);
  };
  const train::PpoKeys keys = keys_of(vector);
  // Recorded is the place of the last token.
  const train::PpoGeneration generation{input("logprobs"), input("ref_logprobs"), input("values"), input("scores"),
                                        input("sequence_lengths", at::kLong) + 1};
  const train::PpoTargets targets = train::ppo_targets(generation, keys);

  const Tensor logps = tensor_of(needed(vector, "new_logprobs")).requires_grad_(true),
               values = tensor_of(needed(vector, "vpred")).requires_grad_(true);
  const Tensor tokens = targets.padding.logical_not(), places = targets.value_padding.logical_not();
  const train::PpoLosses losses = train::ppo_losses(
      {logps.masked_select(tokens), generation.logps.masked_select(tokens), targets.advantages.masked_select(tokens)},
      {values.masked_select(places), targets.values.masked_select(places), targets.returns.masked_select(places)},
      keys);
  const Tensor policy = losses.policy.mean(), value = losses.value.mean(), all = policy + keys.vf_coef * value;
  all.backward();
  // TRL takes this mean over padding, too, where both are equal.
  const Tensor difference = (logps - generation.logps).detach().masked_fill(targets.padding, 0);
  const Tensor answers[] = {targets.padding.to(at::kLong),
                            targets.value_padding.to(at::kLong),
                            targets.divergence,
                            targets.raw_rewards,
                            targets.rewards,
                            targets.raw_advantages,
                            targets.returns,
                            targets.advantages,
                            policy,
                            value,
                            all,
                            losses.policy_clipped.mean(),
                            losses.value_clipped.mean(),
                            0.5 * difference.square().mean(),
                            logps.grad(),
                            values.grad()};
  Value out = Value::map();
  for (size_t i = 0; i < std::size(pieces); ++i) out.set(pieces[i], nested_of(answers[i]));
  return out;
}

Value expected_pieces(const VectorCase& vector, const VectorFile&) {
  Value out = Value::map();
  for (const char* piece : pieces) out.set(piece, needed(vector, piece));
  return out;
}

}  // namespace

VectorKind ppo_vectors() { return {.name = "ppo/pieces", .answer = ppo_pieces, .expected = expected_pieces}; }

}  // namespace easydel::probe
