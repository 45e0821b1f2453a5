#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/train/encoded_texts.h"
#include "easydel/train/own_task.h"

namespace easydel::train {
namespace {

constexpr const char* class_column = "class";
std::string number_column(size_t index) { return str("number_", index); }

// The model's classes.
class Classes {
 public:
  explicit Classes(const models::Model* model) {
    if (!model) return;
    const nn::ClassHead* const head = model->class_head();
    check(head, "a model with classes and without a head");
    count_ = head->spec().labels;
    const Value* const names = model->config().find("id2label");
    if (!names) return;
    for (const auto& [number, name] : names->entries) {
      int64_t id = 0;
      if (std::from_chars(number.data(), number.data() + number.size(), id).ec == std::errc()) ids_[name.scalar] = id;
    }
  }
  int64_t count() const { return count_; }  // 0: unknown

  // A class by its number or its name; -100 is none.
  int64_t of(const Value& label, const std::string& where) const {
    const std::optional<int64_t> number = label.as_int();
    if (const auto named = ids_.find(label.scalar); !number && named != ids_.end()) return named->second;
    if (!number && count_ == 0) return 0;  // its name is checked when there is a model
    if (number && (count_ == 0 || (*number >= 0 && *number < count_) || *number == data::no_label)) return *number;
    std::vector<std::string> known;
    for (const auto& [name, id] : ids_) known.push_back(name);
    refuse(where, str("label ", to_yaml_flow(label), " is not one of the model's ", count_, " classes"),
           known.empty() ? str("give numbers from 0 to ", count_ - 1, ", or set base_config.values.num_labels")
                         : str("they are ", join(known, ", ")));
  }

 private:
  int64_t count_ = 0;
  std::map<std::string, int64_t, std::less<>> ids_;
};

// One class, several or numbers: as transformers' heads decide it, by config.json's problem_type, else by the labels.
enum class LabelKind : uint8_t { one_class, several_classes, numbers };

LabelKind label_kind(const models::Model* model, const Value& label) {
  std::string said;
  if (const Value* const type = model ? model->config().find("problem_type") : nullptr) said = type->scalar;
  if (said == "regression") return LabelKind::numbers;
  if (said == "multi_label_classification") return LabelKind::several_classes;
  if (said == "single_label_classification") return LabelKind::one_class;
  if (model && model->class_head()->spec().labels == 1) return LabelKind::numbers;
  if (label.is_list()) return LabelKind::several_classes;
  return label.as_int() || !label.as_double() ? LabelKind::one_class : LabelKind::several_classes;
}

class ClassLearning final : public Method {
 public:
  explicit ClassLearning(const Setting& setting)
      : common_(setting.trainer.common),
        tokenizer_(setting.tokenizer),
        model_(setting.model),
        classes_(setting.model.get()) {}

  data::Prepared prepare(const data::TypedRow& row) const override {
    if (row.kind != data::RowKind::labelled)
      refuse(row.where, str("a row of kind ", data::name_of(row.kind), " has no label, and the model learns classes"),
             "give text and label");
    if (model_) {
      const bool words = model_->task() == models::Task::token_classification;
      if (words && !row.text.is_list())
        refuse(row.where, "the row has a text, and the model classifies words",
               "give words as a list, with as many labels");
      if (!words && row.text.is_list())
        refuse(row.where, "the row has a list of words, and the model classifies texts", "give a text and one label");
    }
    return row.text.is_list() ? prepare_words(row) : prepare_text(row);
  }

  Batch collate(std::span<const data::Example* const> examples) const override {
    Batch batch = flat_batch(examples);
    batch.weight = double(classifies_words() ? batch.labelled : batch.examples);
    return batch;
  }

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    nn::Pass pass;
    const models::Outputs outputs = forwarding.run(model, batch, pass);
    Tensor scores = model.class_head()->scores(outputs.hidden, batch.tokens, pass);
    if (!classifies_words() && !batch.has(class_column)) return number_loss(scores, batch);
    Tensor labels;
    if (classifies_words()) {
      const Tensor rows = batch.labels.ne(data::no_label).nonzero().squeeze(1);
      labels = batch.labels.index_select(0, rows).to(scores.device());
      scores = scores.index_select(0, rows.to(scores.device()));
    } else {
      labels = batch.column(class_column).to(scores.device());
    }
    Loss out{-at::log_softmax(scores, 1).gather(1, labels.unsqueeze(1)).sum(), {}};
    if (forwarding.metrics)
      out.metrics.push_back(
          {"accuracy", scores.detach().argmax(1).eq(labels).sum().item<double>(), double(labels.size(0))});
    return out;
  }

 private:
  bool classifies_words() const { return model_->task() == models::Task::token_classification; }

  // The mean over a row's numbers, or its classes, of squares or of binary cross-entropies.
  Loss number_loss(const Tensor& scores, const Batch& batch) const {
    std::vector<Tensor> columns;
    while (batch.has(number_column(columns.size()))) columns.push_back(batch.column(number_column(columns.size())));
    const Tensor wanted = at::stack(columns, 1).to(scores.device());
    const Tensor of_each = label_kind(model_.get(), Value::list()) == LabelKind::numbers
                               ? (scores - wanted).square()
                               : at::binary_cross_entropy_with_logits(scores, wanted, {}, {}, at::Reduction::None);
    return {of_each.sum() / double(columns.size()), {}};
  }

  data::Prepared prepare_text(const data::TypedRow& row) const {
    data::Prepared out;
    std::optional<std::string> pair;
    if (!row.text_pair.is_null()) pair = row.text_pair.scalar;
    const text::Encoding text = encoded(*tokenizer_, row.text.scalar, pair, common_, out.cut_tokens);
    if (text.ids.empty()) refuse(row.where, "the text is empty", "drop the row, or give it a text");
    data::Example example;
    example.tokens.assign(text.ids.begin(), text.ids.end());
    example.labels.assign(text.ids.size(), data::no_label);
    example.lengths = {int32_t(text.ids.size())};
    example.set(
        {token_types, data::Column::Per::token, std::vector<int64_t>(text.type_ids.begin(), text.type_ids.end())});
    const LabelKind kind = label_kind(model_.get(), row.label);
    if (kind == LabelKind::one_class) {
      if (row.label.is_list())
        refuse(row.where, "the label is a list, and the model has one class for a text", "give one label");
      const int64_t label = classes_.of(row.label, row.where);
      if (label == data::no_label) return out;
      example.set({class_column, data::Column::Per::example, std::vector<int64_t>{label}});
    } else {
      add_numbers(example, row, kind);
    }
    out.example = std::move(example);
    return out;
  }

  void add_numbers(data::Example& example, const data::TypedRow& row, LabelKind kind) const {
    std::vector<Value> numbers = row.label.is_list() ? row.label.items : std::vector<Value>{row.label};
    if (classes_.count() > 0 && int64_t(numbers.size()) != classes_.count())
      refuse(
          row.where,
          str("the row has ", counted(int64_t(numbers.size()), "label"), ", and the model scores ", classes_.count()),
          kind == LabelKind::numbers ? "give a number for each score of the model"
                                     : "give a list with 1 for each class that the text has, and 0 for the others");
    for (size_t i = 0; i < numbers.size(); ++i) {
      const std::optional<double> number = numbers[i].as_double();
      const bool fits = number && (kind == LabelKind::numbers || (*number >= 0 && *number <= 1));
      if (!fits)
        refuse(row.where, str("label ", to_yaml_flow(numbers[i]), " is not a number",
                              kind == LabelKind::numbers ? "" : " from 0 to 1"));
      example.set({number_column(i), data::Column::Per::example, std::vector<float>{float(*number)}});
    }
  }

  // The first token of each word has the word's label, as in transformers' examples.
  data::Prepared prepare_words(const data::TypedRow& row) const {
    if (!row.label.is_list() || row.label.items.size() != row.text.items.size())
      refuse(row.where,
             str("the row has ", counted(int64_t(row.text.items.size()), "word"), " and ",
                 row.label.is_list() ? counted(int64_t(row.label.items.size()), "label") : "no list of labels"),
             "give one label for each word");
    std::string text;
    std::vector<int64_t> word_at;  // of each character of the text
    for (size_t i = 0; i < row.text.items.size(); ++i) {
      const std::string& word = row.text.items[i].scalar;
      if (i > 0) text += ' ', word_at.push_back(int64_t(i));
      text += word;
      for (const char byte : word)
        if ((uint8_t(byte) & 0xC0) != 0x80) word_at.push_back(int64_t(i));
    }
    data::Prepared out;
    const text::Encoding tokens = encoded(*tokenizer_, text, std::nullopt, common_, out.cut_tokens);
    data::Example example;
    example.tokens.assign(tokens.ids.begin(), tokens.ids.end());
    example.lengths = {int32_t(tokens.ids.size())};
    int64_t last = -1;
    for (size_t i = 0; i < tokens.ids.size(); ++i) {
      const auto [begin, end] = tokens.offsets[i];
      int64_t label = data::no_label;
      // A token's last character says its word: the first may be the blank before it.
      if (!tokens.special_tokens_mask[i] && end > begin && end <= int64_t(word_at.size())) {
        const int64_t word = word_at[size_t(end) - 1];
        if (word != std::exchange(last, word)) label = classes_.of(row.label.items[size_t(word)], row.where);
      }
      example.labels.push_back(int32_t(label));
    }
    if (example.labelled() > 0) out.example = std::move(example);
    return out;
  }

  TrainerConfig common_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::shared_ptr<const models::Model> model_;
  Classes classes_;
};

}  // namespace

std::unique_ptr<Method> class_learning(const Setting& setting) { return std::make_unique<ClassLearning>(setting); }

}  // namespace easydel::train
