// Groups of completions that are sampled for the prompts of a window, with their rewards.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "easydel/train/advantages.h"
#include "easydel/train/episodes.h"
#include "easydel/train/report.h"
#include "easydel/train/rewards.h"
#include "easydel/train/sampler.h"

namespace easydel::train {

// The column of a prompt's example that names its row.
inline constexpr const char* row_column = "row";

// The rows that prompts come from, by a hash of their contents. Thread-safe while rows are added.
class PromptRows {
 public:
  struct Row {
    Value fields;                               // all of them
    Value prompt;                               // a text, or a list of messages
    Value tools = {}, template_arguments = {};  // its own, of the chat template; null: none
  };
  // The number of the row, for row_column.
  int64_t add(Row row);
  const Row& at(int64_t number) const;
  // Whether no row has a value in the field, and there are rows.
  bool lack(const std::string& field) const;

 private:
  std::mutex adding_;
  std::map<int64_t, Row> rows_;
};

// A generation: the completions of a prompt follow each other.
struct Rollouts {
  int64_t index = 0;  // of the generation in the run; below 0: of an evaluation
  std::vector<const data::Example*> prompts;
  std::vector<Sample> samples;
  RewardTable rewards;
  std::vector<Metric> metrics;             // completions/*
  std::vector<Episode> episodes = {};      // of each sample, without it; empty: completions of one turn
  std::vector<std::string> feedback = {};  // that rewards gave on each sample; empty: on none

  const std::vector<int32_t>& prompt_of(size_t sample) const {
    return episodes.empty() ? prompts[sample / (samples.size() / prompts.size())]->tokens : episodes[sample].prompt;
  }
};

// Who completes prompts, and how often each.
struct Completer {
  const Sampler* sampler = nullptr;
  int64_t each = 1;
};

class GroupRollouts {
 public:
  struct Setup {
    const models::Model& model;
    std::shared_ptr<const text::Tokenizer> tokenizer;
    const PromptRows& rows;
    RolloutKeys keys;
    uint64_t seed = 0;
    std::vector<SideModel> judges = {};            // the section reward_model
    std::shared_ptr<Episodes> episodes = nullptr;  // makes completions; null: they have one turn
  };
  // UserError for keys that do not fit together.
  explicit GroupRollouts(const Setup& setup);

  // Samples and judges; the same on all ranks, of which the first one asks the rewards. Collective.
  Rollouts make(Completer completer, int64_t index, std::vector<const data::Example*> prompts);
  // The same by a policy and its opponent: a prompt's completions are those of the first, then those of the second.
  Rollouts make(std::array<Completer, 2> completers, int64_t index, std::vector<const data::Example*> prompts);
  // Adds the completions to rollouts.jsonl in the folder, whose lines of this step and later ones are dropped, and
  // logs some of them with log_completions.
  void record(const Rollouts& rollouts, const std::filesystem::path& folder, int64_t step,
              const std::vector<float>& advantages);

 private:
  std::string text_of(const std::vector<int32_t>& ids) const;
  std::vector<Sample> sampled(const Completer& completer, bool opponent, int64_t index,
                              const std::vector<const data::Example*>& prompts) const;
  void add_episodes(Rollouts& out, const Completer& completer);
  void judge(Rollouts& rollouts);
  std::vector<std::string> feedback(size_t count) const;

  const models::Model& model_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  const PromptRows& rows_;
  RolloutKeys keys_;
  uint64_t seed_;
  generation::GenerationConfig generation_;
  std::shared_ptr<Episodes> episodes_;
  std::vector<NamedReward> rewards_;
  std::optional<Records> records_;
  int64_t without_rewards_ = 0;  // generations after each other in which nothing counted
};

}  // namespace easydel::train
