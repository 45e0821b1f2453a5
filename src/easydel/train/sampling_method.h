// What the methods that sample completions while they train share: prompts as rows, the reference, the windows of
// completions and their state.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "easydel/data/encode.h"
#include "easydel/train/group_rollouts.h"
#include "easydel/train/reference.h"
#include "easydel/train/rollout_source.h"
#include "easydel/train/sequence_logps.h"

namespace easydel::train {

class SamplingMethod : public Method {
 public:
  struct Keys {
    RolloutKeys rollouts;
    WindowKeys window = {};
    std::optional<ReferenceKeys> reference = {};  // nothing: there is no reference
    int64_t examples_of_prompt = 1;               // the completions of a prompt are as many examples
    Importance importance = Importance::full;
  };
  // UserError for keys that do not fit together.
  SamplingMethod(const Setting& setting, Keys keys);

  data::Prepared prepare(const data::TypedRow& row) const override;
  std::unique_ptr<BatchSource> source(std::unique_ptr<BatchSource> rows, const Sampler* sampler) override;
  Batch collate(std::span<const data::Example* const> examples) const override;
  void examine(const Examination& of) override { folder_ = of.folder; }
  std::vector<data::Example> evaluated(std::vector<data::Example> rows, const Sampler* sampler, int64_t first) override;
  std::optional<SampledSizes> sampled_sizes() const override;
  int64_t evaluated_per_row() const override { return keys_.examples_of_prompt > 1 ? evaluated_group() : 1; }
  void updated(const models::Model& model, int64_t step) override;
  MethodState state() const override;
  void restore(const SavedState& saved) override;

 protected:
  using Window = std::vector<std::vector<data::Example>>;  // of each micro-batch

  // What is to be sampled with the weights as they are.
  struct Generation {
    std::vector<const data::Example*> prompts;
    const Sampler& sampler;
    const RolloutPlan& plan;
    int64_t window = 0;  // from 0; below 0: of an evaluation, whose completions are neither chosen nor recorded
    int64_t group = 1;   // completions of a prompt
    bool evaluates() const { return window < 0; }
  };
  // Makes the micro-batches of a generation.
  virtual Window sampled(const Generation& generation) = 0;
  // Called for the micro-batches of recorded completions, with the weights that they are made with.
  virtual void complete(Window& window, const RolloutPlan& plan) = 0;

  // Its sampler, whose samples name what they were drawn from if losses need it.
  Sampler sampler_of(const Generation& generation) const;
  // Losses are of the distribution that was sampled from: examples have kept_tokens_column.
  bool is_truncated() const { return keys_.importance == Importance::sampled; }
  // What makes completions of several turns; null: they have one.
  virtual std::unique_ptr<Episodes> episodes() const { return nullptr; }
  // Examples of a window in micro-batches, one after the other.
  Window in_micro_batches(std::vector<data::Example> examples, const RolloutPlan& plan) const;
  GroupRollouts& rollouts() { return *rollouts_; }
  void record(const Rollouts& rollouts, const Generation& generation, const std::vector<float>& worth);
  // What is to be said once of the generation that is learned from next, and in the first step that does; or of the
  // generation that is evaluated.
  void say(std::vector<Metric> metrics, const Generation& generation);
  void say(std::vector<Metric> metrics) { generation_metrics_ = std::move(metrics); }  // of training
  void add_generation_metrics(std::vector<Metric>& metrics, const Forwarding& forwarding) const;

  // Scores by the trained model as it is, without gradients.
  SequenceScores scores_now(const std::vector<data::Example>& examples) const;
  SequenceScores reference_scores(const std::vector<data::Example>& examples) const;
  // A column of numbers of the learned tokens, in the order of the examples; one sequence an example.
  static void add_learned(std::vector<data::Example>& examples, const char* column, const Tensor& numbers);
  // Tokens are scored at the temperature of the rollouts.
  nn::ScoreOptions scoring(bool entropy, bool entropy_gradient = false) const;
  // A column per token, of the learned ones; undefined if the batch does not have it.
  static Tensor of_learned(const Batch& batch, const char* column);

  bool has_judges() const { return !judges_.empty(); }  // there is a section reward_model
  const RolloutKeys& rollout_keys() const { return keys_.rollouts; }
  const TrainerConfig& common() const { return common_; }
  const Reference& reference() const { return reference_; }
  const models::Model& model() const { return *model_; }
  const std::shared_ptr<const text::Tokenizer>& tokenizer() const { return tokenizer_; }
  // The epoch that a step (from 0) belongs to.
  int64_t epoch_of(uint64_t step) const;
  int64_t micro_batch() const { return common_.total_batch_size / common_.gradient_accumulation_steps; }

 private:
  int64_t evaluated_group() const;
  RolloutPlan plan_of(const BatchSource& rows, bool samples) const;
  Window recorded(BatchSource& rows, const RolloutPlan& plan, int64_t window);

  Keys keys_;
  TrainerConfig common_;
  std::shared_ptr<const models::Model> model_;  // null: rows are prepared, and nothing is computed
  std::vector<SideModel> judges_;               // the section reward_model
  Reference reference_;
  RolloutSource* source_ = nullptr;  // owned by the trainer
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::optional<data::Encoder> encoder_;
  mutable PromptRows rows_;
  std::optional<GroupRollouts> rollouts_;
  std::filesystem::path folder_;  // of the run
  // That were not reported yet: of training, and of the batch that is evaluated.
  mutable std::vector<Metric> generation_metrics_, evaluation_metrics_;
};

}  // namespace easydel::train
