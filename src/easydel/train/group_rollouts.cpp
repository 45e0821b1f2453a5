#include "easydel/train/group_rollouts.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/train/joint_error.h"
#include "easydel/train/model_reward.h"
#include "easydel/train/shared_environment.h"

namespace easydel::train {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t patience = 10;  // generations without any reward before the run ends
constexpr size_t shown = 3;       // completions that log_completions logs

generation::GenerationConfig generation_of(const GroupRollouts::Setup& setup) {
  const RolloutKeys& keys = setup.keys;
  generation::GenerationConfig out = generation::generation_config(
      setup.model.folder(), keys.generation_kwargs.is_null() ? generation::GenerationConfig()
                                                             : generation::read_generation(keys.generation_kwargs));
  if (out.eos_token_id.empty() && setup.tokenizer->eos_id()) out.eos_token_id = {*setup.tokenizer->eos_id()};
  out.do_sample = true;
  out.num_beams = 1;
  out.temperature = keys.temperature;
  out.top_p = keys.top_p;
  out.top_k = keys.top_k.value_or(0);
  out.min_p = keys.min_p.value_or(0);
  out.presence_penalty = keys.presence_penalty;
  out.frequency_penalty = keys.frequency_penalty;
  out.repetition_penalty = keys.repetition_penalty;
  out.max_new_tokens = keys.max_completion_length;
  out.num_return_sequences = keys.num_return_sequences;
  return out;
}

// The prompts of an evaluation are counted through its batches, so that draws do not depend on their size.
uint64_t seed_of(uint64_t seed, int64_t index, size_t prompt, bool opponent) {
  return index < 0 ? draw_seed(seed, -1, uint64_t(-1 - index) + prompt, opponent)
                   : draw_seed(seed, index, prompt, opponent);
}

void add_lengths(Rollouts& rollouts) {
  std::vector<CompletionLength> lengths;
  for (const Sample& sample : rollouts.samples) lengths.push_back({int64_t(sample.ids.size()), sample.ended()});
  for (Metric& metric : length_metrics(lengths)) rollouts.metrics.push_back(std::move(metric));
}

class Judges final : public ModelRewards {
 public:
  explicit Judges(const std::vector<SideModel>& section) : section_(section) {}
  std::unique_ptr<CompletionReward> build(const std::string* folder, const std::string& where) const override {
    return folder ? folder_reward(*folder, where) : model_reward(section_.at(0), where);
  }
  bool has_section() const override { return !section_.empty(); }

 private:
  const std::vector<SideModel>& section_;
};

std::vector<NamedReward> rewards_of(const GroupRollouts::Setup& setup) {
  const Judges judges(setup.judges);
  std::vector<NamedReward> out = build_rewards(setup.keys.rewards, &judges);
  if (out.empty() && !(setup.episodes && setup.episodes->has_environment()))
    refuse("trainer.rewards", "is missing, so no completion is worth more than another",
           "name at least one, such as [{type: answer}], or give the section reward_model");
  return out;
}

}  // namespace

int64_t PromptRows::add(Row row) {
  const std::string text = to_json(row.fields);
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) hash = (hash ^ uint8_t(c)) * 0x100000001b3;
  const auto number = int64_t(hash >> 1);
  const std::scoped_lock lock(adding_);
  rows_.try_emplace(number, std::move(row));
  return number;
}

const PromptRows::Row& PromptRows::at(int64_t number) const {
  const auto found = rows_.find(number);
  check(found != rows_.end(), "no row ", number);
  return found->second;
}

bool PromptRows::lack(const std::string& field) const {
  const auto has = [&](const auto& row) { return has_right_answer(row.second.fields, field); };
  return !rows_.empty() && std::ranges::none_of(rows_, has);
}

GroupRollouts::GroupRollouts(const Setup& setup)
    : model_(setup.model),
      tokenizer_(setup.tokenizer),
      rows_(setup.rows),
      keys_(setup.keys),
      seed_(setup.seed),
      generation_(generation_of(setup)),
      episodes_(setup.episodes),
      rewards_(rewards_of(setup)) {
  if (keys_.reward_weights && keys_.reward_weights->size() != rewards_.size())
    refuse("trainer.reward_weights",
           str("has ", keys_.reward_weights->size(), " weights for ", counted(int64_t(rewards_.size()), reward_word)),
           "give one weight for each entry of trainer.rewards");
  for (size_t i = 0; keys_.reward_weights && i < rewards_.size(); ++i) rewards_[i].weight = (*keys_.reward_weights)[i];
  for (const RewardEntry& entry : keys_.rewards)
    if (entry.type == RewardType::answer && rows_.lack(entry.answer_key))
      refuse(str("trainer.rewards: ", entry.name.value_or("answer")),
             str("no row has a field '", entry.answer_key, "' with the right answer"),
             "name the rows' own field by answer_key");
}

std::string GroupRollouts::text_of(const std::vector<int32_t>& ids) const { return tokenizer_->decode(ids, true); }

// What the rewards said of each completion in their last answers, joined; the first rank's on all ranks.
std::vector<std::string> GroupRollouts::feedback(size_t count) const {
  Value all = Value::list();
  for (const NamedReward& one : rewards_) {
    const std::vector<std::string> said = one.reward->feedback();
    if (said.size() != count) continue;
    all.items.resize(count, Value::text(""));
    for (size_t i = 0; i < count; ++i)
      if (!said[i].empty()) all.items[i].scalar += (all.items[i].scalar.empty() ? "" : "\n") + said[i];
  }
  const collective::Group ranks = model_.team().all();
  if (!ranks.alone()) all = parse_json(text_of_first_rank(to_json(all), ranks), "feedback of the first rank");
  std::vector<std::string> out;
  for (const Value& one : all.items) out.push_back(one.scalar);
  return out;
}

void GroupRollouts::judge(Rollouts& rollouts) {
  const size_t count = rollouts.samples.size(), group = count / rollouts.prompts.size();
  RewardTable& table = rollouts.rewards;
  table.group = int64_t(group);
  const bool answers_turns = episodes_ && episodes_->has_environment();
  if (answers_turns) table.names.emplace_back("environment"), table.weights.push_back(1);
  for (const NamedReward& one : rewards_) table.names.push_back(one.name), table.weights.push_back(one.weight);
  const size_t columns = table.names.size(), first = columns - rewards_.size();
  std::vector<float> values(count * columns, 0);
  std::vector<std::string> prompts, completions;
  for (size_t i = 0; i < count; ++i) {
    if (rollouts.episodes.empty()) {
      if (i % group == 0) prompts.push_back(text_of(rollouts.prompts[i / group]->tokens));
      completions.push_back(text_of(rollouts.samples[i].ids));
      continue;
    }
    const Episode& episode = rollouts.episodes[i];
    prompts.push_back(text_of(episode.prompt));
    completions.push_back(episode.answer);
    table.turns.push_back(episode.turn_rewards);
    if (answers_turns)
      values[i * columns] = float(std::accumulate(episode.turn_rewards.begin(), episode.turn_rewards.end(), 0.0));
  }
  std::vector<Judged> judged;
  for (size_t i = 0; i < count; ++i) {
    const auto& number = std::get<std::vector<int64_t>>(rollouts.prompts[i / group]->find(row_column)->values);
    const PromptRows::Row& row = rows_.at(number.at(0));
    const std::string& prompt = prompts[rollouts.episodes.empty() ? i / group : i];
    judged.push_back({row.fields, prompt, completions[i], rollouts.samples[i].ids, row.prompt});
    table.rows.push_back(&row.fields);
  }
  const auto score = [&](size_t r) {
    if (!model_.team().first() && !rewards_[r].on_all_ranks) return;
    const auto answers = rewards_[r].reward->score(judged);
    const std::string where = "trainer.rewards: " + rewards_[r].name;
    if (answers.size() != count)
      refuse(where, str("gave ", answers.size(), " answers for ", count, " completions"), "give one for each");
    for (size_t i = 0; i < count; ++i) {
      if (answers[i] && !std::isfinite(*answers[i]))
        refuse(where, str("gave ", *answers[i], " for a completion of the row ", to_json(judged[i].row).substr(0, 200)),
               "give a finite number, or null if the reward does not count");
      values[i * columns + first + r] = answers[i] ? float(*answers[i]) : nan;
    }
  };
  for (size_t r = 0; r < rewards_.size(); ++r) together(model_.team().all(), [&] { score(r); });
  rollouts.feedback = feedback(count);
  table.values = at::tensor(at::ArrayRef<float>(values), at::kFloat).view({int64_t(count), int64_t(columns)});
  model_.team().all().broadcast(table.values, 0);
  if (rollouts.index < 0) return;
  without_rewards_ = at::isnan(table.values).all().item<bool>() ? without_rewards_ + 1 : 0;
  if (without_rewards_ == patience)
    refuse("trainer.rewards", str("all rewards were null in ", patience, " generations after each other"),
           "check that the rows have the fields that the rewards read");
  if (without_rewards_ > 0) log::warning("all rewards of this generation are null: nothing can be learned from it");
}

std::vector<Sample> GroupRollouts::sampled(const Completer& completer, bool opponent, int64_t index,
                                           const std::vector<const data::Example*>& prompts) const {
  std::vector<SampleRequest> requests;
  for (const data::Example* prompt : prompts)
    requests.push_back({prompt->tokens, seed_of(seed_, index, requests.size(), opponent)});
  generation::GenerationConfig config = generation_;
  config.num_return_sequences = completer.each;
  return completer.sampler->sample(requests, config);
}

void GroupRollouts::add_episodes(Rollouts& out, const Completer& completer) {
  std::vector<EpisodeStart> starts;
  for (const data::Example* prompt : out.prompts) {
    const auto& number = std::get<std::vector<int64_t>>(prompt->find(row_column)->values);
    const PromptRows::Row& row = rows_.at(number.at(0));
    starts.push_back(
        {.prompt = prompt->tokens,
         .row = row.fields,
         .messages = row.prompt,
         .options = {.tools = row.tools.is_null() ? keys_.tools : row.tools,
                     .extra = row.template_arguments.is_null() ? keys_.chat_template_kwargs : row.template_arguments},
         .seed = seed_of(seed_, out.index, starts.size(), false)});
  }
  out.episodes =
      episodes_->run(starts, completer.each, [&](const std::vector<SampleRequest>& requests, int64_t results) {
        generation::GenerationConfig config = generation_;
        config.num_return_sequences = results;
        return completer.sampler->sample(requests, config);
      });
  double turns = 0;
  for (Episode& episode : out.episodes) {
    turns += double(episode.turn_rewards.size());
    out.samples.push_back(std::move(episode.sample));
  }
  out.metrics.push_back({"episodes/mean_turns", turns / double(out.episodes.size()), 1});
}

Rollouts GroupRollouts::make(Completer completer, int64_t index, std::vector<const data::Example*> prompts) {
  if (episodes_) {
    Rollouts out;
    out.index = index;
    out.prompts = std::move(prompts);
    add_episodes(out, completer);
    add_lengths(out);
    judge(out);
    return out;
  }
  return make({completer, Completer{}}, index, std::move(prompts));
}

Rollouts GroupRollouts::make(std::array<Completer, 2> completers, int64_t index,
                             std::vector<const data::Example*> prompts) {
  Rollouts out;
  out.index = index;
  out.prompts = std::move(prompts);
  std::vector<Sample> made[2];
  for (size_t c = 0; c < 2; ++c)
    if (completers[c].sampler) made[c] = sampled(completers[c], c == 1, index, out.prompts);
  for (size_t p = 0; p < out.prompts.size(); ++p)
    for (std::vector<Sample>& samples : made) {
      const size_t each = samples.size() / out.prompts.size();
      std::move(samples.begin() + static_cast<std::ptrdiff_t>(p * each),
                samples.begin() + static_cast<std::ptrdiff_t>((p + 1) * each), std::back_inserter(out.samples));
    }
  add_lengths(out);
  judge(out);
  return out;
}

void GroupRollouts::record(const Rollouts& rollouts, const std::filesystem::path& folder, int64_t step,
                           const std::vector<float>& advantages) {
  if (!model_.team().first()) return;
  if (!records_ && !folder.empty()) records_.emplace(folder / "rollouts.jsonl", step - 1);
  const Tensor& values = rollouts.rewards.values;
  for (size_t i = 0; i < rollouts.samples.size(); ++i) {
    const Sample& sample = rollouts.samples[i];
    Value line = Value::map(), ids = Value::list(), rewards = Value::map();
    for (const int32_t id : sample.ids) ids.items.push_back(Value::integer(id));
    for (size_t r = 0; r < rollouts.rewards.names.size(); ++r) {
      const auto value = values[int64_t(i)][int64_t(r)].item<double>();
      rewards.set(rollouts.rewards.names[r], std::isnan(value) ? Value() : Value::number(value));
    }
    line.set("step", Value::integer(step));
    line.set("prompt", Value::text(text_of(rollouts.prompt_of(i))));
    line.set("completion", Value::text(text_of(sample.ids)));
    line.set("ids", std::move(ids));
    line.set("rewards", std::move(rewards));
    if (!rollouts.episodes.empty()) {
      Value turns = Value::list();
      for (const double reward : rollouts.episodes[i].turn_rewards) turns.items.push_back(Value::number(reward));
      line.set("turn_rewards", std::move(turns));
    }
    line.set("advantage", Value::number(double(advantages[i])));
    line.set("reason", Value::text(std::string(generation::name_of(sample.reason))));
    if (keys_.log_completions && i < shown) log::info("rollout ", to_json(line));
    if (records_) records_->add(line);
  }
}

}  // namespace easydel::train
