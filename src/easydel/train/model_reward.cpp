#include "easydel/train/model_reward.h"

#include <ATen/ops/tensor.h>

#include "easydel/base/error.h"
#include "easydel/data/encode.h"

namespace easydel::train {
namespace {

constexpr int64_t tokens_at_a_time = 4096;

class ModelReward final : public CompletionReward {
 public:
  ModelReward(SideModel side, std::string where)
      : side_(std::move(side)), where_(std::move(where)), encoder_(side_.tokenizer, data::EncoderOptions{}) {}

  std::vector<std::optional<double>> score(std::span<const Judged> completions) override {
    const c10::InferenceMode no_grad;
    std::vector<std::optional<double>> out;
    std::vector<int64_t> ids, begins{0};
    for (size_t i = 0; i < completions.size(); ++i) {
      const std::vector<int32_t> own = ids_of(completions[i]);
      ids.insert(ids.end(), own.begin(), own.end());
      begins.push_back(int64_t(ids.size()));
      if (i + 1 < completions.size() && int64_t(ids.size()) < tokens_at_a_time) continue;
      add_scores(ids, begins, out);
      ids.clear(), begins = {0};
    }
    return out;
  }

 private:
  std::vector<int32_t> ids_of(const Judged& one) const {
    std::vector<int32_t> ids;
    if (one.asked.is_list()) {
      data::TypedRow row;
      row.kind = data::RowKind::preference;
      row.conversational = true;
      row.prompt = one.asked, row.where = where_;
      Value answer = Value::list(), message = Value::map();
      message.set("role", Value::text("assistant"));
      message.set("content", Value::text(std::string(one.completion)));
      answer.items.push_back(std::move(message));
      row.chosen = row.rejected = std::move(answer);
      ids = encoder_.encode_whole_pair(row)[0];
    } else {
      ids = side_.tokenizer->encode(one.asked.scalar + std::string(one.completion), {.add_special_tokens = false});
    }
    if (ids.empty()) refuse(where_, "a prompt and its completion have no tokens", "drop rows with an empty prompt");
    return ids;
  }

  void add_scores(const std::vector<int64_t>& ids, const std::vector<int64_t>& begins,
                  std::vector<std::optional<double>>& out) const {
    const models::Model& model = *side_.model;
    nn::Pass pass = nn::Pass::over(begins);
    const Tensor tokens = at::tensor(ids, at::kLong).to(model.device());
    const Tensor hidden = model.forward({tokens}, pass).hidden;
    const Tensor scores = model.class_head()->scores(hidden, tokens, pass).select(1, 0).to(at::kCPU, at::kDouble);
    for (int64_t i = 0; i < scores.size(0); ++i) out.emplace_back(scores[i].item<double>());
  }

  SideModel side_;
  std::string where_;
  data::Encoder encoder_;
};

}  // namespace

std::unique_ptr<CompletionReward> model_reward(const SideModel& model, const std::string& where) {
  if (!model.tokenizer)
    refuse(where, "the model's folder has no tokenizer", "give a folder with its tokenizer's files");
  const nn::ClassHead* const head = model.model->class_head();
  if (!head || head->spec().pooling == nn::Pooling::none)
    refuse(where, "the model gives no score to a text: it has no class head",
           "give one that was trained to score texts");
  if (head->spec().labels != 1)
    refuse(where, str("the model's class head has ", head->spec().labels, " labels, and a reward is one number"),
           "give a model with one label");
  return std::make_unique<ModelReward>(model, where);
}

std::unique_ptr<CompletionReward> folder_reward(const std::string& folder, const std::string& where) {
  SideModel side;
  side.model = models::load_model(folder, {});
  if (text::Tokenizer::exists(folder)) side.tokenizer = text::Tokenizer::load(folder);
  return model_reward(side, where);
}

}  // namespace easydel::train
