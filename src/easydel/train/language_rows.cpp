#include "easydel/train/language_rows.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "easydel/base/error.h"

namespace easydel::train {
namespace {

data::EncoderOptions encoder_options(const Setting& setting, const LanguageRowOptions& options) {
  data::EncoderOptions out;
  out.add_special_tokens = setting.mixture.tokenization.add_special_tokens.value_or(options.add_special_tokens);
  // Without prompts, only the assistant's messages of a conversation are trained on.
  out.assistant_mask = options.assistant_only || !setting.trainer.common.train_on_inputs.value_or(true);
  if (setting.mixture.pack_eos_token_id) out.eos = int32_t(*setting.mixture.pack_eos_token_id);
  if (options.eos_token) {
    const auto id = setting.tokenizer->id_of(*options.eos_token);
    if (!id) refuse("trainer.eos_token", "the tokenizer has no token '" + *options.eos_token + "'");
    out.eos = *id;
  }
  return out;
}

// The conversation's last message as the completion of those before it.
data::TypedRow last_message_as_completion(const data::TypedRow& row) {
  data::TypedRow out = row;
  if (row.text.items.size() < 2)
    refuse(row.where, "the conversation has no message before its last one", "give a prompt and an answer");
  out.kind = data::RowKind::prompt_completion;
  out.prompt = out.completion = Value::list();
  out.prompt.items.assign(row.text.items.begin(), row.text.items.end() - 1);
  out.completion.items.push_back(row.text.items.back());
  out.text = {};
  return out;
}

// The text of a row whose label a language model does not learn.
data::TypedRow without_label(const data::TypedRow& row) {
  if (row.text.is_list() || !row.text_pair.is_null())
    refuse(row.where, "a language model learns one text, and the row has words or two texts", "give rows of texts");
  data::TypedRow out = row;
  out.kind = data::RowKind::text;
  return out;
}

}  // namespace

void refuse_conversation(const data::TypedRow& row) {
  if (row.conversational)
    refuse(row.where, "the prompt is a conversation, and trainer.skip_apply_chat_template is set",
           "give the prompt as a text, or leave the key out");
}

LanguageRows::LanguageRows(const Setting& setting, const LanguageRowOptions& options)
    : options_(options), common_(setting.trainer.common), truncates_(setting.mixture.tokenization.truncation) {
  const LossConfig loss = setting.trainer.facts().token_loss ? common_.loss() : LossConfig{};
  shifted_ = loss.shift_tokens;
  ignored_label_ = loss.ignore_index;
  if (setting.tokenizer) encoder_.emplace(setting.tokenizer, encoder_options(setting, options));
}

data::Prepared LanguageRows::prepare(const data::TypedRow& given) const {
  if (given.kind == data::RowKind::tokens) return prepare_tokens(given);
  if (given.kind == data::RowKind::labelled) return prepare(without_label(given));
  check(encoder_.has_value(), "rows without a tokenizer");
  if (options_.without_template) refuse_conversation(given);
  const bool splits = options_.last_message_only && given.kind == data::RowKind::messages;
  const data::TypedRow split = splits ? last_message_as_completion(given) : data::TypedRow();
  const data::TypedRow& row = splits ? split : given;
  data::Encoded encoded = encoder_->encode(row);
  if (options_.assistant_only && encoded.assistant.empty())
    refuse(row.where, "assistant_only_loss learns what the assistant says, and this row is not a conversation",
           row.instruction_text.empty() ? "give messages, or set trainer.assistant_only_loss: false"
                                        : "give a chat template by model.chat_template, or set "
                                          "trainer.assistant_only_loss: false");
  data::Prepared out;
  if (encoded.merges) out.mistakes.add(data::RowMistake::merged_prompt);
  Learned learned{std::move(encoded.ids), {}, std::move(encoded.weights)};
  learned.learn.assign(learned.ids.size(), 1);
  if (learns_completion_only(row)) std::fill_n(learned.learn.begin(), encoded.prompt, uint8_t{0});
  if (!encoded.assistant.empty())
    for (size_t i = 0; i < learned.learn.size(); ++i) learned.learn[i] &= encoded.assistant[i];
  if (!options_.packed) {
    // Texts have no answer that could be lost.
    const bool answers = row.kind != data::RowKind::text;
    const auto begin = answers ? encoded.prompt : 0;
    const auto learned_answer = [&](int64_t from) {
      return std::count(learned.learn.begin() + std::min<int64_t>(from, int64_t(learned.learn.size())),
                        learned.learn.end(), uint8_t{1});
    };
    const int64_t before = learned_answer(begin);
    out.cut_tokens = truncate(learned, row);
    const int64_t after = learned_answer(keeps_start() ? begin : std::max<int64_t>(0, begin - out.cut_tokens));
    if (answers) out.mistakes.add_cut(before, after);
  }
  data::Example example;
  add(example, learned, {int32_t(learned.ids.size())});
  out = finished(std::move(out), std::move(example), weights_of_labels(learned.weights), row);
  if (encoded.masks_answer && out.example) out.mistakes.add(data::RowMistake::masked_answer);
  return out;
}

data::Prepared LanguageRows::prepare_tokens(const data::TypedRow& row) const {
  const data::TokenRow& tokens = *row.tokens;
  if (tokens.lengths.size() > 1 && options_.packed)
    refuse(row.where, "the row has several sequences (seq_lengths), so it is packed already",
           "leave packing out: mixture.pack_tokens and trainer.packing");
  Learned learned{tokens.ids, std::vector<uint8_t>(tokens.ids.size(), 1), tokens.weights};
  for (size_t i = 0; i < tokens.labels.size(); ++i) learned.learn[i] = tokens.labels[i] != data::no_label;
  std::vector<int32_t> labels = tokens.labels;
  std::vector<int32_t> lengths = tokens.lengths;
  data::Prepared out;
  if (!options_.packed && lengths.size() > 1 && int64_t(tokens.ids.size()) > common_.max_length.value_or(INT64_MAX))
    refuse(row.where, str("the row is packed to ", tokens.ids.size(), " tokens; max_length is ", *common_.max_length),
           "raise trainer.max_length");
  if (!options_.packed && lengths.size() <= 1) {
    out.cut_tokens = truncate(learned, row);
    if (out.cut_tokens > 0 && !labels.empty()) {
      const size_t from = keeps_start() ? 0 : size_t(out.cut_tokens);
      labels = {labels.begin() + std::ptrdiff_t(from), labels.begin() + std::ptrdiff_t(from + learned.ids.size())};
    }
  }
  if (lengths.size() <= 1) lengths = {int32_t(learned.ids.size())};
  data::Example example;
  add(example, learned, lengths);
  const size_t shift = shifted_ ? 1 : 0;
  // Labels may be other tokens than the ids.
  for (size_t i = shift; i < labels.size(); ++i)
    if (example.labels[i - shift] != data::no_label) example.labels[i - shift] = labels[i];
  std::vector<float> weights = weights_of_labels(learned.weights);
  if (!tokens.next_labels.empty() && out.cut_tokens == 0 && shift == 1) {
    if (weights.empty() && !tokens.next_weights.empty()) weights.assign(example.tokens.size(), 1);
    size_t end = 0;
    for (size_t s = 0; s < lengths.size(); ++s) {
      end += size_t(lengths[s]);
      example.labels[end - 1] = tokens.next_labels[s];
      if (!weights.empty()) weights[end - 1] = tokens.next_weights.empty() ? 1 : tokens.next_weights[s];
    }
  }
  return finished(std::move(out), std::move(example), std::move(weights), row);
}

std::vector<float> LanguageRows::weights_of_labels(const std::vector<float>& weights) const {
  if (!shifted_ || weights.empty()) return weights;
  std::vector<float> out(weights.begin() + 1, weights.end());
  out.push_back(1);
  return out;
}

void LanguageRows::add(data::Example& example, const Learned& learned, const std::vector<int32_t>& lengths) const {
  size_t begin = 0;
  for (const int32_t length : lengths) {
    const std::span<const int32_t> ids(learned.ids.data() + begin, size_t(length));
    const std::span<const uint8_t> learn(learned.learn.data() + begin, size_t(length));
    if (shifted_)
      example.add_sequence(ids, learn);
    else
      example.add_unshifted(ids, learn);
    begin += size_t(length);
  }
}

data::Prepared LanguageRows::finished(data::Prepared out, data::Example example, std::vector<float> weights,
                                      const data::TypedRow& row) const {
  std::ranges::replace_if(
      example.labels, [&](int32_t label) { return label == ignored_label_; }, data::no_label);
  if (weights.empty() && row.weight != 1) weights.assign(example.tokens.size(), 1);
  if (!weights.empty()) {
    bool is_plain = true;
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i] *= float(row.weight);
      if (weights[i] == 0) example.labels[i] = data::no_label;
      if (example.labels[i] == data::no_label) weights[i] = 1;
      is_plain &= weights[i] == 1;
    }
    if (!is_plain) example.set({data::loss_weights, data::Column::Per::token, std::move(weights)});
  }
  if (example.labelled() > 0) out.example = std::move(example);
  return out;
}

bool LanguageRows::learns_completion_only(const data::TypedRow& row) const {
  if (row.kind != data::RowKind::prompt_completion) return false;
  if (options_.completion_only) return *options_.completion_only;
  return !common_.train_on_inputs.value_or(false);
}

int64_t LanguageRows::truncate(Learned& learned, const data::TypedRow& row) const {
  const auto most = size_t(common_.max_length.value_or(0));
  const size_t size = learned.ids.size();
  if (most == 0 || size <= most) return 0;
  const size_t cut = size - most;
  if (!truncates_)
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

Tensor labelled_weights(const Batch& batch) {
  if (!batch.has(data::loss_weights)) return {};
  const Tensor& weights = batch.column(data::loss_weights);
  return weights.index_select(0, batch.labels.ne(data::no_label).nonzero().squeeze(1));
}

}  // namespace easydel::train
