// A reward that a child process computes: a line of JSON for each completion goes in, a line with its number comes
// back.
#include "easydel/base/error.h"
#include "easydel/train/grpo_config.h"
#include "easydel/train/line_programs.h"
#include "easydel/train/rewards.h"

namespace easydel::train {
namespace {

class Program final : public CompletionReward {
 public:
  Program(const std::string& name, const RewardEntry& entry)
      : programs_({.where = "trainer.rewards: program '" + name + "'",
                   .command = entry.command,
                   .workers = entry.workers,
                   .timeout_seconds = entry.timeout_seconds,
                   .field = reward_word,
                   .questions = "completions to judge"}) {}

  std::vector<std::optional<double>> score(std::span<const Judged> completions) override {
    std::vector<LinePrograms::Question> questions;
    for (size_t i = 0; i < completions.size(); ++i)
      questions.push_back({document_of(completions[i], programs_.next_id() + int64_t(i)), i});
    std::vector<std::optional<double>> out;
    feedback_.clear();
    for (const Value& answer : programs_.ask(questions, problem_of)) {
      out.push_back(answer.find(reward_word)->as_double());
      const Value* const said = answer.find(feedback_word);
      feedback_.push_back(said && said->is_text() ? said->scalar : std::string());
    }
    return out;
  }
  std::vector<std::string> feedback() const override { return feedback_; }

 private:
  static std::string problem_of(const Value& answer) {
    const Value& reward = *answer.find(reward_word);
    if (!reward.is_null() && !reward.as_double()) return "answered a reward that is neither a number nor null";
    const Value* const said = answer.find(feedback_word);
    return !said || said->is_null() || said->is_text() ? "" : "answered feedback that is neither a text nor null";
  }

  static constexpr const char* feedback_word = "feedback";

  LinePrograms programs_;
  std::vector<std::string> feedback_;
};

}  // namespace

std::unique_ptr<CompletionReward> program_reward(const std::string& name, const RewardEntry& entry) {
  return std::make_unique<Program>(name, entry);
}

}  // namespace easydel::train
