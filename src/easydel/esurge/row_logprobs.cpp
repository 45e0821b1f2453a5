#include "easydel/esurge/row_logprobs.h"

#include <algorithm>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/kernels/executor.h"
#include "easydel/kernels/log_probability.h"

namespace easydel::esurge {
namespace {

void logprobs_of(std::span<const float> logits, std::span<const TokenId> tokens, float* out) {
  const std::vector<int64_t> labels(tokens.begin(), tokens.end());
  std::vector<float> lse(tokens.size());
  // All labels are of the same row.
  kernels::log_probabilities(kernels::serial_executor(), {logits.data(), 0}, labels.data(), int64_t(labels.size()),
                             int64_t(logits.size()), {.logps = out, .lse = lse.data()});
}

}  // namespace

float row_logprob(std::span<const float> logits, TokenId token) {
  float logprob = 0;
  logprobs_of(logits, {&token, 1}, &logprob);
  return logprob;
}

float row_entropy(std::span<const float> logits) {
  const int64_t label = 0;
  float logprob = 0, lse = 0, entropy = 0;
  kernels::log_probabilities(kernels::serial_executor(), {logits.data(), 0}, &label, 1, int64_t(logits.size()),
                             {.logps = &logprob, .lse = &lse, .entropy = &entropy});
  return entropy;
}

TokenLogprobs row_logprobs(std::span<const float> logits, int64_t count, TokenId chosen) {
  check(chosen >= 0 && size_t(chosen) < logits.size(), "log-probabilities: token ", chosen, " of ", logits.size());
  const auto likelier = [&](TokenId a, TokenId b) {
    const float x = logits[size_t(a)], y = logits[size_t(b)];
    return x != y ? x > y : a < b;
  };
  // A heap whose first element is the least likely one of those kept.
  std::vector<TokenId> kept;
  const auto most = size_t(std::min(count, int64_t(logits.size())));
  for (TokenId id = 0; most > 0 && size_t(id) < logits.size(); ++id) {
    if (kept.size() == most && !likelier(id, kept.front())) continue;
    if (kept.size() == most) {
      std::ranges::pop_heap(kept, likelier);
      kept.back() = id;
    } else {
      kept.push_back(id);
    }
    std::ranges::push_heap(kept, likelier);
  }
  std::ranges::sort(kept, likelier);
  if (std::ranges::find(kept, chosen) == kept.end()) kept.push_back(chosen);
  TokenLogprobs out;
  out.token_ids = std::move(kept);
  out.logprobs.resize(out.token_ids.size());
  logprobs_of(logits, out.token_ids, out.logprobs.data());
  out.chosen = size_t(std::ranges::find(out.token_ids, chosen) - out.token_ids.begin());
  return out;
}

}  // namespace easydel::esurge
