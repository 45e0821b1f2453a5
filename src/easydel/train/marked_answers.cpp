#include "easydel/train/marked_answers.h"

#include <ATen/ops/logical_not.h>

#include "easydel/base/error.h"

namespace easydel::train {

void add_marked_metrics(Loss& out, const MarkedAnswers& answers, const Forwarding& how, Metric::Over over) {
  const auto sum = [](const Tensor& values, const Tensor& of) {
    return (values.detach() * of.to(at::kFloat)).sum().item<double>();
  };
  const Tensor bad = answers.good.logical_not();
  const double goods = answers.good.sum().item<double>(), bads = bad.sum().item<double>();
  const double chosen = sum(answers.rewards, answers.good), rejected = sum(answers.rewards, bad);
  out.metrics.push_back({"rewards/chosen", chosen, goods, over});
  out.metrics.push_back({"logps/chosen", sum(answers.logps, answers.good), goods, over});
  out.metrics.push_back({"rewards/rejected", rejected, bads, over});
  out.metrics.push_back({"logps/rejected", sum(answers.logps, bad), bads, over});
  const double all_goods = how.total(goods), all_bads = how.total(bads);
  const double all_chosen = how.total(chosen), all_rejected = how.total(rejected);
  const bool both = all_goods > 0 && all_bads > 0;
  out.metrics.push_back({"rewards/margins", both ? all_chosen / all_goods - all_rejected / all_bads : 0,
                         both ? 1.0 : 0.0, Metric::Over::counted_batches});
}

data::Prepared prepared_marks(const data::TypedRow& row,
                              const std::function<data::Prepared(const data::TypedRow&)>& prepare) {
  if (row.kind == data::RowKind::unpaired) return prepare(row);
  data::TypedRow one = row;
  one.kind = data::RowKind::unpaired;
  // Of ready tokens, the answer that is the completion.
  const auto answer = [&](std::vector<int32_t> data::TokenAnswers::*ids) {
    if (row.answers)
      one.answers = std::make_shared<const data::TokenAnswers>(
          data::TokenAnswers{row.answers->prompt, (*row.answers).*ids, {}, {}, {}});
  };
  one.completion = row.chosen;
  answer(&data::TokenAnswers::chosen);
  one.label = Value::boolean(true);
  data::Prepared out = prepare(one);
  one.completion = row.rejected;
  answer(&data::TokenAnswers::rejected);
  one.label = Value::boolean(false);
  data::Prepared bad = prepare(one);
  out.cut_tokens += bad.cut_tokens;
  out.mistakes.add(bad.mistakes);
  if (bad.example) out.further.push_back(std::move(*bad.example));
  return out;
}

}  // namespace easydel::train
