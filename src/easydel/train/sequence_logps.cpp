#include "easydel/train/sequence_logps.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

namespace easydel::train {

Tensor SequenceScores::sums(const Tensor& per_token) const {
  return at::zeros({lengths.size(0)}, per_token.options()).index_add(0, sequence, per_token);
}

data::Example learned_example(std::span<const int32_t> prompt, std::span<const int32_t> completion,
                              std::span<const uint8_t> inserted) {
  std::vector<int32_t> ids(prompt.begin(), prompt.end());
  ids.insert(ids.end(), completion.begin(), completion.end());
  std::vector<uint8_t> learn(ids.size(), 1);
  std::fill_n(learn.begin(), prompt.size(), uint8_t{0});
  for (size_t i = 0; i < inserted.size(); ++i)
    if (inserted[i]) learn[prompt.size() + i] = 0;
  data::Example out;
  out.add_sequence(ids, learn);
  return out;
}

data::Column kept_tokens(const data::Example& example, size_t prompt, const std::vector<std::vector<int32_t>>& kept) {
  std::vector<int64_t> list;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (example.labels[prompt - 1 + i] == data::no_label) continue;
    list.push_back(std::ssize(kept[i]));
    list.insert(list.end(), kept[i].begin(), kept[i].end());
  }
  return {kept_tokens_column, data::Column::Per::list, std::move(list)};
}

Tensor SequenceScores::places(const Batch& batch) const {
  const Tensor begins = at::tensor(at::IntArrayRef(batch.cu_seqlens), at::kLong).to(sequence.device());
  const Tensor rows = batch.labels.ne(data::no_label).nonzero().squeeze(1).to(sequence.device());
  return rows - begins.index_select(0, sequence);
}

SequenceScores score_sequences(const models::Model& model, const Batch& batch, const Forwarding& forwarding,
                               nn::ScoreOptions options) {
  if (batch.has(kept_tokens_column)) options.kept = batch.column(kept_tokens_column);
  nn::Pass pass;
  const models::Outputs outputs = forwarding.run(model, batch, pass);
  const auto [hidden, labels] = labelled_rows(outputs.hidden, batch, pass);
  const auto sequences = int64_t(batch.cu_seqlens.size()) - 1;

  SequenceScores out;
  const Tensor begins = at::tensor(at::IntArrayRef(batch.cu_seqlens), at::kLong);
  const Tensor all = at::arange(sequences, at::kLong).repeat_interleave(begins.diff());
  out.sequence = all.masked_select(batch.labels.ne(data::no_label)).to(hidden.device());
  out.details = model.head().score(hidden, labels, pass, options);
  out.logps = out.details.logps;
  out.lengths =
      at::zeros({sequences}, out.logps.options()).index_add(0, out.sequence, at::ones_like(out.logps.detach()));
  return out;
}

}  // namespace easydel::train
