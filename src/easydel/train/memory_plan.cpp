#include "easydel/train/memory_plan.h"

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <set>

#include "easydel/base/error.h"

namespace easydel::train {

double ActivationCost::at(int64_t tokens, int64_t labelled, int64_t pairs, int64_t longest_pairs) const {
  const int64_t rows = rows_in_chunk > 0 ? std::min(labelled, rows_in_chunk) : labelled;
  return std::max(0.0, fixed + per_token * double(tokens) + per_pair * double(pairs) +
                           per_longest_pair * double(longest_pairs) + per_logit_row * double(rows));
}

int64_t MemoryPlan::total() const {
  const int64_t kept = activation_bytes();
  const int64_t step = micro_batches > 1
                           ? gradients + kept
                           : std::max(first_gradient + kept, gradients + int64_t(activations.at_end(tokens)));
  return std::max(before, weights + optimizer + side_models + panels + rest + std::max(step, completions));
}

std::string MemoryPlan::text() const {
  std::string out = str("about ", bytes_text(total()), ": weights ", bytes_text(weights), ", gradients ",
                        bytes_text(gradients), ", optimizer ", bytes_text(optimizer));
  if (activation_bytes() > 0) out += ", activations " + bytes_text(activation_bytes());
  if (completions > 0) out += ", keys and values of completions " + bytes_text(completions);
  if (panels > 0) out += ", packed weights " + bytes_text(panels);
  if (side_models > 0) out += ", reference " + bytes_text(side_models);
  return rest > 0 ? out + ", data and program " + bytes_text(rest) : out;
}

std::vector<int64_t> micro_batches_of(int64_t update, int64_t ranks) {
  std::set<int64_t> out;
  const int64_t each = update % ranks == 0 ? update / ranks : 0;
  for (int64_t divisor = 1; divisor * divisor <= each; ++divisor)
    if (each % divisor == 0) out.insert({divisor, each / divisor});
  out.erase(1);
  return {out.begin(), out.end()};
}

std::vector<std::string> what_would_fit(const MemoryPlan& plan, int64_t bytes, const RunChoices& choices) {
  std::vector<std::string> out;
  MemoryPlan other = plan;
  for (const int64_t parts : choices.accumulation) {
    if (parts <= plan.micro_batches) continue;
    other = plan;
    other.tokens = plan.tokens * plan.micro_batches / parts;
    other.labelled = plan.labelled * plan.micro_batches / parts;
    other.pairs = plan.pairs * plan.micro_batches / parts;
    other.micro_batches = parts;
    if (other.total() > bytes) continue;
    out.push_back(str("trainer.gradient_accumulation_steps: ", parts));
    break;
  }
  if (!choices.recomputes) {
    other = plan;
    other.activations.per_token *= 0.15;  // about what remains: the inputs of the layers
    other.activations.per_pair *= 0.15;   // those of one sequence are still worked on
    if (other.total() <= bytes) out.emplace_back("base_config.values.gradient_checkpointing: nothing_saveable");
  }
  for (int64_t length = choices.longest / 2; length >= 64; length /= 2) {
    const double share = double(choices.prompt + length) / double(choices.prompt + choices.longest);
    other = plan;
    other.tokens = std::min(plan.tokens, int64_t(double(plan.tokens) * share));
    other.labelled = std::min(plan.labelled, other.tokens);
    other.pairs = int64_t(double(plan.pairs) * share * share);
    other.longest_pairs = int64_t(double(plan.longest_pairs) * share * share);
    if (other.total() > bytes) continue;
    out.push_back(str(choices.length_key, ": ", length));
    break;
  }
  if (choices.is_fp32) {
    other = plan;
    other.activations.per_token *= 0.6;  // half, and what stays fp32
    other.weights += plan.weights / 2;   // the copies that products read
    if (other.total() <= bytes) out.emplace_back("loader.dtype: bf16");
  }
  other = plan;
  other.optimizer = 0;
  if (plan.optimizer > 0 && other.total() <= bytes) out.emplace_back("trainer.optimizer: adafactor");
  return out;
}

LayerShapes layer_shapes(const Value& config) {
  const auto find = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (const Value* value = config.find(name); value && value->as_int())
        return std::max<int64_t>(0, *value->as_int());
    return int64_t{0};
  };
  LayerShapes out;
  out.layers = find({"num_hidden_layers", "n_layer", "num_layers", "n_layers"});
  out.hidden = find({"hidden_size", "n_embd", "d_model", "dim"});
  out.heads = find({"num_attention_heads", "n_head", "n_heads", "num_heads"});
  const int64_t head = find({"head_dim"}) > 0 ? find({"head_dim"}) : out.heads > 0 ? out.hidden / out.heads : 0;
  const int64_t keys = find({"num_key_value_heads", "num_kv_heads"});
  out.query = out.heads * head;
  out.key = (keys > 0 ? keys : out.heads) * head;
  const int64_t dense = find({"intermediate_size", "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size"});
  out.inner = dense > 0 ? dense : 4 * out.hidden;
  if (const int64_t experts = find({"num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k"});
      experts > 0) {
    const int64_t one = find({"moe_intermediate_size", "expert_intermediate_size"});
    out.inner = experts * (one > 0 ? one : out.inner) + find({"shared_expert_intermediate_size"});
  }
  return out;
}

int64_t chunk_rows(int64_t vocabulary) {
  return std::clamp<int64_t>((int64_t{16} << 20) / std::max<int64_t>(vocabulary, 1), 16, 4096);
}

double last_layer_bytes(const LayerShapes& shapes, int64_t element_bytes) {
  return shapes.is_known() ? 2.0 * double(shapes.elements() * element_bytes) : 0;
}

ActivationCost counted_activations(const LayerShapes& shapes, const StepSetting& setting) {
  ActivationCost out;
  if (!shapes.is_known()) return out;
  const double layer = double(shapes.elements() * setting.element_bytes),
               input = double(shapes.hidden * setting.element_bytes);
  const auto layers = double(shapes.layers);
  const bool recomputes = setting.checkpointing.kind == nn::Checkpointing::nothing_saveable;
  out.last_layer = last_layer_bytes(shapes, setting.element_bytes);
  out.per_token = recomputes ? layers * input + layer : layers * layer;
  if (setting.keeps_scores) {
    const double scores = 4.0 * double(shapes.heads);  // always fp32
    out.per_pair = scores * (recomputes ? 1 : layers);
    out.per_longest_pair = 2 * scores;
  }
  out.per_logit_row = 2.0 * 4 * double(setting.vocabulary);
  out.rows_in_chunk = setting.rows_in_chunk > 0 ? setting.rows_in_chunk : chunk_rows(setting.vocabulary);
  return out;
}

std::string bytes_text(int64_t bytes) {
  char text[32];
  const double value = double(bytes);
  std::snprintf(text, sizeof text, value >= 1e9 ? "%.2f GB" : "%.1f MB", value >= 1e9 ? value / 1e9 : value / 1e6);
  return text;
}

}  // namespace easydel::train
