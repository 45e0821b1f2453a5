#include "easydel/elarge/compare_predictions.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include "easydel/base/document.h"
#include "easydel/base/error.h"

namespace easydel::elarge {
namespace {

constexpr int64_t chunk_rows = 64;  // whose logits of both models are in memory

struct Window {
  std::vector<int64_t> ids;  // what the models read
  std::vector<int64_t> labels;
};

Window window_of(const std::string& line) {
  const Value value = parse_json(line, "window");
  Window out;
  const auto ids = [&](const char* key) {
    std::vector<int64_t> list;
    if (const Value* const found = value.find(key))
      for (const Value& id : found->items) list.push_back(id.as_int().value());
    return list;
  };
  out.ids = ids("context_ids"), out.labels = ids("continuation_ids");
  check(!out.ids.empty() && !out.labels.empty(), "a window without tokens");
  out.ids.insert(out.ids.end(), out.labels.begin(), out.labels.end() - 1);
  return out;
}

Tensor tensor_of(const std::vector<int64_t>& ids) {
  const Tensor out = at::empty({int64_t(ids.size())}, at::kLong);
  std::ranges::copy(ids, out.data_ptr<int64_t>());
  return out;
}

// The hidden states before each label.
Tensor hidden_of(const models::Model& model, const Window& window, nn::Pass& pass) {
  pass = nn::Pass::over({0, int64_t(window.ids.size())});
  const auto rows = int64_t(window.labels.size());
  pass.stream().requested = {rows};
  return model.forward({.tokens = tensor_of(window.ids).to(model.device())}, pass).hidden;
}

Tensor logprobs_of(const models::Model& model, const Tensor& hidden, nn::Pass& pass) {
  return at::log_softmax(model.head().logits(hidden, pass).to(at::kCPU, at::kFloat), -1);
}

void append(Value& list, const Tensor& numbers, const char* what) {
  const Tensor doubles = numbers.to(at::kDouble).contiguous();
  for (int64_t i = 0; i < doubles.numel(); ++i) {
    const double number = doubles.const_data_ptr<double>()[i];
    if (!std::isfinite(number)) refuse("compare", str(what, " is not a number"), "the weights hold NaN or infinity");
    list.items.push_back(Value::number(number));
  }
}

void append_ids(Value& list, const Tensor& ids) {
  for (int64_t i = 0; i < ids.numel(); ++i) list.items.push_back(Value::integer(ids[i].item<int64_t>()));
}

}  // namespace

void compare_predictions(const models::Model& model, const models::Model& other,
                         const std::vector<std::string>& windows, const OnLineAnswer& on_answer) {
  if (model.head().vocabulary() != other.head().vocabulary())
    refuse("compare",
           str("'", other.folder().string(), "' has ", other.head().vocabulary(), " tokens, and '",
               model.folder().string(), "' ", model.head().vocabulary()),
           "only models with one vocabulary can be compared");
  const at::NoGradGuard no_gradient;
  for (size_t i = 0; i < windows.size(); ++i) {
    const Window window = window_of(windows[i]);
    nn::Pass pass, other_pass;
    const Tensor hidden = hidden_of(model, window, pass), other_hidden = hidden_of(other, window, other_pass);
    const Tensor labels = tensor_of(window.labels).unsqueeze(1);
    Value logprobs = Value::list(), other_logprobs = Value::list(), divergences = Value::list(), tops = Value::list(),
          other_tops = Value::list();
    for (int64_t begin = 0; begin < labels.size(0); begin += chunk_rows) {
      const int64_t end = std::min(begin + chunk_rows, labels.size(0));
      const Tensor p = logprobs_of(model, hidden.slice(0, begin, end), pass),
                   q = logprobs_of(other, other_hidden.slice(0, begin, end), other_pass);
      const Tensor chance = at::exp(p), some = chance > 0;  // an impossible token adds nothing
      const Tensor terms = at::where(some, chance * (p - q), at::zeros_like(p));
      append(logprobs, at::gather(p, 1, labels.slice(0, begin, end)), "a log-probability");
      append(other_logprobs, at::gather(q, 1, labels.slice(0, begin, end)), "a log-probability of the other model");
      append(divergences, terms.sum(-1, false, at::kDouble), "a divergence");
      append_ids(tops, at::argmax(p, -1)), append_ids(other_tops, at::argmax(q, -1));
    }
    Value answer = Value::map();
    answer.set("logprobs", std::move(logprobs));
    answer.set("other_logprobs", std::move(other_logprobs));
    answer.set("divergences", std::move(divergences));
    answer.set("tops", std::move(tops));
    answer.set("other_tops", std::move(other_tops));
    on_answer(i, to_json(answer));
  }
}

}  // namespace easydel::elarge
