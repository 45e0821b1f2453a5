#include "easydel/train/resume_changes.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"

namespace easydel::train {
namespace {

constexpr std::array<std::string_view, 11> sections{"model",   "reference_model", "teacher_model", "reward_model",
                                                    "loader",  "base_config",     "quantization",  "sharding",
                                                    "mixture", "trainer",         "lora"};

// A whole section of the document or a key, with everything below it.
constexpr auto without_effect = std::to_array<std::string_view>({
    "model.revision",
    "model.tokenizer",  // what it makes of the rows is in the fingerprint of the data
    "loader.verbose",
    "loader.device",
    "sharding",  // a mesh is part of the order of additions, which is compared on its own
    "mixture.informs",
    "mixture.evaluation",
    "mixture.save",
    "mixture.batch_size",
    "mixture.cache_dir",
    "mixture.cache_limit",
    "mixture.cache_min_bytes",
    "mixture.enable_caching",
    "mixture.streaming",
    "mixture.tokenization.keep_in_memory",
    "trainer.save_directory",
    "trainer.model_name",
    "trainer.save_steps",
    "trainer.save_interval_minutes",
    "trainer.save_total_limit",
    "trainer.save_optimizer_state",
    "trainer.do_last_save",
    "trainer.resume_if_possible",
    "trainer.remove_ckpt_after_load",
    "trainer.push_to_hub",
    "trainer.hub_model_id",
    "trainer.hub_revision",
    "trainer.hub_private_repo",
    "trainer.log_steps",
    "trainer.report_steps",
    "trainer.report_metrics",
    "trainer.tensorboard",
    "trainer.weight_distribution_pattern",
    "trainer.weight_distribution_log_steps",
    "trainer.log_grad_norms",
    "trainer.progress_bar_type",
    "trainer.training_time_limit",
    "trainer.trainer_prefix",
    "trainer.track_memory",
    "trainer.do_train",
    "trainer.do_eval",
    "trainer.eval_on_start",
    "trainer.evaluation_steps",
    "trainer.eval_batch_size",
    "trainer.max_evaluation_steps",
    "trainer.per_epoch_evaluation_steps",
    "trainer.generation_interval",
    "trainer.generation_prompts",
    "trainer.generation_use_train_prompts",
    "trainer.generation_num_prompts",
    "trainer.generation_temperature",
    "trainer.generation_top_p",
    "trainer.generation_top_k",
    "trainer.generation_max_new_tokens",
    "trainer.benchmark_interval",
    "trainer.benchmarks",
    "trainer.benchmark_errors",
});

// The moments of one optimizer are not those of another, a method's state is its own, and parameters that begin to be
// trained, or in another dtype, have no state.
constexpr auto refused = std::to_array<std::string_view>({
    "trainer.optimizer",
    "trainer.extra_optimizer_kwargs.stable_embedding",
    "trainer.ema_decay",
    "trainer.trainer_type",
    "trainer.frozen_parameters",
    "trainer.frozen_layers",
    "trainer.tx_mu_dtype",
    "loader.param_dtype",
    "quantization",
    "lora",
});

bool is_in(const auto& keys, std::string_view key) {
  return std::ranges::any_of(keys, [&](std::string_view one) {
    return key == one || (key.starts_with(one) && key.substr(one.size()).starts_with('.'));
  });
}

// Other words for the same folder are the same model, and a folder that is gone may have been moved; two that exist are
// two models.
bool is_other_model(const std::string& before, const std::string& now) {
  return files::exists(before) == files::exists(now) && !files::is_same(before, now);
}

void compare(const Value& before, const Value& now, const std::string& key, ResumeChanges& out) {
  if (is_in(without_effect, key) || before == now) return;
  if (before.is_map() && now.is_map()) {
    for (const auto& [name, value] : now.entries)
      if (const Value* const old = before.find(name)) compare(*old, value, str(key, ".", name), out);
    return;
  }
  const bool name = key.ends_with(".name_or_path");
  if (name && files::exists(before.scalar) && files::is_same(before.scalar, now.scalar)) return;
  const bool stops = name ? is_other_model(before.scalar, now.scalar) : is_in(refused, key);
  (stops ? out.refused : out.noted).push_back({key, to_yaml_flow(before), to_yaml_flow(now)});
}

}  // namespace

std::string ResumeChanges::Change::text() const { return str(key, " ", before, " -> ", now); }

ResumeChanges resume_changes(const Value& before, const Value& now) {
  ResumeChanges out;
  for (const std::string_view section : sections) {
    const Value* const old = before.find(section);
    const Value* const value = now.find(section);
    if (old && value) compare(*old, *value, std::string(section), out);
  }
  return out;
}

std::string text_of(const std::vector<ResumeChanges::Change>& changes) {
  std::vector<std::string> texts;
  for (const ResumeChanges::Change& change : changes) texts.push_back(change.text());
  return join(texts, ", ");
}

}  // namespace easydel::train
