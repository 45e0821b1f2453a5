#include "easydel/train/separate_answers.h"

#include <algorithm>

#include "easydel/base/error.h"

namespace easydel::train {

AnswerLimits pair_limits(const TrainerConfig& common, const PairKeys& keys) {
  return limits_of(common, keys.max_prompt_length, keys.max_completion_length);
}

data::Prepared prepared_separately(const data::Encoder& encoder, const data::TypedRow& row, const AnswerLimits& limits,
                                   bool chosen_prompts) {
  if (row.prompt.is_text() && row.prompt.scalar.empty())
    refuse(row.where, "field 'prompt' is empty", "drop the row, or give it a text");
  data::Prepared out;
  data::Example example;
  std::vector<int64_t> answers;
  bool learnable = true;
  for (data::SeparateAnswer& one : encoder.encode_separately(row)) {
    encoder.add_ends(one);
    if (one.merges) out.mistakes.add(data::RowMistake::merged_prompt);
    const auto whole_answer = int64_t(one.answer.size());
    const auto drop = [&](std::vector<int32_t>& ids, int64_t most, bool start) {
      const int64_t over = std::max<int64_t>(0, int64_t(ids.size()) - most);
      out.cut_tokens += over;
      if (start)
        ids.erase(ids.begin(), ids.begin() + over);
      else
        ids.erase(ids.end() - over, ids.end());
    };
    if (limits.prompt) drop(one.prompt, *limits.prompt, true);
    if (limits.completion) drop(one.answer, *limits.completion, false);
    if (limits.whole) {
      drop(one.answer, std::max<int64_t>(0, *limits.whole - int64_t(one.prompt.size())), false);
      drop(one.prompt, *limits.whole, true);
    }
    out.mistakes.add_cut(whole_answer, int64_t(one.answer.size()));
    const size_t prompt = one.prompt.size();
    std::vector<int32_t> ids = std::move(one.prompt);
    ids.insert(ids.end(), one.answer.begin(), one.answer.end());
    std::vector<uint8_t> learn(ids.size(), 1);
    if (!chosen_prompts || !example.lengths.empty()) std::fill_n(learn.begin(), prompt, uint8_t{0});
    example.add_sequence(ids, learn);
    for (size_t i = 0; i < ids.size(); ++i) answers.push_back(i + 1 >= prompt && i + 1 < ids.size() ? 1 : 0);
    learnable &= !one.answer.empty() && ids.size() > 1;
  }
  example.set({in_answer, data::Column::Per::token, std::move(answers)});
  if (learnable) out.example = std::move(example);
  return out;
}

}  // namespace easydel::train
