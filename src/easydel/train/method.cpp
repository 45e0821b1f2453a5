#include "easydel/train/method.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/tensor.h>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/train/router_watch.h"

namespace easydel::train {

models::Outputs Forwarding::run(const models::Model& model, const Batch& batch, nn::Pass& pass) const {
  pass = nn::Pass::over(batch.cu_seqlens);
  pass.activations().checkpointing = checkpointing;
  pass.random().training = training;
  pass.random().seed = seed;
  pass.random().step = step;
  pass.random().first_token = first_token;
  pass.stream().adapters = adapters;
  if (routers) pass.request("expert_tokens");
  pass.random().embedding_noise = embedding_noise;
  pass.activations().capture = capture;
  if (attention_weights) pass.request("attn_weights");
  models::Inputs inputs{batch.tokens};
  if (batch.has(token_types) && batch.column(token_types).any().item<bool>())
    inputs.token_types = batch.column(token_types).to(batch.tokens.device());
  models::Outputs outputs = model.forward(inputs, pass);
  if (routers) routers->see(model, outputs, pass, metrics);
  return outputs;
}

Tensor Forwarding::sum(const Tensor& x) const { return ranks ? ranks->sum_of_parts(x * share) : x; }

Tensor Forwarding::gather(const Tensor& rows) const { return ranks ? ranks->rows_of_parts(rows, share > 0) : rows; }

double Forwarding::total(double x) const {
  double sum = share * x;
  if (ranks) ranks->sum({&sum, 1});
  return sum;
}

Tensor Forwarding::mean(const Tensor& sum, const Tensor& count, double weight) const {
  if (!ranks) return sum / count;
  const double all = total(count.item<double>());
  return sum * (total(weight) / (std::max(all, 1e-9) * weight));
}

namespace {

// Whether the tokens that are learned of the two answers are the same.
bool learns_equal_tokens(const data::Prepared& prepared) {
  const data::Example& example = *prepared.example;
  if (!prepared.further.empty()) return example.tokens == prepared.further.front().tokens;
  if (example.lengths.size() < 2 || example.lengths[0] != example.lengths[1]) return false;
  return std::equal(example.tokens.begin(), example.tokens.begin() + example.lengths[0],
                    example.tokens.begin() + example.lengths[0]);
}

data::Prepared prepared(const Method& method, const data::TypedRow& row) {
  data::Prepared out = method.prepare(row);
  if (row.kind != data::RowKind::preference || !out.example) return out;
  if (!row.chosen.is_null() && row.chosen == row.rejected)
    out.mistakes.add(data::RowMistake::equal_answers);
  else if (learns_equal_tokens(out))
    out.mistakes.add(data::RowMistake::equal_tokens);
  return out;
}

}  // namespace

namespace {

// Marks of messages would be ignored, and a mask that is not applied teaches what was to be left out.
void refuse_weights(const data::TypedRow& row, const MethodConfig& config) {
  const auto is_weighted = [](const Value& messages) { return messages.is_list() && data::has_effect(messages); };
  const bool in_messages = is_weighted(row.text) || is_weighted(row.prompt) || is_weighted(row.completion) ||
                           is_weighted(row.chosen) || is_weighted(row.rejected);
  if (row.weight == 1 && !in_messages) return;
  std::vector<std::string> others;
  for (const MethodConfig& other : method_configs())
    if (other.facts.weighs) others.emplace_back(other.name);
  refuse(row.where,
         str(in_messages ? "a message has a weight or train: false, which trainer_type "
                         : "the row has a weight, which trainer_type ",
             config.name, " does not use"),
         str(in_messages ? "leave it out" : "leave the inform's weight_field out",
             "; weights are for trainer_type: ", join(others, ", ")));
}

}  // namespace

data::Prepare preparation(const Method& method, const MethodConfig& config) {
  return [&method, &config](const data::TypedRow& row) {
    if (!config.facts.weighs) refuse_weights(row, config);
    if (config.facts.rows.has(row.kind)) return prepared(method, row);
    std::vector<std::string> others;
    for (const MethodConfig& other : method_configs())
      if (other.facts.rows.has(row.kind)) others.emplace_back(other.name);
    refuse(row.where, str("a row of kind ", data::name_of(row.kind), " is not for this trainer_type"),
           str("give ", data::fields_of(config.facts.rows),
               others.empty() ? "" : "; or set trainer_type: " + join(others, " or ")));
  };
}

double Metric::value() const {
  const double mean = sum / count;
  return exponential ? std::exp(mean) : mean;
}

const Tensor& Batch::column(std::string_view name) const {
  const auto found = columns.find(name);
  check(found != columns.end(), "the batch has no column ", name);
  return found->second;
}

namespace {

// A column of all examples, in the order of flat_batch. `sequences`: the largest number in one example.
template <class T>
Tensor collated(std::span<const data::Example* const> examples, const data::Column& like, size_t sequences) {
  std::vector<const std::vector<T>*> lists;
  for (const data::Example* example : examples) {
    const data::Column* const column = example->find(like.name);
    check(column && column->per == like.per && column->values.index() == like.values.index(), "column ", like.name,
          " is not alike in all examples of a batch");
    lists.push_back(&std::get<std::vector<T>>(column->values));
  }
  std::vector<T> out;
  if (like.per == data::Column::Per::list) {
    for (const std::vector<T>* const list : lists) out.insert(out.end(), list->begin(), list->end());
    return at::tensor(at::ArrayRef<T>(out), c10::CppTypeToScalarType<T>::value);
  }
  std::vector<size_t> done(examples.size(), 0);
  for (size_t s = 0; s < (like.per == data::Column::Per::example ? 1 : sequences); ++s)
    for (size_t e = 0; e < examples.size(); ++e) {
      if (like.per != data::Column::Per::example && s >= examples[e]->lengths.size()) continue;
      const size_t count = like.per == data::Column::Per::token ? size_t(examples[e]->lengths[s]) : 1;
      const auto begin = lists[e]->begin() + static_cast<std::ptrdiff_t>(done[e]);
      out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
      done[e] += count;
    }
  return at::tensor(at::ArrayRef<T>(out), c10::CppTypeToScalarType<T>::value);
}

}  // namespace

Batch flat_batch(std::span<const data::Example* const> examples) {
  Batch batch;
  batch.examples = int64_t(examples.size());
  size_t tokens = 0, sequences = 0;
  for (const data::Example* example : examples) {
    tokens += example->tokens.size();
    sequences = std::max(sequences, example->lengths.size());
  }
  batch.tokens = at::empty({int64_t(tokens)}, at::kLong);
  batch.labels = at::empty({int64_t(tokens)}, at::kLong);
  auto* ids = batch.tokens.data_ptr<int64_t>();
  auto* labels = batch.labels.data_ptr<int64_t>();
  batch.cu_seqlens.push_back(0);
  int64_t at = 0;
  std::vector<size_t> done(examples.size(), 0);
  for (size_t s = 0; s < sequences; ++s)
    for (size_t e = 0; e < examples.size(); ++e) {
      const data::Example& example = *examples[e];
      if (s >= example.lengths.size()) continue;
      for (int32_t i = 0; i < example.lengths[s]; ++i, ++done[e], ++at) {
        ids[at] = example.tokens[done[e]];
        labels[at] = example.labels[done[e]];
        batch.labelled += labels[at] != data::no_label;
      }
      batch.cu_seqlens.push_back(at);
    }
  if (examples.empty()) return batch;
  for (const data::Example* example : examples)
    check(example->columns.size() == examples[0]->columns.size(), "examples of one batch have unequal columns");
  for (const data::Column& column : examples[0]->columns)
    batch.columns.emplace(column.name, std::holds_alternative<std::vector<float>>(column.values)
                                           ? collated<float>(examples, column, sequences)
                                           : collated<int64_t>(examples, column, sequences));
  return batch;
}

std::pair<Tensor, Tensor> labelled_rows(const Tensor& hidden, const Batch& batch, nn::Pass& pass) {
  const Tensor labels = batch.labels.to(hidden.device());
  if (batch.labelled == batch.size()) return {hidden, labels};
  const Tensor rows = labels.ne(data::no_label).nonzero().squeeze(1);
  pass.stream().head_tokens = rows.to(at::kCPU);
  return {hidden.index_select(0, rows), labels.index_select(0, rows)};
}

std::pair<Tensor, Tensor> labelled_rows(const Tensor& hidden, const Batch& batch) {
  nn::Pass none;
  return labelled_rows(hidden, batch, none);
}

}  // namespace easydel::train
