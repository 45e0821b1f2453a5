#include "easydel/esurge/pooled_text.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "easydel/base/error.h"

namespace easydel::esurge {

PooledText::PooledText(std::vector<TokenId> ids, PooledPrompt asked) : ids_(std::move(ids)), asked_(std::move(asked)) {
  static std::atomic<uint64_t> last = 0;
  number_ = ++last;
}

void PooledText::add(int64_t begin, const Tensor& hidden) {
  const int64_t known = tokens_ - begin;
  check(known >= 0, "pooled text: a gap before token ", begin, " of its hidden states");
  if (known >= hidden.size(0)) return;
  const Tensor added = hidden.slice(0, known);
  tokens_ = begin + hidden.size(0);
  // Before its end it waits for other steps: then a copy, so that the states of a whole pass do not stay with it.
  hidden_.push_back(complete() ? added : added.clone());
}

Pooler::Pooler(const models::Model& model) : model_(&model) {
  classifies_ = model.class_head() && model.task() == models::Task::sequence_classification;
  if (!classifies_) try {
      spec_ = models::read_embedding(model);
    } catch (const UserError& error) {
      refusal_ = error.what();
    }
}

void Pooler::pool(std::span<PooledText* const> texts,
                  std::vector<std::shared_ptr<const nn::LoadedAdapter>> adapters) const {
  std::vector<Tensor> hidden;
  std::vector<int64_t> ids, prompts, begins = {0};
  for (PooledText* const text : texts) {
    check(text->complete(), "pooled text: ", text->tokens_, " of ", text->ids_.size(), " hidden states are there");
    hidden.insert(hidden.end(), text->hidden_.begin(), text->hidden_.end());
    ids.insert(ids.end(), text->ids_.begin(), text->ids_.end());
    prompts.push_back(text->asked_.prompt_tokens);
    begins.push_back(int64_t(ids.size()));
  }
  nn::Pass pass = nn::Pass::over(std::move(begins));
  pass.stream().sequence_adapters = std::move(adapters);
  const Tensor all = hidden.size() == 1 ? hidden[0] : at::cat(hidden);
  const Tensor tokens = at::tensor(ids, at::kLong).to(model_->device());
  const Tensor scores = classifies_          ? model_->class_head()->scores(all, tokens, pass)
                        : spec_.pools_prompt ? models::embeddings(spec_, all, tokens, pass)
                                             : models::embeddings_after_prompts(spec_, all, tokens, pass, prompts);
  const Tensor rows = scores.to(at::kCPU, at::kFloat).contiguous();
  for (size_t i = 0; i < texts.size(); ++i) {
    const float* const begin = rows.const_data_ptr<float>() + int64_t(i) * rows.size(1);
    texts[i]->vector_.assign(begin, begin + rows.size(1));
    texts[i]->hidden_.clear();
  }
}

}  // namespace easydel::esurge
