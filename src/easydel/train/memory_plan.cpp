#include "easydel/train/memory_plan.h"

#include <algorithm>
#include <cstdio>

#include "easydel/base/error.h"

namespace easydel::train {

double ActivationCost::at(int64_t tokens, int64_t labelled) const {
  const int64_t rows = rows_in_chunk > 0 ? std::min(labelled, rows_in_chunk) : labelled;
  return std::max(0.0, fixed + per_token * double(tokens) + per_logit_row * double(rows));
}

int64_t MemoryPlan::total() const {
  const int64_t kept = activation_bytes();
  const int64_t step =
      micro_batches > 1 ? gradients + kept : std::max(first_gradient + kept, gradients + int64_t(activations.at(0, 0)));
  return std::max(before, weights + optimizer + side_models + rest + step);
}

std::string MemoryPlan::text() const {
  std::string out = str("about ", bytes_text(total()), ": weights ", bytes_text(weights), ", gradients ",
                        bytes_text(gradients), ", optimizer ", bytes_text(optimizer));
  if (activation_bytes() > 0) out += ", activations " + bytes_text(activation_bytes());
  if (side_models > 0) out += ", reference " + bytes_text(side_models);
  return rest > 0 ? out + ", data and program " + bytes_text(rest) : out;
}

std::vector<std::string> what_would_fit(const MemoryPlan& plan, int64_t bytes, const std::vector<int64_t>& accumulation,
                                        int64_t longest, bool checkpointing) {
  std::vector<std::string> out;
  MemoryPlan other = plan;
  for (const int64_t parts : accumulation) {
    if (parts <= plan.micro_batches) continue;
    other = plan;
    other.tokens = plan.tokens * plan.micro_batches / parts;
    other.labelled = plan.labelled * plan.micro_batches / parts;
    other.micro_batches = parts;
    if (other.total() > bytes) continue;
    out.push_back(str("trainer.gradient_accumulation_steps: ", parts));
    break;
  }
  if (!checkpointing) {
    other = plan;
    other.activations.per_token *= 0.15;  // about what remains: the inputs of the layers
    if (other.total() <= bytes) out.emplace_back("base_config.values.gradient_checkpointing: nothing_saveable");
  }
  for (int64_t length = longest / 2; length >= 64; length /= 2) {
    other = plan;
    other.tokens = std::min(plan.tokens, plan.tokens * length / std::max<int64_t>(longest, 1));
    other.labelled = std::min(plan.labelled, other.tokens);
    if (other.total() > bytes) continue;
    out.push_back(str("trainer.max_length: ", length));
    break;
  }
  other = plan;
  other.optimizer = 0;
  if (plan.optimizer > 0 && other.total() <= bytes) out.emplace_back("trainer.optimizer: adafactor");
  return out;
}

std::string bytes_text(int64_t bytes) {
  char text[32];
  const double value = double(bytes);
  std::snprintf(text, sizeof text, value >= 1e9 ? "%.2f GB" : "%.1f MB", value >= 1e9 ? value / 1e9 : value / 1e6);
  return text;
}

}  // namespace easydel::train
