#include <ATen/ops/log_softmax.h>

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/tensor/random.h"
#include "easydel/train/encoded_texts.h"
#include "easydel/train/own_task.h"

namespace easydel::train {
namespace {

// As the model's tokenizer_config.json names it, else by the names that are in use.
text::TokenId mask_of(const models::Model& model, const text::Tokenizer& tokenizer) {
  std::vector<std::string> names;
  if (const auto file = model.folder() / "tokenizer_config.json"; !model.folder().empty() && files::is_file(file)) {
    const Value settings = parse_file(file);
    const Value* mask = settings.find("mask_token");
    if (mask && mask->is_map()) mask = mask->find("content");
    if (mask && mask->is_text()) names.push_back(mask->scalar);
  }
  names.insert(names.end(), {"[MASK]", "<mask>"});
  for (const std::string& name : names)
    if (const auto id = tokenizer.id_of(name)) return *id;
  refuse("model.tokenizer", "the tokenizer has no mask token", "give the tokenizer of a masked language model");
}

// What a masked language model reads and is to say, as DataCollatorForLanguageModeling of transformers draws it: of the
// tokens that are chosen 80 % are masked, 10 % become any token, and 10 % stay.
class Masking {
 public:
  Masking(double probability, text::TokenId mask, int64_t vocabulary)
      : probability_(probability), mask_(mask), vocabulary_(vocabulary) {}

  // Draws are a function of the key, `number`, and the place in the example. What the tokenizer added is never chosen.
  data::Example masked(const data::Example& example, tensor::Key key, uint64_t number) const {
    data::Example out = example;
    const data::Column* const column = example.find(added_column);
    check(column, "an example that does not know its special tokens");
    const auto& added = std::get<std::vector<int64_t>>(column->values);
    for (size_t i = 0; i < out.tokens.size(); ++i) {
      const auto draws = tensor::philox(key, i, number);
      if (added[i] || tensor::uniform(draws[0]) >= float(probability_)) continue;
      out.labels[i] = out.tokens[i];
      const float becomes = tensor::uniform(draws[1]);
      if (becomes < 0.8f)
        out.tokens[i] = mask_;
      else if (becomes < 0.9f)
        out.tokens[i] = int32_t(uint64_t(draws[2]) * uint64_t(vocabulary_) >> 32);
    }
    return out;
  }

  static constexpr const char* added_column = "added_tokens";

 private:
  double probability_;
  text::TokenId mask_;
  int64_t vocabulary_;
};

// Each step masks its examples anew.
class MaskedSource final : public BatchSource {
 public:
  MaskedSource(std::unique_ptr<BatchSource> rows, const Masking& masking, uint64_t seed)
      : rows_(std::move(rows)), masking_(masking), key_(tensor::key_of(seed, "masked tokens")) {}
  int64_t steps_in_epoch() const override { return rows_->steps_in_epoch(); }
  std::vector<MicroBatch> step(int64_t step) override {
    std::vector<MicroBatch> batches = rows_->step(step);
    size_t count = 0;
    for (const MicroBatch& batch : batches) count += batch.size();
    masked_.clear();
    masked_.reserve(count);  // examples keep their addresses
    for (MicroBatch& batch : batches)
      for (const data::Example*& example : batch) {
        const uint64_t number = (uint64_t(step) << 32) + masked_.size();
        example = &masked_.emplace_back(masking_.masked(*example, key_, number));
      }
    return batches;
  }
  Value cursor(int64_t step) const override { return rows_->cursor(step); }
  void go_to(int64_t step, const Value& cursor) override { rows_->go_to(step, cursor); }
  std::vector<std::vector<ExampleSize>> sizes(int64_t step) override { return rows_->sizes(step); }
  std::string fingerprint() const override { return rows_->fingerprint(); }
  data::Dataset* dataset() override { return rows_->dataset(); }

 private:
  std::unique_ptr<BatchSource> rows_;
  Masking masking_;
  tensor::Key key_;
  std::vector<data::Example> masked_;
};

class MaskedLearning final : public Method {
 public:
  MaskedLearning(const Setting& setting, double probability)
      : common_(setting.trainer.common),
        tokenizer_(setting.tokenizer),
        masking_(probability, mask_of(*setting.model, *setting.tokenizer), setting.tokenizer->vocabulary_size()) {}

  data::Prepared prepare(const data::TypedRow& row) const override {
    const bool is_text = (row.kind == data::RowKind::text || row.kind == data::RowKind::labelled) && row.text.is_text();
    if (!is_text)
      refuse(row.where, str("a row of kind ", data::name_of(row.kind), " has no text to mask"), "give rows of texts");
    data::Prepared out;
    const text::Encoding text = encoded(*tokenizer_, row.text.scalar, std::nullopt, common_, out.cut_tokens);
    if (text.ids.empty()) return out;
    data::Example example;
    example.tokens.assign(text.ids.begin(), text.ids.end());
    example.labels.assign(text.ids.size(), data::no_label);
    example.lengths = {int32_t(text.ids.size())};
    example.set({Masking::added_column, data::Column::Per::token,
                 std::vector<int64_t>(text.special_tokens_mask.begin(), text.special_tokens_mask.end())});
    out.example = std::move(example);
    return out;
  }

  std::unique_ptr<BatchSource> source(std::unique_ptr<BatchSource> rows, const Sampler*) override {
    return std::make_unique<MaskedSource>(std::move(rows), masking_, uint64_t(common_.shuffle_seed_train));
  }

  // Examples that no step has masked are evaluated: the same tokens of a text are chosen every time.
  Batch collate(std::span<const data::Example* const> examples) const override {
    std::vector<data::Example> masked;
    masked.reserve(examples.size());
    MicroBatch batch(examples.begin(), examples.end());
    for (const data::Example*& example : batch) {
      if (example->labelled() > 0) continue;
      uint64_t text = 14695981039346656037ull;  // FNV-1a of the ids
      for (const int32_t id : example->tokens) text = (text ^ uint64_t(id)) * 1099511628211ull;
      example = &masked.emplace_back(masking_.masked(*example, tensor::key_of(text, "evaluated tokens"), 0));
    }
    Batch out = flat_batch(batch);
    out.weight = double(out.labelled);
    return out;
  }

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    nn::Pass pass;
    const models::Outputs outputs = forwarding.run(model, batch, pass);
    if (batch.labelled == 0) return {outputs.hidden.sum() * 0, {}};
    const auto [hidden, labels] = labelled_rows(outputs.hidden, batch, pass);
    const nn::Scores scores = model.head().score(hidden, labels, pass, {.correct = forwarding.metrics});
    Loss out{-scores.logps.sum(), {}};
    if (forwarding.metrics)
      out.metrics.push_back({"accuracy", scores.correct.sum().item<double>(), double(batch.labelled)});
    return out;
  }

 private:
  TrainerConfig common_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  Masking masking_;
};

}  // namespace

std::unique_ptr<Method> masked_learning(const Setting& setting, double probability) {
  return std::make_unique<MaskedLearning>(setting, probability);
}

}  // namespace easydel::train
