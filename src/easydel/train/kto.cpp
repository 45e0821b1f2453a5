// trainer_type: kto. Kahneman-Tversky optimisation (arXiv:2402.01306) as trl/trainer/kto_trainer.py has it: answers are
// good or bad, and the divergence from the reference is estimated from answers to other prompts of the micro-batch.
#include "easydel/train/kto_config.h"

#include <ATen/ops/sigmoid.h>
#include <ATen/ops/where.h>

#include <algorithm>

#include "easydel/data/encode.h"
#include "easydel/train/marked_answers.h"
#include "easydel/train/reference.h"

namespace easydel::train {
namespace {

// Sequences [begin, end) of a batch.
Batch sequences(const Batch& batch, int64_t begin, int64_t end) {
  Batch out;
  const int64_t first = batch.cu_seqlens[size_t(begin)], last = batch.cu_seqlens[size_t(end)];
  out.tokens = batch.tokens.slice(0, first, last);
  out.labels = batch.labels.slice(0, first, last);
  for (int64_t i = begin; i <= end; ++i) out.cu_seqlens.push_back(batch.cu_seqlens[size_t(i)] - first);
  out.examples = batch.examples;
  out.labelled = out.labels.ne(data::no_label).sum().item<int64_t>();
  out.weight = batch.weight;
  return out;
}

class Kto final : public Method {
 public:
  explicit Kto(const Setting& setting) : config_(setting.trainer.own_as<KtoConfig>()), common_(setting.trainer.common) {
    std::optional<Reference::Following> following;
    if (config_.own.sync_ref_model) following = {config_.own.ref_model_mixup_alpha, config_.own.ref_model_sync_steps};
    reference_ = Reference(setting, following);
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

  bool needs_neighbours() const override { return needs_divergence(); }
  // Each example gets a second sequence: its prompt with the answer of the example before it.
  Batch collate_part(std::span<const data::Example* const> whole, size_t begin, size_t end) const override {
    const bool recorded = begin < end && whole[begin]->lengths.size() > 1;
    if (!needs_divergence() || recorded) return collate(whole.subspan(begin, end - begin));
    std::vector<data::Example> both;
    std::vector<const data::Example*> part;
    both.reserve(end - begin);
    for (size_t i = begin; i < end; ++i) {
      both.push_back(*whole[i]);
      append_mismatched(both.back(), *whole[i == 0 ? whole.size() - 1 : i - 1]);
      part.push_back(&both.back());
    }
    return collate(part);
  }

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    Forwarding how = forwarding;
    if (config_.pairs.disable_dropout) how.training = false;
    const Batch own = sequences(batch, 0, batch.examples);
    const SequenceScores scores = score_sequences(
        model, own, how,
        {.entropy = how.metrics, .mean_logit = how.metrics, .chunk = common_.loss().chunk_token_size.value_or(0)});
    const Tensor logps = scores.sums(scores.logps);
    const Tensor ratios = logps - logps_of_reference(own, batch, how).to(logps.device());
    const double divergence = needs_divergence() ? divergence_of(model, batch, how) : 0;

    const KtoKeys& keys = config_.own;
    const Tensor good = batch.column(answer_is_good).to(logps.device()).ne(0);
    const bool shifted = keys.loss_type == KtoLoss::kto;
    const Tensor gain = 1 - at::sigmoid(keys.beta * (shifted ? ratios - divergence : ratios));
    const Tensor loss = shifted ? 1 - at::sigmoid(keys.beta * (divergence - ratios)) : at::sigmoid(keys.beta * ratios);
    Loss out;
    out.sum = at::where(good, keys.desirable_weight * gain, keys.undesirable_weight * loss).mean() * batch.weight;
    if (how.metrics) add_metrics(out, scores, {good, keys.beta * ratios.detach(), logps}, how, divergence);
    return out;
  }

  void examine(const Examination& of) override {
    if (!config_.own.precompute_ref_log_probs || !reference_.exists()) return;
    const auto compute = [this](const Batch& batch, const Forwarding& how) {
      const SequenceScores scores = reference_.score(batch, how);
      return scores.sums(scores.logps);
    };
    reference_.precompute(of, {reference_logps, "sums", [this](auto examples) { return collate(examples); }, compute});
  }

  void updated(const models::Model& model, int64_t step) override { reference_.follow(model, step); }
  MethodState state() const override {
    MethodState out;
    reference_.add_state(out);
    return out;
  }
  void restore(const SavedState& saved) override { reference_.restore(saved); }

 private:
  bool needs_divergence() const { return config_.own.loss_type == KtoLoss::kto; }
  AnswerLimits limits() const {
    return limits_of(common_, config_.pairs.max_prompt_length, config_.pairs.max_completion_length);
  }

  data::Prepared prepare_one(const data::TypedRow& row) const {
    data::Encoded encoded = encoder_->encode(row);
    const auto middle = encoded.ids.begin() + static_cast<std::ptrdiff_t>(encoded.prompt);
    std::vector<int32_t> prompt(encoded.ids.begin(), middle), answer(middle, encoded.ids.end());
    std::vector<int32_t>* const answers[] = {&answer};
    data::Prepared out = prepared_answers(std::move(prompt), answers, limits());
    if (encoded.merges) out.mistakes.add(data::RowMistake::merged_prompt);
    if (!out.example) return out;
    data::Example& example = *out.example;
    const auto learned = int64_t(std::get<std::vector<float>>(example.find(answer_tokens)->values)[0]);
    example.set({answer_is_good, data::Column::Per::example, std::vector<int64_t>{*row.label.as_bool() ? 1 : 0}});
    example.set(
        {prompt_tokens, data::Column::Per::example, std::vector<int64_t>{int64_t(example.tokens.size()) - learned}});
    return out;
  }

  static std::ptrdiff_t prompt_of(const data::Example& example) {
    const int64_t prompt = std::get<std::vector<int64_t>>(example.find(prompt_tokens)->values)[0];
    return std::min<int64_t>(prompt, example.lengths[0]);  // an example of a memory trial is shorter
  }

  void append_mismatched(data::Example& to, const data::Example& other) const {
    std::vector<int32_t> prompt(to.tokens.begin(), to.tokens.begin() + prompt_of(to));
    std::vector<int32_t> answer(other.tokens.begin() + prompt_of(other), other.tokens.begin() + other.lengths[0]);
    std::vector<int32_t>* const answers[] = {&answer};
    data::Prepared mismatched = prepared_answers(std::move(prompt), answers, limits());
    data::Example pair = mismatched.example.value_or(data::Example{{to.tokens[0]}, {data::no_label}, {1}});
    to.tokens.insert(to.tokens.end(), pair.tokens.begin(), pair.tokens.end());
    to.labels.insert(to.labels.end(), pair.labels.begin(), pair.labels.end());
    to.lengths.push_back(pair.lengths[0]);
    std::erase_if(to.columns, [](const data::Column& column) { return column.per != data::Column::Per::example; });
  }

  // The mean log-ratio of the mismatched pairs of the whole micro-batch, at least 0; without a gradient.
  double divergence_of(const models::Model& model, const Batch& batch, Forwarding how) const {
    const c10::AutoGradMode no_grad(false);
    const Batch mismatched = sequences(batch, batch.examples, int64_t(batch.cu_seqlens.size()) - 1);
    how.checkpointing = nn::Checkpointing::none;
    how.routers = nullptr;
    const SequenceScores scores = score_sequences(model, mismatched, how, {});
    const SequenceScores reference = reference_.score(mismatched, how);
    const Tensor ratios = scores.sums(scores.logps) - reference.sums(reference.logps);
    const double count = how.total(double(ratios.size(0)));
    return std::max(0.0, how.total(ratios.sum().item<double>()) / std::max(count, 1.0));
  }

  Tensor logps_of_reference(const Batch& own, const Batch& batch, const Forwarding& how) const {
    if (batch.has(reference_logps)) return batch.column(reference_logps);
    const SequenceScores scores = reference_.score(own, how);
    return scores.sums(scores.logps);
  }

  void add_metrics(Loss& out, const SequenceScores& scores, const MarkedAnswers& answers, const Forwarding& how,
                   double divergence) const {
    const auto total = [](const Tensor& t) { return t.sum().item<double>(); };
    out.metrics.push_back({"kl", divergence, 1});
    out.metrics.push_back({"entropy", total(scores.details.entropy), total(scores.lengths)});
    const Tensor logits = scores.sums(scores.details.mean_logit), good = answers.good.to(at::kFloat);
    constexpr auto over = Metric::Over::counted_batches;
    out.metrics.push_back({"logits/chosen", total(logits * good), total(scores.lengths * good), over});
    out.metrics.push_back({"logits/rejected", total(logits * (1 - good)), total(scores.lengths * (1 - good)), over});
    add_marked_metrics(out, answers, how, over);
  }

  KtoConfig config_;
  TrainerConfig common_;
  Reference reference_;
  std::optional<data::Encoder> encoder_;
};

}  // namespace

MethodEntry kto() {
  return {"kto", [](const Setting& setting) -> std::unique_ptr<Method> { return std::make_unique<Kto>(setting); }};
}

}  // namespace easydel::train
