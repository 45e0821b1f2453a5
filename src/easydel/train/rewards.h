// Rewards of sampled completions: the face that they implement, and those of `trainer.rewards`. No torch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/train/rewards_config.h"

namespace easydel::train {

// A completion that is to be judged.
struct Judged {
  const Value& row;  // every field of its row, a map
  std::string_view prompt, completion;
  std::span<const int32_t> ids;  // of the completion, including the end token
  const Value& asked = row;      // the prompt as its row has it: a text, or a list of messages
};
// As a program or a service gets it.
Value document_of(const Judged& one, int64_t id);

class CompletionReward {
 public:
  virtual ~CompletionReward() = default;
  // One number for each completion; nothing: the reward does not count for it. UserError if it cannot answer. Not
  // thread-safe.
  virtual std::vector<std::optional<double>> score(std::span<const Judged> completions) = 0;
  // What was said of each completion of the last score(), for methods that show it to the model; empty: nothing.
  virtual std::vector<std::string> feedback() const { return {}; }
};

struct NamedReward {
  std::string name;
  double weight = 1;
  std::unique_ptr<CompletionReward> reward;
  bool on_all_ranks = false;  // its score() is collective
};

// Whether a row, a map, has the answer that rewards of type answer compare with.
bool has_right_answer(const Value& row, const std::string& answer_key);
// Whether these rewards give every completion of a row the same number, or none.
bool give_only_equal(std::span<const RewardEntry> entries, const Value& row);

// The rewards of entries of type model, which need torch.
class ModelRewards {
 public:
  virtual ~ModelRewards() = default;
  // Of a folder; null: of the section reward_model. UserError if there is no such model.
  virtual std::unique_ptr<CompletionReward> build(const std::string* folder, const std::string& where) const = 0;
  virtual bool has_section() const = 0;
};

// UserError for entries of one name. Programs are started with the first completions. `models`: null: entries of type
// model are refused. The section's model is one more reward if no entry is of it.
std::vector<NamedReward> build_rewards(const std::vector<RewardEntry>& entries, const ModelRewards* models = nullptr);

// A function of a plug-in: a completion's reward, or nothing.
using RewardFunction = std::optional<double> (*)(const Judged& completion);
// For entries with `function: name`. UserError if the name is taken. Before a run begins.
void register_reward(const std::string& name, RewardFunction function);

// The answer in a text: in its last \boxed{}, after its last "####", else its last number; empty: there is none.
std::string answer_in(std::string_view text);
// Whether two answers are the same: equal rational numbers, else equal texts without spaces.
bool same_answer(std::string_view a, std::string_view b);

// A reward that a child process computes; one that a service computes.
std::unique_ptr<CompletionReward> program_reward(const std::string& name, const RewardEntry& entry);
std::unique_ptr<CompletionReward> http_reward(const std::string& name, const RewardEntry& entry);

}  // namespace easydel::train
