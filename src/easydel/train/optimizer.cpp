#include "easydel/train/optimizer.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <regex>

#include "easydel/base/error.h"

namespace easydel::train {

AdamW::AdamW(nn::ParameterTable& parameters, const AdamWOptions& options) : options_(options) {
  std::optional<std::regex> pattern;
  if (options.decay_pattern) pattern.emplace(*options.decay_pattern);
  for (nn::Entry& entry : parameters.entries()) {
    if (!entry.trainable) continue;
    check(entry.shard.scalar_type() == at::kFloat, entry.path, ": the optimizer works on fp32 masters");
    const bool decayed = pattern ? std::regex_search(entry.path, *pattern)
                                 : entry.role != nn::Role::norm && entry.role != nn::Role::bias;
    slots_.push_back({&entry, at::zeros_like(entry.shard.detach()), at::zeros_like(entry.shard.detach()), decayed});
  }
}

void AdamW::step(double rate) {
  const c10::AutoGradMode no_grad(false);
  ++steps_;
  for (const bool decayed : {true, false}) {
    std::vector<Tensor> shards, gradients, means, squares, counts;
    for (const Slot& slot : slots_) {
      if (slot.decayed != decayed || !slot.entry->shard.grad().defined()) continue;
      shards.push_back(slot.entry->shard);
      gradients.push_back(slot.entry->shard.grad());
      means.push_back(slot.mean);
      squares.push_back(slot.square);
      // The operator takes the count of this update.
      counts.push_back(at::full({}, static_cast<double>(steps_), shards.back().options().requires_grad(false)));
    }
    if (shards.empty()) continue;
    at::_fused_adamw_(shards, gradients, means, squares, {}, counts, rate, options_.b1, options_.b2,
                      decayed ? options_.weight_decay : 0.0, options_.eps, false, false);
  }
  for (const Slot& slot : slots_) slot.entry->written();
  drop_gradients();
}

void AdamW::drop_gradients() {
  for (const Slot& slot : slots_) slot.entry->shard.mutable_grad() = Tensor();
}

void AdamW::scale_gradients(double factor) {
  const c10::AutoGradMode no_grad(false);
  for (const Slot& slot : slots_)
    if (slot.entry->shard.grad().defined()) slot.entry->shard.mutable_grad().mul_(factor);
}

int64_t AdamW::state_bytes() const {
  int64_t bytes = 0;
  for (const Slot& slot : slots_) bytes += slot.mean.numel() * 8;
  return bytes;
}

}  // namespace easydel::train
