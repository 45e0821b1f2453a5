// trainer_type: bco. Binary classifier optimisation (arXiv:2404.04656) as TRL 0.24 has it: answers are good or bad, and
// the running mean of all rewards is the classifier's threshold.
#include "easydel/train/bco_config.h"

#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/where.h>

#include <algorithm>

#include "easydel/data/encode.h"
#include "easydel/train/density_ratio.h"
#include "easydel/train/marked_answers.h"
#include "easydel/train/reference.h"
#include "easydel/train/running_mean.h"

namespace easydel::train {
namespace {

class Bco final : public Method {
 public:
  explicit Bco(const Setting& setting)
      : config_(setting.trainer.own_as<BcoConfig>()),
        common_(setting.trainer.common),
        tokenizer_(setting.tokenizer),
        reference_(setting) {
    if (setting.tokenizer) encoder_.emplace(setting.tokenizer, data::EncoderOptions{});
  }

  data::Prepared prepare(const data::TypedRow& row) const override {
    return prepared_marks(row, [this](const data::TypedRow& one) { return prepare_one(one); });
  }

  Batch collate(std::span<const data::Example* const> examples) const override {
    Batch batch = flat_batch(examples);
    batch.weight = double(batch.examples);
    return batch;
  }

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    Forwarding how = forwarding;
    if (config_.pairs.disable_dropout) how.training = false;
    const SequenceScores scores =
        score_sequences(model, batch, how, {.chunk = common_.loss().chunk_token_size.value_or(0)});
    const Tensor logps = scores.sums(scores.logps);
    const Tensor rewards = config_.own.beta * (logps - logps_of_reference(batch, how).to(logps.device()));
    const double sum = how.total(rewards.detach().sum().item<double>());
    const double count = how.total(double(rewards.size(0)));
    if (forwarding.training) rewards_.add(sum, count);
    const double delta = rewards_.mean(forwarding.training);
    const Tensor good = batch.column(answer_is_good).to(logps.device()).ne(0);
    Loss out;
    Tensor losses = at::where(good, -at::log_sigmoid(rewards - delta), -at::log_sigmoid(-(rewards - delta)));
    if (batch.has(density_ratio_column)) losses = losses * batch.column(density_ratio_column).to(logps.device());
    out.sum = losses.mean() * batch.weight;
    if (!how.metrics) return out;
    out.metrics.push_back({"delta", delta, 1});
    add_marked_metrics(out, {good, rewards.detach(), logps}, how, Metric::Over::everything);
    return out;
  }

  void examine(const Examination& of) override {
    if (config_.own.embedding_model && tokenizer_)
      add_density_ratios({*config_.own.embedding_model, config_.own.prompt_sample_size, config_.own.min_density_ratio,
                          config_.own.max_density_ratio, uint64_t(common_.shuffle_seed_train)},
                         of, *tokenizer_);
    if (!config_.own.precompute_ref_log_probs || !reference_.exists()) return;
    const auto compute = [this](const Batch& batch, const Forwarding& how) {
      const SequenceScores scores = reference_.score(batch, how);
      return scores.sums(scores.logps);
    };
    reference_.precompute(of, {reference_logps, "sums", [this](auto examples) { return collate(examples); }, compute});
  }

  void begin_update(const models::Model&, std::span<const UpdatePart>) override { rewards_.begin_update(); }
  void updated(const models::Model&, int64_t) override { rewards_.end_update(); }
  MethodState state() const override {
    MethodState out;
    out.document = rewards_.document();
    return out;
  }
  void restore(const SavedState& saved) override { rewards_.restore(saved.document()); }

 private:
  // TRL's order: the prompt is cut only if both are too long, then the answer; BOS and EOS are added last.
  data::Prepared prepare_one(const data::TypedRow& row) const {
    data::Prepared out;
    data::SeparateAnswer one = encoder_->encode_separately(row).at(0);
    if (one.merges) out.mistakes.add(data::RowMistake::merged_prompt);
    const auto size = [](const std::vector<int32_t>& ids) { return int64_t(ids.size()); };
    if (common_.max_length.value_or(0) > 0) {
      const int64_t most = *common_.max_length - encoder_->missing_ends(one);
      const int64_t prompt = config_.pairs.max_prompt_length.value_or(most);
      if (size(one.prompt) + size(one.answer) > most && size(one.prompt) > prompt) {
        const int64_t over = size(one.prompt) - prompt;
        out.cut_tokens += over;
        if (common_.truncation_mode == Truncation::keep_start)
          one.prompt.resize(size_t(prompt));
        else
          one.prompt.erase(one.prompt.begin(), one.prompt.begin() + over);
      }
      if (size(one.prompt) + size(one.answer) > most) {
        const int64_t left = std::clamp<int64_t>(most - prompt, 0, size(one.answer));
        out.cut_tokens += size(one.answer) - left;
        out.mistakes.add_cut(size(one.answer), left);
        one.answer.resize(size_t(left));
      }
    }
    encoder_->add_ends(one);
    data::Example example;
    std::vector<int32_t> ids = one.prompt;
    ids.insert(ids.end(), one.answer.begin(), one.answer.end());
    std::vector<uint8_t> learn(ids.size(), 1);
    std::fill_n(learn.begin(), one.prompt.size(), uint8_t{0});
    example.add_sequence(ids, learn);
    example.set({answer_is_good, data::Column::Per::example, std::vector<int64_t>{*row.label.as_bool() ? 1 : 0}});
    if (example.labelled() > 0) out.example = std::move(example);
    return out;
  }

  Tensor logps_of_reference(const Batch& batch, const Forwarding& how) const {
    if (batch.has(reference_logps)) return batch.column(reference_logps);
    const SequenceScores scores = reference_.score(batch, how);
    return scores.sums(scores.logps);
  }

  BcoConfig config_;
  TrainerConfig common_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  Reference reference_;
  mutable RunningMean rewards_;
  std::optional<data::Encoder> encoder_;
};

}  // namespace

MethodEntry bco() {
  return {"bco", [](const Setting& setting) -> std::unique_ptr<Method> { return std::make_unique<Bco>(setting); }};
}

}  // namespace easydel::train
