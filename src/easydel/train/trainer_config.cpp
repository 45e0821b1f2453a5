#include "easydel/train/trainer_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/base/regular_expression.h"
#include "easydel/config/paths.h"
#include "easydel/train/method_configs.h"

namespace easydel::train {
namespace {

bool is_regex(const std::string& pattern) {
  try {
    RegularExpression{pattern};
    return true;
  } catch (const InvalidRegularExpression&) {
    return false;
  }
}

// What a loss on logits can have, and a training step cannot, or not yet.
// Whether the path, put below a folder, is in that folder.
bool stays_below(const std::filesystem::path& path) {
  return path.is_relative() && std::find(path.begin(), path.end(), "..") == path.end() && path != ".";
}

void settle_loss(const LossConfig& loss, const std::string& method, config::Keys keys) {
  const MethodConfig* const known = find_method_config(method);
  if (known && !known->facts.token_loss)
    for (const char* key : {"ignore_index", "label_smoothing", "z_loss", "loss_normalizing_factor", "reduction",
                            "divide_weight_sum", "shift_tokens"})
      if (keys.given(key)) keys.no_effect(key, "with trainer_type " + method);
  const auto refuse = [&](const char* key, const char* what) { keys.refuse(key, str(what, " is not built yet")); };
  if (loss.reduction == Reduction::none)
    keys.refuse("reduction", "a training step needs one number", "use mean, sum or null");
  const auto* named = loss.loss_normalizing_factor ? std::get_if<Normalizer>(&*loss.loss_normalizing_factor) : nullptr;
  if (loss.divide_weight_sum && named && *named == Normalizer::total_target_tokens)
    refuse("divide_weight_sum", "dividing twice with NUM_TOTAL_TARGET_TOKENS");
  if (loss.num_labels || loss.num_classification_labels || loss.problem_type || loss.classification_problem_type)
    refuse(loss.num_labels                  ? "num_labels"
           : loss.num_classification_labels ? "num_classification_labels"
           : loss.problem_type              ? "problem_type"
                                            : "classification_problem_type",
           "training classifiers");
}

void settle_schedule(const TrainerConfig& c, config::Keys& keys) {
  using enum Scheduler;
  if (c.learning_rate_end && c.scheduler != linear && c.scheduler != cosine)
    keys.no_effect("learning_rate_end", c.scheduler == none ? "the rate does not fall with scheduler: none"
                                                            : "this scheduler's end is among scheduler_kwargs");
  if (c.warmup_ratio > 0 && c.warmup_steps > 0) keys.no_effect("warmup_ratio", "warmup_steps is given");
  const SchedulerArguments& more = c.scheduler_kwargs;
  config::Keys of_kwargs = keys.below("scheduler_kwargs");
  const auto only_for = [&](std::initializer_list<const char*> names, std::initializer_list<Scheduler> words) {
    for (const char* name : names)
      if (of_kwargs.given(name) && std::ranges::find(words, c.scheduler) == words.end())
        of_kwargs.no_effect(name, "with this scheduler");
  };
  only_for({"num_cycles"},
           {cosine, cosine_with_restarts, cosine_with_min_lr, cosine_warmup_with_min_lr, warmup_stable_decay});
  only_for({"power", "lr_end"}, {polynomial});
  only_for({"min_lr"}, {cosine, cosine_with_min_lr, cosine_warmup_with_min_lr, reduce_on_plateau});
  only_for({"min_lr_rate"}, {cosine, cosine_with_min_lr, cosine_warmup_with_min_lr});
  only_for({"warmup_lr_rate"}, {cosine_warmup_with_min_lr});
  only_for({"timescale"}, {inverse_sqrt});
  only_for({"min_lr_ratio", "num_decay_steps", "num_stable_steps", "warmup_type", "decay_type"}, {warmup_stable_decay});
  only_for({"factor", "threshold", "eps", "patience", "cooldown", "threshold_mode"}, {reduce_on_plateau});
  if (c.scheduler == warmup_stable_decay && !more.num_decay_steps)
    of_kwargs.refuse("num_decay_steps", "is missing: warmup_stable_decay needs it", "give the steps of the fall");
  if (c.scheduler == polynomial && more.lr_end.value_or(1e-7) >= c.learning_rate)
    of_kwargs.refuse("lr_end", str(more.lr_end.value_or(1e-7), " is not below learning_rate, ", c.learning_rate),
                     "give a lower end");
  for (size_t i = 0; i < c.learning_rates.size(); ++i) {
    const std::string key = str("learning_rates[", i, "]");
    const LearningRate& one = c.learning_rates[i];
    if (one.pattern.empty())
      keys.refuse(key, "has no pattern", "give a regular expression that finds parameters");
    else if (!is_regex(one.pattern))
      keys.refuse(key, "'" + one.pattern + "' is not a regular expression", "for example: embed_tokens|lm_head");
    if (one.rate && c.learning_rate == 0)
      keys.refuse(key, "its rate follows the schedule of learning_rate, which is 0", "give a learning_rate above 0");
  }
}

void settle_best_model(const TrainerConfig& c, config::Keys& keys) {
  const auto needs = [&](bool used, const char* key, const char* what) {
    if (used && !c.do_eval && !c.evaluation_steps)
      keys.refuse(key, str(what, " needs evaluations"),
                  "set do_eval: true or evaluation_steps, and give held-out data");
  };
  const bool plateau = c.scheduler == Scheduler::reduce_on_plateau;
  needs(c.early_stopping_patience.has_value(), "early_stopping_patience", "early stopping");
  needs(c.load_best_model_at_end, "load_best_model_at_end", "knowing the best model");
  needs(plateau, "scheduler", "reduce_on_plateau");
  if (c.early_stopping_threshold > 0 && !c.early_stopping_patience)
    keys.no_effect("early_stopping_threshold", "early_stopping_patience is not given");
  if (c.early_stopping_patience || c.load_best_model_at_end || plateau) return;
  for (const char* key : {"metric_for_best_model", "greater_is_better"})
    if (keys.given(key))
      keys.no_effect(key, "neither early stopping, load_best_model_at_end nor reduce_on_plateau is used");
}

}  // namespace

std::optional<double> seconds_of(const std::string& text) {
  static constexpr std::pair<std::string_view, double> units[] = {{"d", 86400}, {"h", 3600}, {"hr", 3600}, {"min", 60},
                                                                  {"m", 60},    {"sec", 1},  {"s", 1}};
  double total = 0, smaller_than = std::numeric_limits<double>::infinity();
  const char *at = text.data(), *const end = at + text.size();
  do {  // "1h30m": a number and its unit, units falling
    while (at != end && *at == ' ') ++at;
    double number = 0;
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc() || !(number >= 0) || std::isinf(number)) return std::nullopt;
    at = std::find_if_not(stop, end, [](char c) { return c == ' '; });
    const char* const unit_end = std::find_if_not(at, end, [](char c) { return c >= 'a' && c <= 'z'; });
    const auto unit =
        std::ranges::find(units, std::string_view(at, unit_end), &std::pair<std::string_view, double>::first);
    if (unit == std::end(units) || unit->second >= smaller_than) return std::nullopt;
    total += number * unit->second;
    smaller_than = unit->second;
    at = unit_end;
  } while (at != end);
  return total;
}

void check_update_divides(const TrainerConfig& config, int64_t ranks) {
  const int64_t parts = config.gradient_accumulation_steps * ranks;
  if (config.total_batch_size % parts != 0)
    refuse("trainer.total_batch_size",
           str(config.total_batch_size, " examples cannot be divided by ", ranks, " ranks and ",
               config.gradient_accumulation_steps, " micro-batches (gradient_accumulation_steps)"),
           str("give a multiple of ", parts));
}

std::vector<Value> generation_prompts(const TrainerConfig& config) {
  const Value& given = config.generation_prompts;
  if (given.is_null()) return {};
  const bool conversation = given.is_list() && !given.items.empty() && given.items.front().is_map();
  if (given.is_list() && !conversation) return given.items;
  return {given};
}

namespace {

// A message as far as it can be told without a template.
bool is_message(const Value& value) { return value.is_map() && value.find("role") && value.find("content"); }

void settle_previews(const TrainerConfig& c, config::Keys& keys) {
  for (const Value& prompt : generation_prompts(c))
    if (!prompt.as_string() &&
        !(prompt.is_list() && !prompt.items.empty() && std::ranges::all_of(prompt.items, is_message)))
      keys.refuse("generation_prompts", str(to_yaml_flow(prompt), " is neither a text nor a list of messages"),
                  "for example [\"Once upon a time\", [{role: user, content: Hello}]]");
  if (!c.generation_interval) {
    for (const char* key :
         {"generation_prompts", "generation_use_train_prompts", "generation_num_prompts", "generation_temperature",
          "generation_top_p", "generation_top_k", "generation_max_new_tokens"})
      if (keys.given(key)) keys.no_effect(key, "without generation_interval");
  } else if (!c.generation_use_train_prompts && generation_prompts(c).empty()) {
    keys.refuse("generation_interval", "there is no prompt to generate from",
                "give generation_prompts, or generation_use_train_prompts: true");
  }
}

void settle_patterns(const TrainerConfig& c, config::Keys& keys) {
  const std::optional<std::string> histograms = c.weight_distribution_pattern;
  for (const auto& [name, pattern] : {std::pair{"frozen_parameters", &c.frozen_parameters},
                                      std::pair{"weight_decay_pattern", &c.weight_decay_pattern},
                                      std::pair{"weight_distribution_pattern", &histograms}})
    if (*pattern && !is_regex(**pattern))
      keys.refuse(name, "'" + **pattern + "' is not a regular expression",
                  "for example: \"embed_tokens|layers\\.0\\.\"");
}

// bf16 is for a mean of gradients that the rule keeps in fp32.
void settle_first_moment(const TrainerConfig& c, config::Keys& keys) {
  using enum OptimizerName;
  static constexpr std::array with_moment{adamw, adamax, ademamix, lion, mars, muon, nadam, quad, radam, skew, soap};
  if (c.tx_mu_dtype == MomentDType::fp32 || std::ranges::count(with_moment, c.optimizer) > 0) return;
  std::vector<std::string> names;
  for (const OptimizerName one : with_moment) names.emplace_back(config::word_of(one));
  keys.refuse("tx_mu_dtype",
              str(config::word_of(c.optimizer),
                  " keeps no first moment in fp32, so there is none to "
                  "shorten"),
              "leave it out, or use " + join(names, ", "));
}

void settle_benchmarks(const TrainerConfig& c, config::Keys& keys) {
  if (!c.benchmarks.empty()) return;
  for (const char* key : {"benchmark_interval", "benchmark_errors"})
    if (keys.given(key)) keys.no_effect(key, "without benchmarks");
}

}  // namespace

void TrainerConfig::settle(config::Keys& keys) {
  if (!quantization_mode && (quantization_group_size || quantization_bits))
    keys.refuse(quantization_bits ? "quantization_bits" : "quantization_group_size",
                "has no effect without quantization_mode", "give quantization_mode, too");
  if (!quantization_mode && !quantization_pattern.empty())
    keys.refuse("quantization_pattern", "has no effect without quantization_mode", "give quantization_mode, too");
  settle_previews(*this, keys);
  settle_benchmarks(*this, keys);
  settle_first_moment(*this, keys);
  if (model_name && (model_name->empty() || !stays_below(*model_name)))
    keys.refuse("model_name",
                model_name->empty() ? "is empty" : "'" + *model_name + "' is not a folder below save_directory",
                "give a name, or leave the key out to use that of the model");
  config::expand_path(save_directory, keys, "save_directory");
  if (loss_config) settle_loss(*loss_config, canonical(trainer_type), keys.below("loss_config"));
  if (total_batch_size % gradient_accumulation_steps != 0)
    keys.refuse("total_batch_size",
                str("an update of ", total_batch_size, " examples does not divide into ", gradient_accumulation_steps,
                    " accumulation steps"),
                str("make it a multiple of gradient_accumulation_steps, such as ",
                    (total_batch_size / gradient_accumulation_steps + 1) * gradient_accumulation_steps));
  if (max_training_steps && warmup_steps > 0 && warmup_steps >= *max_training_steps)
    keys.note("warmup_steps", str("a warm-up of ", warmup_steps, " steps does not end within ", *max_training_steps,
                                  " steps; the rate never reaches learning_rate"));
  settle_schedule(*this, keys);
  settle_best_model(*this, keys);
  if (learning_rate_end && *learning_rate_end > learning_rate)
    keys.refuse("learning_rate_end", str(*learning_rate_end, " is above learning_rate, ", learning_rate));
  if (training_time_limit && !seconds_of(*training_time_limit))
    keys.refuse("training_time_limit", "'" + *training_time_limit + "' is not a duration",
                "use 30s, 50min, 23h or 1h30m");
  settle_patterns(*this, keys);
  if (lmhead_chunksize) {
    if (!loss_config) loss_config.emplace();
    if (loss_config->chunk_token_size && *loss_config->chunk_token_size != *lmhead_chunksize)
      keys.refuse(
          "lmhead_chunksize",
          str(*lmhead_chunksize, " here and ", *loss_config->chunk_token_size, " in loss_config.chunk_token_size"),
          "they are the same thing; keep one of them");
    loss_config->chunk_token_size = lmhead_chunksize;
  }
  if (per_epoch_evaluation_steps && !max_evaluation_steps) max_evaluation_steps = per_epoch_evaluation_steps;
  if (!evaluation_steps && !eval_on_start) return;
  if (!keys.given("do_eval")) do_eval = true;
  const bool benchmarked = !evaluation_steps && !benchmarks.empty();  // eval_on_start is theirs, too
  if (!do_eval && !benchmarked)
    keys.no_effect(evaluation_steps ? "evaluation_steps" : "eval_on_start", "do_eval is false");
}

}  // namespace easydel::train
