#include "easydel/train/optimizer.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/regular_expression.h"
#include "easydel/nn/shards.h"
#include "easydel/nn/weight_forms.h"

namespace easydel::train {

double clip_factor(double norm, double most) { return std::min(1.0, most / (norm + 1e-6)); }

Optimizer::Optimizer(nn::ParameterTable& parameters, const OptimizerOptions& options) : ema_decay_(options.ema_decay) {
  const c10::AutoGradMode no_grad(false);
  std::optional<RegularExpression> pattern;
  if (options.decay_pattern) pattern.emplace(*options.decay_pattern);
  std::vector<RegularExpression> groups;
  std::vector<int64_t> members(options.groups.size(), 0);
  for (const ParameterGroup& group : options.groups) groups.emplace_back(group.pattern);
  for (nn::Entry& entry : parameters.entries()) {
    if (!entry.trainable) continue;
    check(entry.shard.scalar_type() == at::kFloat, entry.path, ": the optimizer works on fp32 masters");
    const bool decayed =
        pattern ? pattern->found_in(entry.path) : entry.role != nn::Role::norm && entry.role != nn::Role::bias;
    const bool matrix = entry.role == nn::Role::weight && entry.shape.size() == 2;
    const OptimizerRules& rules = options.rules;
    const auto& rule = entry.role == nn::Role::embedding && rules.embeddings ? rules.embeddings
                       : matrix || !rules.others                             ? rules.rule
                                                                             : rules.others;
    const Tensor value = entry.shard.detach();
    Slot slot{&entry, rule, rule->start(rule->whole() ? nn::whole_of(entry, value) : value),
              decayed ? options.weight_decay : 0.0};
    const auto found = std::ranges::find_if(groups, [&](const auto& group) { return group.found_in(entry.path); });
    if (found != groups.end()) {
      const size_t i = size_t(found - groups.begin());
      ++members[i];
      slot.rate = options.groups[i].rate;
      slot.decay = options.groups[i].weight_decay.value_or(slot.decay);
    }
    if (ema_decay_) slot.states.emplace("ema", value.clone());
    slots_.push_back(std::move(slot));
  }
  for (size_t i = 0; i < members.size(); ++i)
    if (members[i] == 0)
      refuse(str("trainer.learning_rates[", i, "].pattern"),
             "'" + options.groups[i].pattern + "' finds no parameter that is trained and in no group before it",
             "see `easydel describe model` for their names");
}

void Optimizer::update(Slot& slot, double rate, const Tensor& copy) const {
  nn::Entry& entry = *slot.entry;
  const double decay = slot.decay;
  Tensor value = entry.shard.detach();
  const Tensor gradient = entry.shard.grad();
  const bool scales = slot.rule->scales();
  if (!scales && scale_ != 1) gradient.mul_(scale_);
  if (!slot.rule->whole() || entry.team->size() == 1)
    return slot.rule->update({value, gradient, slot.states, steps_, rate, decay, copy, scales ? scale_ : 1.0});
  Tensor whole = nn::whole_of(entry, value).clone();
  slot.rule->update(
      {whole, nn::whole_of(entry, gradient), slot.states, steps_, rate, decay, {}, scales ? scale_ : 1.0});
  value.copy_(entry.team->cut(whole, entry.layout));
}

void Optimizer::step(double rate) {
  const c10::AutoGradMode no_grad(false);
  ++steps_;
  for (Slot& slot : slots_) {
    nn::Entry& entry = *slot.entry;
    const bool changes = entry.shard.grad().defined();
    const Tensor copy = changes && slot.rule->copies() && entry.forms ? entry.forms->copy() : Tensor();
    if (changes) update(slot, rate * entry.rate * slot.rate, copy);
    if (ema_decay_) slot.states.at("ema").lerp_(entry.shard.detach(), 1 - *ema_decay_);
    entry.written();
    if (copy.defined()) entry.forms->copied();
  }
  drop_gradients();
}

void Optimizer::drop_gradients() {
  for (const Slot& slot : slots_) slot.entry->shard.mutable_grad() = Tensor();
  scale_ = 1;
}

void Optimizer::show_average() {
  shows_average_ = true;
  const c10::AutoGradMode no_grad(false);
  for (Slot& slot : slots_) {
    Tensor value = slot.entry->shard.detach();
    const Tensor average = ema_decay_ ? slot.states.at("ema") : slot.rule->averaged(value, slot.states);
    if (!average.defined()) continue;
    slot.states.insert_or_assign("trained", value.clone());
    value.copy_(average);
    slot.entry->written();
  }
}

void Optimizer::show_trained() {
  shows_average_ = false;
  const c10::AutoGradMode no_grad(false);
  for (Slot& slot : slots_) {
    const auto trained = slot.states.find("trained");
    if (trained == slot.states.end()) continue;
    slot.entry->shard.detach().copy_(trained->second);
    slot.states.erase(trained);
    slot.entry->written();
  }
}

int64_t Optimizer::state_bytes() const {
  int64_t bytes = 0;
  for (const Slot& slot : slots_)
    for (const auto& [name, tensor] : slot.states) bytes += int64_t(tensor.nbytes());
  return bytes;
}

}  // namespace easydel::train
