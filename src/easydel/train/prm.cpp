// trainer_type: prm. A process reward model as TRL 0.24 has it: a head of two classes, and one label a step of the
// answer, on the token that ends the step.
#include "easydel/train/prm_config.h"

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nonzero.h>

#include "easydel/base/error.h"
#include "easydel/train/method.h"

namespace easydel::train {
namespace {

class Prm final : public Method {
 public:
  explicit Prm(const Setting& setting)
      : config_(setting.trainer.own_as<PrmConfig>()), common_(setting.trainer.common), tokenizer_(setting.tokenizer) {
    if (tokenizer_) separator_ = encode(config_.step_separator);
    if (tokenizer_ && separator_.empty())
      refuse("trainer.step_separator", "it has no tokens, so no step could end", "give a text, such as \"\\n\"");
  }

  data::Prepared prepare(const data::TypedRow& row) const override {
    if (!row.prompt.is_text())
      refuse(row.where, "the prompt is a list of messages, and steps are texts", "give the prompt as a text");
    std::vector<int32_t> prompt = encode(row.prompt.scalar), completion, labels;
    if (const auto bos = tokenizer_->bos_id()) prompt.insert(prompt.begin(), *bos);
    const size_t steps = row.completions.items.size();
    for (size_t i = 0; i < steps; ++i) {
      const std::vector<int32_t> step = encode(row.completions.items[i].scalar);
      completion.insert(completion.end(), step.begin(), step.end());
      completion.insert(completion.end(), separator_.begin(), separator_.end());
      labels.resize(completion.size(), data::no_label);
      const bool learned = !config_.train_on_last_step_only || row.evaluation || i + 1 == steps;
      if (learned) labels.back() = *row.label.items[i].as_bool() ? 1 : 0;
    }
    data::Prepared out;
    const auto keep = [&](std::vector<int32_t>& ids, int64_t most) {
      if (int64_t(ids.size()) <= most) return;
      out.cut_tokens += int64_t(ids.size()) - most;
      ids.resize(size_t(most));
    };
    if (const auto most = config_.max_prompt_length; most && int64_t(prompt.size()) > *most) {
      out.cut_tokens += int64_t(prompt.size()) - *most;
      prompt.erase(prompt.begin(), prompt.end() - static_cast<std::ptrdiff_t>(*most));
    }
    const auto whole_answer = int64_t(completion.size());
    if (config_.max_completion_length) keep(completion, *config_.max_completion_length);
    std::vector<int32_t> ids = prompt;
    ids.insert(ids.end(), completion.begin(), completion.end());
    if (common_.max_length.value_or(0) > 0) keep(ids, *common_.max_length);
    out.mistakes.add_cut(whole_answer, int64_t(ids.size() - std::min(prompt.size(), ids.size())));
    data::Example example;
    example.tokens = ids;
    example.labels.assign(std::min(prompt.size(), ids.size()), data::no_label);
    for (size_t i = 0; example.labels.size() < ids.size(); ++i) example.labels.push_back(labels[i]);
    example.lengths = {int32_t(ids.size())};
    if (example.labelled() > 0) out.example = std::move(example);
    return out;
  }

  Batch collate(std::span<const data::Example* const> examples) const override {
    Batch batch = flat_batch(examples);
    batch.weight = double(batch.labelled);
    return batch;
  }

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    Forwarding how = forwarding;
    if (config_.disable_dropout) how.training = false;
    nn::Pass pass;
    const models::Outputs outputs = how.run(model, batch, pass);
    const nn::ClassHead* const head = model.class_head();
    check(head, "a process reward model without a class head");
    const Tensor scores = head->scores(outputs.hidden, batch.tokens, pass);
    const Tensor rows = batch.labels.ne(data::no_label).nonzero().squeeze(1).to(scores.device());
    const Tensor labels = batch.labels.to(scores.device()).index_select(0, rows);
    const Tensor own = scores.index_select(0, rows);
    Loss out;
    out.sum = -at::log_softmax(own, 1).gather(1, labels.unsqueeze(1)).sum();
    if (how.metrics)
      out.metrics.push_back({"accuracy", own.argmax(1).eq(labels).sum().item<double>(), double(batch.labelled)});
    return out;
  }

 private:
  std::vector<int32_t> encode(const std::string& text) const {
    return tokenizer_->encode(text, {.add_special_tokens = false});
  }

  PrmConfig config_;
  TrainerConfig common_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::vector<int32_t> separator_;
};

}  // namespace

MethodEntry prm() {
  return {"prm", [](const Setting& setting) -> std::unique_ptr<Method> { return std::make_unique<Prm>(setting); }};
}

}  // namespace easydel::train
