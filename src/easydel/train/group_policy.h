// What the methods that learn from groups of sampled completions share (grpo, gspo, gfpo, rlvr, rloo): the forward, the
// reference, the window of rollouts and their state.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "easydel/data/encode.h"
#include "easydel/train/group_rollouts.h"
#include "easydel/train/grpo_config.h"
#include "easydel/train/policy_loss.h"
#include "easydel/train/reference.h"
#include "easydel/train/rollout_source.h"
#include "easydel/train/sequence_logps.h"

namespace easydel::train {

// Columns of the examples. Per token, at the place of its label:
inline constexpr const char *old_logps_column = "old_logps", *reference_logps_column = "reference_logps";
// Per sequence; completion_logps is the sum of the old log-probabilities of its learned tokens:
inline constexpr const char *advantages_column = "advantages", *mean_items_column = "mean_items",
                            *completion_logps_column = "completion_logps";
// Per sequence, of recorded completions: learned tokens of the whole generation, which become mean_items.
inline constexpr const char* generation_items_column = "generation_items";

class GroupPolicy : public Method {
 public:
  struct Keys {
    double beta = 0;  // 0: there is no reference
    RolloutKeys rollouts;
    WindowKeys window;
    ReferenceKeys reference;
  };
  GroupPolicy(const Setting& setting, Keys keys);

  data::Prepared prepare(const data::TypedRow& row) const override;
  std::unique_ptr<BatchSource> source(std::unique_ptr<BatchSource> rows, const Sampler* sampler) override;
  Batch collate(std::span<const data::Example* const> examples) const override;
  void examine(const Examination& of) override { folder_ = of.folder; }
  void updated(const models::Model& model, int64_t step) override;
  MethodState state() const override;
  void restore(const SavedState& saved) override;

 protected:
  // Called for examples of recorded completions, with the weights that they are made with.
  virtual void complete(std::vector<data::Example>& /*examples*/) const {}
  // The advantages of a generation's completions, whose examples have old and reference log-probabilities.
  virtual Advantages advantages(const RewardTable& rewards, const std::vector<data::Example>& examples) const = 0;
  // Adds what is to be said once of the generation that this step learns from first.
  void add_generation_metrics(std::vector<Metric>& metrics, const Forwarding& forwarding) const;
  // The sampler's log-probabilities and the trained model's are those of the same weights.
  bool on_policy() const { return on_policy_; }
  // Scores by the trained model as it is, without gradients; one sequence an example.
  SequenceScores scores_now(const std::vector<data::Example>& examples) const;
  // Tokens are scored at the temperature of the rollouts.
  nn::ScoreOptions scoring(bool entropy, bool entropy_gradient = false) const;
  // A column per token, of the learned ones; undefined if the batch does not have it.
  static Tensor of_learned(const Batch& batch, const char* column);
  const Keys& keys() const { return keys_; }
  const TrainerConfig& common() const { return common_; }

 private:
  void add_reference(std::vector<data::Example>& examples) const;
  RolloutPlan plan_of(const BatchSource& rows, bool samples) const;
  void check_groups(bool has_rewards) const;
  std::vector<std::vector<data::Example>> recorded(BatchSource& rows, const RolloutPlan& plan, int64_t window) const;
  std::vector<std::vector<data::Example>> sampled(BatchSource& rows, const Sampler& sampler, const RolloutPlan& plan,
                                                  int64_t window);
  int64_t micro_batch() const { return common_.total_batch_size / common_.gradient_accumulation_steps; }

  Keys keys_;
  TrainerConfig common_;
  std::shared_ptr<const models::Model> model_;  // null: rows are prepared, and nothing is computed
  Reference reference_;
  RolloutSource* source_ = nullptr;  // owned by the trainer
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::optional<data::Encoder> encoder_;
  mutable PromptRows rows_;
  std::optional<GroupRollouts> rollouts_;
  std::filesystem::path folder_;  // of the run
  bool on_policy_ = false;
  mutable std::vector<Metric> generation_metrics_;  // that were not reported yet
};

// The method grpo with the keys of another one that is a special case of it.
std::unique_ptr<Method> build_grpo(const Setting& setting, const GrpoKeys& own, GroupPolicy::Keys keys);

}  // namespace easydel::train
