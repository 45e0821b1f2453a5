// trainer_type: sft. Supervised fine-tuning: the cross-entropy of the next token, divided by the number of labels in
// the full batch (trl/trainer/sft_trainer.py).
#include "easydel/train/sft_config.h"

#include <ATen/ops/exp.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/data/encode.h"
#include "easydel/train/method.h"

namespace easydel::train {
namespace {

data::EncoderOptions encoder_options(const Setting& setting, const SftConfig& config) {
  data::EncoderOptions options;
  options.add_special_tokens = setting.mixture.tokenization.add_special_tokens.value_or(config.add_special_tokens);
  // Without prompts, only the assistant's messages of a conversation are trained on.
  options.assistant_mask = config.assistant_only_loss || !setting.trainer.common.train_on_inputs.value_or(true);
  if (setting.mixture.pack_eos_token_id) options.eos = int32_t(*setting.mixture.pack_eos_token_id);
  if (config.eos_token) {
    const auto id = setting.tokenizer->id_of(*config.eos_token);
    if (!id) refuse("trainer.eos_token", "the tokenizer has no token '" + *config.eos_token + "'");
    options.eos = *id;
  }
  return options;
}

class Sft final : public Method {
 public:
  explicit Sft(const Setting& setting)
      : config_(setting.trainer.own_as<SftConfig>()), common_(setting.trainer.common), loss_(common_.loss()) {
    if (setting.tokenizer) encoder_.emplace(setting.tokenizer, encoder_options(setting, config_));
    const auto& mixture = setting.mixture;
    packed_ = config_.packing || mixture.pack_tokens || mixture.pack_on_the_fly;
    truncate_ = mixture.tokenization.truncation;
    smoothing_ = config_.label_smoothing > 0 ? config_.label_smoothing : loss_.label_smoothing;
  }

  data::Prepared prepare(const data::TypedRow& row) const override {
    if (row.kind == data::RowKind::tokens) return prepare_tokens(row);
    check(encoder_.has_value(), "rows without a tokenizer");
    data::Encoded encoded = encoder_->encode(row);
    Learned learned{std::move(encoded.ids), {}, std::move(encoded.weights)};
    learned.learn.assign(learned.ids.size(), 1);
    if (completion_only(row)) std::fill_n(learned.learn.begin(), encoded.prompt, uint8_t{0});
    if (!encoded.assistant.empty())
      for (size_t i = 0; i < learned.learn.size(); ++i) learned.learn[i] &= encoded.assistant[i];
    data::Prepared out;
    if (!packed_) out.cut_tokens = truncate(learned, row);
    data::Example example;
    add(example, learned, {int32_t(learned.ids.size())});
    return finished(std::move(out), std::move(example), learned.weights, row);
  }

  Batch collate(std::span<const data::Example* const> examples) const override {
    Batch batch = flat_batch(examples);
    const auto sequences = int64_t(batch.cu_seqlens.size()) - 1;
    batch.weight = double(batch.labelled);
    if (batch.has(data::loss_weights)) batch.weight = labelled_weights(batch).sum(at::kDouble).item<double>();
    if (by(Normalizer::total_target_tokens)) batch.weight = double(batch.size() - (loss_.shift_tokens ? sequences : 0));
    if (by(Normalizer::average_per_sequence)) batch.weight = double(learned_sequences(batch));
    return batch;
  }

  double divisor(double weight) const override {
    if (loss_.reduction) return *loss_.reduction == Reduction::sum ? 1 : weight;
    const double again = loss_.divide_weight_sum ? weight : 1;
    if (!loss_.loss_normalizing_factor) return again;
    const auto* number = std::get_if<double>(&*loss_.loss_normalizing_factor);
    return (number && *number != 0 ? *number : weight) * again;
  }

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    nn::Pass pass;
    const models::Outputs outputs = forwarding.run(model, batch, pass);
    // A micro-batch without labels still takes part in the collective operations of the ranks.
    if (batch.labelled == 0) return {outputs.hidden.sum() * 0, {}};
    const auto [hidden, labels] = labelled_rows(outputs.hidden, batch);
    const nn::Scores scores = model.head().score(hidden, labels, pass,
                                                 {.entropy = forwarding.metrics,
                                                  .correct = forwarding.metrics,
                                                  .uniform = smoothing_ > 0,
                                                  .log_normalizer = loss_.z_loss > 0,
                                                  .chunk = loss_.chunk_token_size.value_or(0)});
    Loss out;
    Tensor losses = token_losses(scores);
    if (batch.has(data::loss_weights)) losses = losses * labelled_weights(batch).to(losses.device());
    out.sum = by(Normalizer::average_per_sequence) ? (losses * shares(batch).to(losses.device())).sum() : losses.sum();
    if (forwarding.metrics) {
      const auto count = double(batch.labelled);
      out.metrics.push_back({"mean_token_accuracy", scores.correct.sum().item<double>(), count});
      out.metrics.push_back({"entropy", scores.entropy.sum().item<double>(), count});
    }
    return out;
  }

 private:
  bool by(Normalizer normalizer) const {
    if (loss_.reduction || !loss_.loss_normalizing_factor) return false;
    const auto* named = std::get_if<Normalizer>(&*loss_.loss_normalizing_factor);
    return named && *named == normalizer;
  }

  static std::vector<int64_t> labels_of_sequences(const Batch& batch) {
    const auto* labels = batch.labels.const_data_ptr<int64_t>();
    std::vector<int64_t> out;
    for (size_t s = 0; s + 1 < batch.cu_seqlens.size(); ++s) {
      int64_t count = 0;
      for (int64_t i = batch.cu_seqlens[s]; i < batch.cu_seqlens[s + 1]; ++i) count += labels[i] != data::no_label;
      out.push_back(count);
    }
    return out;
  }

  static int64_t learned_sequences(const Batch& batch) {
    const auto counts = labels_of_sequences(batch);
    return int64_t(counts.size()) - std::ranges::count(counts, 0);
  }

  // For each labelled token: its weight in the mean of its sequence.
  static Tensor shares(const Batch& batch) {
    std::vector<float> out;
    for (const int64_t count : labels_of_sequences(batch)) out.insert(out.end(), size_t(count), 1.0f / float(count));
    return at::tensor(at::ArrayRef<float>(out));
  }

  bool completion_only(const data::TypedRow& row) const {
    if (row.kind != data::RowKind::prompt_completion) return false;
    if (config_.completion_only_loss) return *config_.completion_only_loss;
    return !common_.train_on_inputs.value_or(false);
  }

  // The tokens of a row with what becomes of each.
  struct Learned {
    std::vector<int32_t> ids;
    std::vector<uint8_t> learn;
    std::vector<float> weights;  // empty: all 1
  };

  // Ready tokens; a row of several sequences is packed already.
  data::Prepared prepare_tokens(const data::TypedRow& row) const {
    const data::TokenRow& tokens = *row.tokens;
    if (tokens.lengths.size() > 1 && packed_)
      refuse(row.where, "the row has several sequences (seq_lengths), so it is packed already",
             "leave packing out: mixture.pack_tokens and trainer.packing");
    Learned learned{tokens.ids, std::vector<uint8_t>(tokens.ids.size(), 1), tokens.weights};
    for (size_t i = 0; i < tokens.labels.size(); ++i) learned.learn[i] = tokens.labels[i] != data::no_label;
    std::vector<int32_t> labels = tokens.labels;
    std::vector<int32_t> lengths = tokens.lengths;
    data::Prepared out;
    if (!packed_ && lengths.size() > 1 && int64_t(tokens.ids.size()) > common_.max_length.value_or(INT64_MAX))
      refuse(row.where, str("the row is packed to ", tokens.ids.size(), " tokens; max_length is ", *common_.max_length),
             "raise trainer.max_length");
    if (!packed_ && lengths.size() <= 1) {
      const std::vector<int32_t> all = learned.ids;
      out.cut_tokens = truncate(learned, row);
      if (out.cut_tokens > 0 && !labels.empty()) {
        const size_t from = keeps_start() ? 0 : size_t(out.cut_tokens);
        labels = {labels.begin() + std::ptrdiff_t(from), labels.begin() + std::ptrdiff_t(from + learned.ids.size())};
      }
    }
    if (lengths.size() <= 1) lengths = {int32_t(learned.ids.size())};
    data::Example example;
    add(example, learned, lengths);
    const size_t shift = loss_.shift_tokens ? 1 : 0;
    // Labels may be other tokens than the ids.
    for (size_t i = shift; i < labels.size(); ++i)
      if (example.labels[i - shift] != data::no_label) example.labels[i - shift] = labels[i];
    if (!tokens.next_labels.empty() && out.cut_tokens == 0 && shift == 1) {
      size_t end = 0;
      for (size_t s = 0; s < lengths.size(); ++s) {
        end += size_t(lengths[s]);
        example.labels[end - 1] = tokens.next_labels[s];
      }
    }
    return finished(std::move(out), std::move(example), learned.weights, row);
  }

  void add(data::Example& example, const Learned& learned, const std::vector<int32_t>& lengths) const {
    size_t begin = 0;
    for (const int32_t length : lengths) {
      const std::span<const int32_t> ids(learned.ids.data() + begin, size_t(length));
      const std::span<const uint8_t> learn(learned.learn.data() + begin, size_t(length));
      if (loss_.shift_tokens)
        example.add_sequence(ids, learn);
      else
        example.add_unshifted(ids, learn);
      begin += size_t(length);
    }
  }

  // Applies weights: 0 is a mask; a row whose weights are all 1 has none.
  data::Prepared finished(data::Prepared out, data::Example example, std::vector<float> weights,
                          const data::TypedRow& row) const {
    std::ranges::replace_if(
        example.labels, [&](int32_t label) { return label == loss_.ignore_index; }, data::no_label);
    if (weights.empty() && row.weight != 1) weights.assign(example.tokens.size(), 1);
    if (!weights.empty()) {
      std::vector<float> of_labels(weights.size(), 1);  // beside the labels, so shifted as they are
      const size_t shift = loss_.shift_tokens ? 1 : 0;
      for (size_t i = shift; i < weights.size(); ++i) of_labels[i - shift] = weights[i] * float(row.weight);
      bool is_plain = true;
      for (size_t i = 0; i < of_labels.size(); ++i) {
        if (of_labels[i] == 0) example.labels[i] = data::no_label;
        if (example.labels[i] == data::no_label) of_labels[i] = 1;
        is_plain &= of_labels[i] == 1;
      }
      if (!is_plain) example.set({data::loss_weights, data::Column::Per::token, std::move(of_labels)});
    }
    if (example.labelled() > 0) out.example = std::move(example);
    return out;
  }

  bool keeps_start() const { return common_.truncation_mode == Truncation::keep_start; }

  int64_t truncate(Learned& learned, const data::TypedRow& row) const {
    const auto most = size_t(common_.max_length.value_or(0));
    const size_t size = learned.ids.size();
    if (most == 0 || size <= most) return 0;
    const size_t cut = size - most;
    if (!truncate_)
      refuse(row.where, str("the row has ", size, " tokens; max_length is ", most),
             "raise trainer.max_length, or truncate rows with mixture.tokenization.truncation: true");
    const auto from = keeps_start() ? most : size_t{0};
    const auto erase = [&](auto& list) {
      if (list.empty()) return;
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(from),
                 list.begin() + static_cast<std::ptrdiff_t>(from + cut));
    };
    erase(learned.ids);
    erase(learned.learn);
    erase(learned.weights);
    return int64_t(cut);
  }

  // The weights of the labelled rows, fp32 [labelled].
  static Tensor labelled_weights(const Batch& batch) {
    const Tensor& weights = batch.column(data::loss_weights);
    return weights.index_select(0, batch.labels.ne(data::no_label).nonzero().squeeze(1));
  }

  Tensor token_losses(const nn::Scores& scores) const {
    Tensor losses = -scores.logps;
    if (config_.loss_type == TokenLoss::dft) losses = losses * scores.logps.detach().exp();
    if (smoothing_ > 0) losses = (1 - smoothing_) * losses - smoothing_ * scores.uniform;
    if (loss_.z_loss > 0) losses = losses + loss_.z_loss * scores.log_normalizer.square();
    return losses;
  }

  SftConfig config_;
  TrainerConfig common_;
  LossConfig loss_;
  std::optional<data::Encoder> encoder_;
  bool packed_ = false, truncate_ = true;
  double smoothing_ = 0;
};

}  // namespace

MethodEntry sft() {
  return {"sft", [](const Setting& setting) -> std::unique_ptr<Method> { return std::make_unique<Sft>(setting); }};
}

}  // namespace easydel::train
