// Where in a text the answer to a question is: rows and windows as transformers' examples/pytorch/question-answering
// prepares them, with the loss of its heads.
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/text/tokenizers/cut_encoding.h"
#include "easydel/train/own_task.h"

namespace easydel::train {
namespace {

constexpr const char *answer_begin = "answer_begin", *answer_end = "answer_end";  // places in the example, inclusive

// In characters of the context; nothing: it has no answer.
struct Answer {
  int64_t begin = 0, end = 0;
};

int64_t characters(std::string_view text) {
  return std::ranges::count_if(text, [](char byte) { return (uint8_t(byte) & 0xC0) != 0x80; });
}

// The first entry of a list, or the value itself; null: there is none.
const Value* first_of(const Value& answers, const char* name) {
  const Value* const value = answers.find(name);
  if (!value || !value->is_list()) return value;
  return value->items.empty() ? nullptr : &value->items.front();
}

std::optional<Answer> answer_of(const data::TypedRow& row) {
  if (!row.label.is_map() || !row.label.find("text") || !row.label.find("answer_start"))
    refuse(row.where, "the answers are not {text: [...], answer_start: [...]}",
           "give the texts of the answers and the character of the context at which each begins; empty lists: none");
  const Value *const text = first_of(row.label, "text"), *const start = first_of(row.label, "answer_start");
  if (!text || !start) return std::nullopt;
  const std::optional<int64_t> begin = start->as_int();
  const int64_t length = characters(text->scalar);
  const std::string& context = row.text_pair.scalar;
  // The byte at which the character begins.
  size_t at = 0;
  for (int64_t seen = 0; begin && at < context.size(); ++at)
    if ((uint8_t(context[at]) & 0xC0) != 0x80 && seen++ == *begin) break;
  if (!begin || *begin < 0 || length == 0 || context.compare(at, text->scalar.size(), text->scalar) != 0)
    refuse(row.where,
           str("the answer ", to_yaml_flow(*text), " is not at character ", to_yaml_flow(*start), " of the context"),
           "give the character at which it begins, counted from 0");
  return Answer{*begin, *begin + length};
}

class AnswerLearning final : public Method {
 public:
  AnswerLearning(const Setting& setting, int64_t stride)
      : common_(setting.trainer.common), tokenizer_(setting.tokenizer), stride_(stride) {}

  data::Prepared prepare(const data::TypedRow& row) const override {
    if (row.kind != data::RowKind::labelled || !row.text.is_text() || !row.text_pair.is_text())
      refuse(row.where, "the row has no question and context, and the model finds answers in texts",
             "give question, context and answers");
    const std::optional<Answer> answer = answer_of(row);
    const text::Encoding whole = tokenizer_->encode_full(row.text.scalar, row.text_pair.scalar);
    const auto [begin, end] = context_of(whole, row);
    const auto all = int64_t(whole.ids.size());
    const int64_t around = all - (end - begin), most = common_.max_length.value_or(0);
    const int64_t room = most > 0 ? most - around : end - begin;
    if (room <= stride_ && room < end - begin)
      refuse(row.where,
             str("beside the ", around, " tokens of the question, trainer.max_length: ", most, " leaves ",
                 counted(std::max<int64_t>(room, 0), "token"), " of the context, not more than doc_stride: ", stride_),
             "raise trainer.max_length, or lower doc_stride");
    data::Prepared out;
    for (int64_t first = begin;; first += room - stride_) {
      const int64_t last = std::min(first + room, end);
      data::Example example;
      std::vector<int64_t> types;
      for (int64_t i = 0; i < all; ++i) {
        if (i >= begin && i < end && (i < first || i >= last)) continue;
        example.tokens.push_back(whole.ids[size_t(i)]);
        types.push_back(whole.type_ids[size_t(i)]);
      }
      example.labels.assign(example.tokens.size(), data::no_label);
      example.lengths = {int32_t(example.tokens.size())};
      example.set({token_types, data::Column::Per::token, std::move(types)});
      const auto [from, to] = places(whole, answer, first, last, begin);
      for (const auto& [name, place] : {std::pair{answer_begin, from}, {answer_end, to}})
        example.set({name, data::Column::Per::example, std::vector<int64_t>{place}});
      if (!out.example)
        out.example = std::move(example);
      else
        out.further.push_back(std::move(example));
      if (last == end) break;
    }
    return out;
  }

  Batch collate(std::span<const data::Example* const> examples) const override {
    Batch batch = flat_batch(examples);
    batch.weight = double(batch.examples);
    return batch;
  }

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    nn::Pass pass;
    const models::Outputs outputs = forwarding.run(model, batch, pass);
    const Tensor scores = model.class_head()->scores(outputs.hidden, batch.tokens, pass);
    const Tensor wanted = at::stack({batch.column(answer_begin), batch.column(answer_end)}, 1).to(scores.device());
    Tensor sum = at::zeros({}, scores.options());
    double found = 0;
    for (int64_t i = 0; i < batch.examples; ++i) {
      const Tensor own = scores.slice(0, batch.cu_seqlens[size_t(i)], batch.cu_seqlens[size_t(i) + 1]);
      // The trial that measures memory has fewer tokens than the example that it is made of.
      const Tensor places = wanted[i].clamp_max(own.size(0) - 1);
      sum = sum - at::log_softmax(own, 0).gather(0, places.unsqueeze(0)).sum() / 2;
      if (forwarding.metrics) found += own.detach().argmax(0).equal(places) ? 1 : 0;
    }
    Loss out{sum, {}};
    if (forwarding.metrics) out.metrics.push_back({"exact_match", found, double(batch.examples)});
    return out;
  }

 private:
  // The places of the context's tokens, which follow those of the question and a token that the tokenizer adds.
  std::pair<int64_t, int64_t> context_of(const text::Encoding& whole, const data::TypedRow& row) const {
    const text::Encoding question = tokenizer_->encode_full(row.text.scalar, std::nullopt);
    int64_t left = int64_t(question.ids.size()) - text::added_tokens(question), begin = -1, end = -1;
    for (size_t i = 0; i < whole.ids.size(); ++i) {
      if (whole.special_tokens_mask[i] || left-- > 0) continue;
      if (begin < 0) begin = int64_t(i);
      end = int64_t(i) + 1;
    }
    if (begin < 0) refuse(row.where, "the context is empty", "drop the row, or give it a text");
    return {begin, end};
  }

  // The first and the last token of the answer in a window of the context's tokens [first, last); of an answer that is
  // not all there, twice the first token that the tokenizer adds.
  static std::pair<int64_t, int64_t> places(const text::Encoding& whole, const std::optional<Answer>& answer,
                                            int64_t first, int64_t last, int64_t begin) {
    const auto& at = whole.offsets;
    if (!answer || at[size_t(first)].first > answer->begin || at[size_t(last) - 1].second < answer->end) {
      const auto added = std::ranges::find(whole.special_tokens_mask, uint8_t{1});
      const int64_t place = added == whole.special_tokens_mask.end() ? 0 : added - whole.special_tokens_mask.begin();
      return {place, place};
    }
    int64_t from = first, to = last - 1;
    while (from < last && at[size_t(from)].first <= answer->begin) ++from;
    while (to >= first && at[size_t(to)].second >= answer->end) --to;
    return {from - 1 - (first - begin), to + 1 - (first - begin)};
  }

  TrainerConfig common_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  int64_t stride_;
};

}  // namespace

std::unique_ptr<Method> answer_learning(const Setting& setting, int64_t stride) {
  return std::make_unique<AnswerLearning>(setting, stride);
}

}  // namespace easydel::train
