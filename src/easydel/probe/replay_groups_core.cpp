// Recorded runs of GRPOTrainer, GMPOTrainer and RLOOTrainer.
#include "easydel/probe/replay_groups.h"

#include <ATen/ops/tensor.h>

#include <limits>

#include "easydel/base/error.h"
#include "easydel/probe/replay_methods.h"
#include "easydel/probe/replay_rows.h"
#include "easydel/train/group_policy.h"
#include "easydel/train/grpo_config.h"
#include "easydel/train/rloo_config.h"
#include "easydel/train/sequence_logps.h"

namespace easydel::probe {
namespace {

void read_number(Arguments& arguments, const std::string& name, double& out) { out = arguments.number(name, out); }
void read_number(Arguments& arguments, const std::string& name, std::optional<double>& out) {
  if (const Value* value = arguments.take(name)) out = value->as_double();
}

std::vector<double> numbers(const Value* list) {
  std::vector<double> out;
  if (list)
    for (const Value& item : list->items)
      out.push_back(item.as_double().value_or(std::numeric_limits<double>::quiet_NaN()));
  return out;
}

train::GrpoKeys read_grpo(Arguments& arguments, bool geometric_mean) {
  train::GrpoKeys out;
  out.beta = 0;
  out.epsilon = geometric_mean ? 0.4 : 0.2;
  for (const auto& [name, value] : {std::pair{"beta", &out.beta},
                                    {"epsilon", &out.epsilon},
                                    {"top_entropy_quantile", &out.top_entropy_quantile},
                                    {"entropy_coef", &out.entropy_coef},
                                    {"entropy_coef_min", &out.entropy_coef_min},
                                    {"entropy_coef_max", &out.entropy_coef_max},
                                    {"entropy_coef_delta", &out.entropy_coef_delta},
                                    {"entropy_target", &out.entropy_target},
                                    {"sapo_temperature_neg", &out.sapo_temperature_neg},
                                    {"sapo_temperature_pos", &out.sapo_temperature_pos},
                                    {"vespo_k_pos", &out.vespo_k_pos},
                                    {"vespo_lambda_pos", &out.vespo_lambda_pos},
                                    {"vespo_k_neg", &out.vespo_k_neg},
                                    {"vespo_lambda_neg", &out.vespo_lambda_neg}})
    read_number(arguments, name, *value);
  read_number(arguments, "epsilon_high", out.epsilon_high);
  read_number(arguments, "delta", out.delta);
  read_number(arguments, "off_policy_mask_threshold", out.off_policy_mask_threshold);
  const Value* const corrected = arguments.take("use_bias_correction_kl");
  out.use_bias_correction_kl = !corrected || corrected->as_bool().value_or(true);
  out.use_adaptive_entropy = arguments.flag("use_adaptive_entropy");
  take_choice(arguments, "loss_type", out.loss_type);
  if (geometric_mean) out.loss_type = train::GrpoLoss::gmpo;
  take_choice(arguments, "importance_sampling_level", out.importance_sampling_level);
  take_choice(arguments, "scale_rewards", out.scale_rewards);
  take_choice(arguments, "multi_objective_aggregation", out.multi_objective_aggregation);
  return out;
}

train::RlooKeys read_rloo(Arguments& arguments) {
  train::RlooKeys out;
  read_number(arguments, "beta", out.beta);
  read_number(arguments, "epsilon", out.epsilon);
  read_number(arguments, "epsilon_high", out.epsilon_high);
  out.normalize_advantages = arguments.flag("normalize_advantages");
  if (const Value* range = arguments.take("reward_clip_range")) out.reward_clip_range = numbers(range);
  return out;
}

// What both trainers have: rollouts, window, reference.
template <class Config>
void read_shared(Arguments& arguments, Config& out) {
  out.rollouts.max_completion_length = arguments.integer("max_completion_length", 256);
  out.rollouts.num_return_sequences = arguments.integer("num_generations", 8);
  out.rollouts.mask_truncated_completions = arguments.flag("mask_truncated_completions");
  out.rollouts.temperature = arguments.number("temperature", 1);
  if (const Value* weights = arguments.take("reward_weights")) out.rollouts.reward_weights = numbers(weights);
  out.window.num_iterations = arguments.integer("num_iterations", 1);
  if (const Value* steps = arguments.take("steps_per_generation")) out.window.steps_per_generation = steps->as_int();
  out.reference.sync_ref_model = arguments.flag("sync_ref_model");
  out.reference.ref_model_mixup_alpha = arguments.number("ref_model_mixup_alpha", 0.6);
  out.reference.ref_model_sync_steps = arguments.integer("ref_model_sync_steps", 512);
}

// A number of each learned token, at the place of its label, from a padded row of the completion's tokens.
data::Column token_column(const char* name, const data::Example& example, const Value& row,
                          const std::vector<int64_t>& mask) {
  std::vector<float> values(example.tokens.size(), 0.0F);
  size_t next = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (example.labels[i] == data::no_label) continue;
    while (next < mask.size() && mask[next] == 0) ++next;
    values[i] = float(row.items.at(next++).as_double().value_or(0));
  }
  return {name, data::Column::Per::token, std::move(values)};
}

data::Column sequence_column(const char* name, double value) {
  return {name, data::Column::Per::sequence, std::vector<float>{float(value)}};
}

// The completion in a padded list of ids: what follows the last learned id is padding.
std::vector<int32_t> ids_of(const Value& row) {
  std::vector<int32_t> out;
  for (const Value& item : row.items) out.push_back(int32_t(item.as_int().value_or(0)));
  return out;
}

// How the recorded completions were sampled, and in which precision the head was computed, which is fp32 here.
void ignore_sampling(Arguments& arguments) {
  refuse_smoothing(arguments);
  arguments.ignore({"generation_batch_size", "num_generations_eval", "top_p", "top_k", "min_p", "generation_kwargs",
                    "chat_template_kwargs", "repetition_penalty", "max_tool_calling_iterations", "disable_dropout",
                    "cast_lm_head_to_fp32", "max_prompt_length"});
}

RecordedGenerations read_generations(const Value& document, const Value& config, const std::string& where) {
  RecordedGenerations out;
  const Value* const generations = document.find("generations");
  if (!generations) return out;
  const auto integer = [&](const char* name, int64_t otherwise) {
    const Value* const value = config.find(name);
    return value ? value->as_int().value_or(otherwise) : otherwise;
  };
  for (const Value& one : generations->items) {
    RecordedGenerations::One& generation = out.all.emplace_back();
    const Value *step = one.find("step"), *rewards = one.find("rewards"), *prompts = one.find("prompt_ids"),
                *completions = one.find("completion_ids");
    if (!step || !rewards || !prompts || !completions || prompts->items.size() != completions->items.size())
      refuse(where, "a generation needs step, rewards, prompt_ids and completion_ids");
    generation.step = step->as_int().value_or(0);
    std::vector<float> values(prompts->items.size() * rewards->entries.size());
    for (const auto& [name, list] : rewards->entries) {
      const size_t column = generation.rewards.names.size();
      const std::vector<double> of_name = numbers(&list);
      for (size_t i = 0; i < prompts->items.size(); ++i)
        values[i * rewards->entries.size() + column] = float(of_name.at(i));
      generation.rewards.names.push_back(name);
    }
    const std::vector<double> weights = numbers(config.find("reward_weights"));
    generation.rewards.weights = weights.empty() ? std::vector<double>(rewards->entries.size(), 1.0) : weights;
    generation.rewards.values = at::tensor(at::ArrayRef<float>(values), at::kFloat)
                                    .view({int64_t(prompts->items.size()), int64_t(rewards->entries.size())});
    generation.rewards.group = integer("num_generations", 8);
    // Padding is on the left of prompts and on the right of completions.
    const int32_t padding = 0, end = 2;
    for (size_t i = 0; i < prompts->items.size(); ++i) {
      std::vector<int32_t> ids = ids_of(prompts->items[i]), answer = ids_of(completions->items[i]);
      ids.erase(ids.begin(), std::ranges::find_if(ids, [&](int32_t id) { return id != padding; }));
      const auto ended = std::ranges::find(answer, end);
      const bool whole = ended != answer.end();
      if (whole) answer.erase(ended + 1, answer.end());
      const Value* const masked = config.find("mask_truncated_completions");
      generation.lengths.push_back({int64_t(answer.size()), whole});
      const bool learned = whole || !masked || !masked->as_bool().value_or(false);
      std::vector<uint8_t> learn(ids.size(), 0);
      ids.insert(ids.end(), answer.begin(), answer.end());
      learn.resize(ids.size(), learned ? 1 : 0);
      generation.completions.emplace_back().add_sequence(ids, learn);
    }
  }
  return out;
}

template <class Config>
void read_groups(Arguments& arguments, const Value& document, ReplayCase& to, std::shared_ptr<Config> keys) {
  read_shared(arguments, *keys);
  ignore_sampling(arguments);
  read_reference(document, to, arguments.where());
  to.trainer.use<Config>(keys);
  to.generations = read_generations(document, *document.find("config"), arguments.where());
}

template <bool geometric_mean>
void read_grpo_case(Arguments& arguments, const Value& document, ReplayCase& to) {
  auto keys = std::make_shared<train::GrpoConfig>();
  keys->own = read_grpo(arguments, geometric_mean);
  read_groups(arguments, document, to, keys);
}

void read_rloo_case(Arguments& arguments, const Value& document, ReplayCase& to) {
  auto keys = std::make_shared<train::RlooConfig>();
  keys->own = read_rloo(arguments);
  read_groups(arguments, document, to, keys);
}

// Prompts, padded on the left, what was sampled after them, padded on the right, and what the trainer knew of each.
std::vector<data::Example> completions(const Value& line, const std::string& where) {
  const auto prompts = required_rows(line, "prompt_ids", where),
             prompt_masks = required_rows(line, "prompt_mask", where);
  const auto answers = required_rows(line, "completion_ids", where),
             masks = required_rows(line, "completion_mask", where);
  const Value* const old = line.find("old_per_token_logps");
  const std::vector<float> advantages = floats_of(line, "advantages");
  const Value* const items = line.find("num_items_in_batch");
  std::vector<data::Example> out;
  for (size_t i = 0; i < prompts.size(); ++i) {
    std::vector<int64_t> ids = prompts[i], mask = prompt_masks[i], labels(ids.size(), data::no_label);
    ids.insert(ids.end(), answers.at(i).begin(), answers[i].end());
    labels.insert(labels.end(), answers[i].begin(), answers[i].end());
    mask.insert(mask.end(), masks.at(i).begin(), masks[i].end());
    data::Example& example = out.emplace_back(example_of(ids, &mask, labels));
    if (old) example.set(token_column(train::old_logps_column, example, old->items.at(i), masks[i]));
    example.set(sequence_column(train::advantages_column, advantages.at(i)));
    example.set(sequence_column(train::generation_items_column, items ? items->as_double().value_or(1) : 1));
  }
  return out;
}

}  // namespace

std::vector<ReplayMethod> replayed_groups() {
  return {{"GRPOTrainer", read_grpo_case<false>, completions},
          {"GMPOTrainer", read_grpo_case<true>, completions},
          {"RLOOTrainer", read_rloo_case, completions}};
}

namespace {

// Log-probabilities of completions, summed over their tokens, less those of the reference.
Tensor distances(const RecordedGenerations::One& generation, double temperature, const models::Model& model,
                 const models::Model& reference) {
  std::vector<const data::Example*> examples;
  for (const data::Example& example : generation.completions) examples.push_back(&example);
  const train::Batch batch = train::flat_batch(examples);
  const c10::AutoGradMode no_grad(false);
  train::Forwarding how;
  how.training = how.metrics = false;
  const nn::ScoreOptions scoring{.temperature = temperature};
  const auto of = [&](const models::Model& scored) {
    const train::SequenceScores scores = train::score_sequences(scored, batch, how, scoring);
    return scores.sums(scores.logps);
  };
  return of(model) - of(reference);
}

int64_t learned_tokens(const RecordedGenerations::One& generation) {
  int64_t out = 0;
  for (const data::Example& example : generation.completions) out += example.labelled();
  return out;
}

}  // namespace

JudgedGeneration judged(const RecordedGenerations::One& generation, const train::TrainerSection& section,
                        const models::Model& model, const models::Model* reference) {
  train::Advantages found;
  if (section.method().section == config::section_of<train::RlooConfig>) {
    const auto& config = section.own_as<train::RlooConfig>();
    train::LeaveOneOut options{config.own.reward_clip_range.value_or(std::vector<double>()),
                               config.own.normalize_advantages};
    Tensor apart;
    if (config.own.beta != 0 && reference) {
      apart = distances(generation, config.rollouts.temperature, model, *reference);
      options.penalty = config.own.beta * apart;
    }
    found = train::leave_one_out(generation.rewards, options);
    if (apart.defined())
      found.metrics.push_back(
          {"kl", apart.sum().item<double>(), double(std::max<int64_t>(1, learned_tokens(generation)))});
  } else {
    const auto& keys = section.own_as<train::GrpoConfig>().own;
    found = train::group_advantages(generation.rewards, keys.scale_rewards, keys.multi_objective_aggregation);
  }
  JudgedGeneration out{{}, std::move(found.metrics)};
  for (train::Metric& metric : train::length_metrics(generation.lengths)) out.metrics.push_back(std::move(metric));
  Value line = Value::map(), values = Value::list();
  line.set("step", Value::integer(generation.step));
  for (int64_t i = 0; i < found.values.size(0); ++i)
    values.items.push_back(Value::number(found.values[i].item<double>()));
  line.set("advantages", std::move(values));
  out.line = to_json(line) + "\n";
  return out;
}

}  // namespace easydel::probe
