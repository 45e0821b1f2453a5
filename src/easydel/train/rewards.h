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
};

class CompletionReward {
 public:
  virtual ~CompletionReward() = default;
  // One number for each completion; nothing: the reward does not count for it. UserError if it cannot answer. Not
  // thread-safe.
  virtual std::vector<std::optional<double>> score(std::span<const Judged> completions) = 0;
};

struct NamedReward {
  std::string name;
  double weight = 1;
  std::unique_ptr<CompletionReward> reward;
};

// UserError for entries of one name. Programs are started with the first completions.
std::vector<NamedReward> build_rewards(const std::vector<RewardEntry>& entries);

// The answer in a text: in its last \boxed{}, after its last "####", else its last number; empty: there is none.
std::string answer_in(std::string_view text);
// Whether two answers are the same: equal rational numbers, else equal texts without spaces.
bool same_answer(std::string_view a, std::string_view b);

// A reward that a child process computes.
std::unique_ptr<CompletionReward> program_reward(const std::string& name, const RewardEntry& entry);

}  // namespace easydel::train
