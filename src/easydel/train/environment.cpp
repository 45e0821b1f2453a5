#include "easydel/train/environment.h"

#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/train/grpo_config.h"
#include "easydel/train/line_programs.h"

namespace easydel::train {
namespace {

constexpr const char* where = "trainer.environment";

// What is wrong with an answer; empty: nothing.
std::string problem_of(const Value& answer) {
  const Value& messages = *answer.find("messages");
  if (!messages.is_list()) return "answered messages that are not a list";
  for (const Value& message : messages.items) {
    const Value* const role = message.is_map() ? message.find("role") : nullptr;
    const Value* const content = message.is_map() ? message.find("content") : nullptr;
    if (!role || !role->is_text() || !content || !content->is_text())
      return "answered a message without a text as role and as content";
  }
  const Value *const reward = answer.find(reward_word), *const done = answer.find("done");
  if (reward && (!reward->as_double() || !std::isfinite(*reward->as_double())))
    return "answered a reward that is not a finite number";
  if (done && !done->as_bool()) return "answered done that is neither true nor false";
  return {};
}

class ProgramEnvironment final : public Environment {
 public:
  explicit ProgramEnvironment(const EnvironmentConfig& config)
      : programs_({.where = where,
                   .command = config.command,
                   .workers = config.workers,
                   .timeout_seconds = config.timeout_seconds,
                   .field = "messages",
                   .questions = "turns to answer"}) {}

  std::vector<EnvironmentAnswer> begin(std::span<const Beginning> episodes) override {
    questions_.clear();
    for (const Beginning& one : episodes) {
      Value& question = add(one.episode);
      question.set("seed", Value::integer(int64_t(one.seed >> 1)));
      question.set("row", one.row);
    }
    return answers();
  }
  std::vector<EnvironmentAnswer> step(std::span<const Turn> turns) override {
    questions_.clear();
    for (const Turn& turn : turns) add(turn.episode).set("message", turn.message);
    return answers();
  }

 private:
  Value& add(size_t episode) {
    Value question = Value::map();
    question.set("id", Value::integer(programs_.next_id() + int64_t(questions_.size())));
    question.set("episode", Value::integer(int64_t(episode)));
    return questions_.emplace_back(std::move(question), episode).document;
  }
  std::vector<EnvironmentAnswer> answers() {
    std::vector<EnvironmentAnswer> out;
    for (Value& answer : programs_.ask(questions_, problem_of)) {
      EnvironmentAnswer& one = out.emplace_back();
      one.messages = std::move(answer.find("messages")->items);
      if (const Value* const reward = answer.find(reward_word)) one.reward = *reward->as_double();
      if (const Value* const done = answer.find("done")) one.done = *done->as_bool();
    }
    return out;
  }

  LinePrograms programs_;
  std::vector<LinePrograms::Question> questions_;
};

std::map<std::string, MakeEpisode>& environments() {
  static std::map<std::string, MakeEpisode> known;
  return known;
}

class PluginEnvironment final : public Environment {
 public:
  explicit PluginEnvironment(const std::string& name) {
    const auto found = environments().find(name);
    if (found == environments().end()) {
      std::vector<std::string> known;
      for (const auto& [other, make] : environments()) known.push_back(other);
      refuse(str(where, ".function"), "no plug-in has an environment '" + name + "'",
             known.empty() ? "load its plug-in with --plugin" : "known: " + join(known, ", "));
    }
    make_ = found->second;
  }
  std::vector<EnvironmentAnswer> begin(std::span<const Beginning> episodes) override {
    std::vector<EnvironmentAnswer> out;
    for (const Beginning& one : episodes) {
      auto& episode = episodes_[one.episode] = make_();
      out.push_back(episode->begin(one.row, one.seed));
    }
    return out;
  }
  std::vector<EnvironmentAnswer> step(std::span<const Turn> turns) override {
    std::vector<EnvironmentAnswer> out;
    for (const Turn& turn : turns) out.push_back(episodes_.at(turn.episode)->step(turn.message));
    return out;
  }

 private:
  MakeEpisode make_ = nullptr;
  std::map<size_t, std::unique_ptr<EnvironmentEpisode>> episodes_;
};

}  // namespace

std::unique_ptr<Environment> build_environment(const EnvironmentConfig& config) {
  if (config.type == EnvironmentType::plugin) return std::make_unique<PluginEnvironment>(*config.function);
  return std::make_unique<ProgramEnvironment>(config);
}

void register_environment(const std::string& name, MakeEpisode make) {
  if (!environments().emplace(name, make).second)
    refuse(str(where, ".function"), "an environment '" + name + "' is there already", "give it another name");
}

}  // namespace easydel::train
