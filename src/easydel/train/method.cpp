#include "easydel/train/method.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/nonzero.h>

#include "easydel/base/error.h"
#include "easydel/train/router_watch.h"

namespace easydel::train {

models::Outputs Forwarding::run(const models::Model& model, const Batch& batch, nn::Pass& pass) const {
  pass = nn::Pass::over(batch.cu_seqlens);
  pass.checkpointing = checkpointing;
  pass.attention = attention;
  pass.training = training;
  pass.seed = seed;
  pass.step = step;
  pass.first_token = first_token;
  if (routers) pass.request("expert_tokens");
  models::Outputs outputs = model.forward({batch.tokens}, pass);
  if (routers) routers->see(model, outputs, pass, metrics);
  return outputs;
}

std::unique_ptr<Method> build_method(const Setting& setting) {
  for (const MethodEntry& entry : methods())
    if (entry.name == setting.trainer.common.trainer_type) return entry.build(setting);
  throw Bug(str("no method ", setting.trainer.common.trainer_type));
}

Batch flat_batch(std::span<const data::Example* const> examples) {
  Batch batch;
  batch.examples = static_cast<int64_t>(examples.size());
  size_t tokens = 0, sequences = 0;
  for (const data::Example* example : examples) {
    tokens += example->tokens.size();
    sequences = std::max(sequences, example->lengths.size());
    batch.values.insert(batch.values.end(), example->values.begin(), example->values.end());
  }
  batch.tokens = at::empty({static_cast<int64_t>(tokens)}, at::kLong);
  batch.labels = at::empty({static_cast<int64_t>(tokens)}, at::kLong);
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
  return batch;
}

std::pair<Tensor, Tensor> labelled_rows(const Tensor& hidden, const Batch& batch) {
  const Tensor labels = batch.labels.to(hidden.device());
  if (batch.labelled == batch.size()) return {hidden, labels};
  const Tensor rows = labels.ne(data::no_label).nonzero().squeeze(1);
  return {hidden.index_select(0, rows), labels.index_select(0, rows)};
}

}  // namespace easydel::train
