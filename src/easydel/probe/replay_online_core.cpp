// Recorded runs of OnlineDPOTrainer, XPOTrainer and NashMDTrainer: pairs of completions with the rewards of both; and
// of PPOTrainer: completions with their rewards.
#include "easydel/base/error.h"
#include "easydel/probe/replay_methods.h"
#include "easydel/probe/replay_rows.h"
#include "easydel/train/nash_md_config.h"
#include "easydel/train/online_pairs.h"
#include "easydel/train/ppo_config.h"
#include "easydel/train/ppo_terms.h"
#include "easydel/train/sequence_logps.h"
#include "easydel/train/xpo_config.h"

namespace easydel::probe {
namespace {

// A number, or one for each epoch.
void read_numbers(Arguments& arguments, const char* name, config::Many<double>& to) {
  const Value* const value = arguments.take(name);
  if (!value) return;
  to.clear();
  if (!value->is_list())
    to.push_back(arguments.number(name, 0));
  else
    for (const Value& item : value->items) to.push_back(item.as_double().value_or(0));
}

template <class Config>
void read_shared(Arguments& arguments, const Value& document, ReplayCase& to, std::shared_ptr<Config> keys) {
  refuse_smoothing(arguments);
  read_numbers(arguments, "beta", keys->own.beta);
  keys->own.disable_dropout = arguments.flag("disable_dropout");
  if (const Value* penalty = arguments.take("missing_eos_penalty"))
    keys->own.missing_eos_penalty = penalty->as_double();
  // How the recorded completions were sampled and judged.
  arguments.ignore({"max_new_tokens", "temperature", "top_p", "top_k", "min_p", "repetition_penalty",
                    "generation_kwargs", "reward_weights", "reward_model_path", "judge", "dataset_num_proc",
                    "ds3_gather_for_generation"});
  // These recordings may describe the reference among their notes.
  const Value* const notes = document.find("notes");
  if (document.find("reference_model") || !notes)
    read_reference(document, to, arguments.where());
  else if (const auto scaled = scaled_weights(notes->scalar))
    to.reference = *scaled;
  to.trainer.use<Config>(keys);
}

void read_online_dpo(Arguments& arguments, const Value& document, ReplayCase& to) {
  auto keys = std::make_shared<train::OnlineDpoConfig>();
  take_choice(arguments, "loss_type", keys->own.loss_type);
  read_shared(arguments, document, to, std::move(keys));
}

void read_xpo(Arguments& arguments, const Value& document, ReplayCase& to) {
  auto keys = std::make_shared<train::XpoConfig>();
  take_choice(arguments, "loss_type", keys->own.loss_type);
  read_numbers(arguments, "alpha", keys->own.alpha);
  read_shared(arguments, document, to, std::move(keys));
}

void read_nash_md(Arguments& arguments, const Value& document, ReplayCase& to) {
  auto keys = std::make_shared<train::NashMdConfig>();
  read_numbers(arguments, "mixture_coef", keys->own.mixture_coef);
  arguments.ignore({"loss_type"});
  read_shared(arguments, document, to, std::move(keys));
}

void read_ppo(Arguments& arguments, const Value& document, ReplayCase& to) {
  auto keys = std::make_shared<train::PpoConfig>();
  train::PpoKeys& own = keys->own;
  refuse_smoothing(arguments);
  own.num_ppo_epochs = arguments.integer("num_ppo_epochs", 4);
  own.kl_coef = arguments.number("kl_coef", 0.05);
  take_choice(arguments, "kl_estimator", own.kl_estimator);
  own.cliprange = arguments.number("cliprange", 0.2), own.cliprange_value = arguments.number("cliprange_value", 0.2);
  own.vf_coef = arguments.number("vf_coef", 0.1);
  own.gamma = arguments.number("gamma", 1), own.lam = arguments.number("lam", 0.95);
  own.whiten_rewards = arguments.flag("whiten_rewards");
  if (const Value* penalty = arguments.take("missing_eos_penalty")) own.missing_eos_penalty = penalty->as_double();
  keys->rollouts.temperature = arguments.number("temperature", 0.7);
  if (const int64_t count = arguments.integer("num_mini_batches", 1); count != 1)
    arguments.not_built("num_mini_batches", str(count));
  // How the recorded completions were sampled and judged.
  arguments.ignore({"response_length", "stop_token", "stop_token_id", "total_episodes", "num_sample_generations",
                    "local_rollout_forward_batch_size", "reward_model_path", "ds3_gather_for_generation"});
  read_reference(document, to, arguments.where());
  to.trainer.use<train::PpoConfig>(keys);
}

std::vector<int32_t> attended(const std::vector<int64_t>& ids, const std::vector<int64_t>& mask) {
  std::vector<int32_t> out;
  for (size_t i = 0; i < ids.size(); ++i)
    if (mask.at(i)) out.push_back(int32_t(ids[i]));
  return out;
}

bool has_end(const std::vector<int32_t>& ids) {
  constexpr int32_t end = 2;  // the end token of the recorded runs
  return std::ranges::find(ids, end) != ids.end();
}

// All first completions, then all second ones.
template <bool learns_opponent>
std::vector<data::Example> pairs(const Value& line, const std::string& where) {
  const RecordedRows prompts = required_rows(line, "prompt_ids", where),
                     prompt_masks = required_rows(line, "prompt_mask", where),
                     completions = required_rows(line, "completion_ids", where),
                     masks = required_rows(line, "completion_mask", where);
  const std::vector<float> rewards = floats_of(line, "rewards");
  const size_t half = completions.size() / 2;
  if (completions.size() != 2 * half || rewards.size() != 2 * half || prompts.size() < half)
    refuse(where, "a line needs two completions of each prompt, with their rewards");
  std::vector<data::Example> out;
  for (size_t i = 0; i < half; ++i) {
    train::OnlinePairs::Pair pair{attended(prompts[i], prompt_masks[i]), attended(completions[i], masks[i]),
                                  attended(completions[half + i], masks[half + i])};
    for (const auto& [place, ids] : {std::pair{0, &pair.completion}, {1, &pair.opponent}}) {
      pair.rewards[place] = rewards[size_t(place) * half + i];
      pair.ended[place] = has_end(*ids);
    }
    out.push_back(train::OnlinePairs::example_of(pair, learns_opponent));
  }
  return out;
}

std::vector<data::Example> judged_completions(const Value& line, const std::string& where) {
  const RecordedRows prompts = required_rows(line, "prompt_ids", where),
                     prompt_masks = required_rows(line, "prompt_mask", where),
                     completions = required_rows(line, "completion_ids", where),
                     masks = required_rows(line, "completion_mask", where);
  const std::vector<float> rewards = floats_of(line, "rewards");
  if (completions.size() != prompts.size() || rewards.size() != prompts.size())
    refuse(where, "a line needs a completion of each prompt, with its reward");
  std::vector<data::Example> out;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const std::vector<int32_t> ids = attended(completions[i], masks.at(i));
    data::Example& example = out.emplace_back(train::learned_example(attended(prompts[i], prompt_masks.at(i)), ids));
    const auto set = [&](const char* name, float value) {
      example.set({name, data::Column::Per::example, std::vector<float>{value}});
    };
    set(train::ppo_reward_column, rewards[i]);
    set(train::ppo_ended_column, has_end(ids) ? 1 : 0);
  }
  return out;
}

}  // namespace

std::vector<ReplayMethod> replayed_online() {
  return {{"NashMDTrainer", read_nash_md, pairs<false>},
          {"OnlineDPOTrainer", read_online_dpo, pairs<true>},
          {"PPOTrainer", read_ppo, judged_completions},
          {"XPOTrainer", read_xpo, pairs<true>}};
}

}  // namespace easydel::probe
