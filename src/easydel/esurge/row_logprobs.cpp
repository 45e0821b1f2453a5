#include "easydel/esurge/row_logprobs.h"

#include <algorithm>
#include <numeric>
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

// The `count` most likely tokens, most likely first.
std::vector<TokenId> most_likely(std::span<const float> logits, size_t count) {
  const auto likelier = [&](TokenId a, TokenId b) {
    const float x = logits[size_t(a)], y = logits[size_t(b)];
    return x != y ? x > y : a < b;
  };
  // A heap whose first element is the least likely one of those kept.
  std::vector<TokenId> kept(std::min(count, logits.size()));
  if (kept.empty()) return kept;
  std::iota(kept.begin(), kept.end(), TokenId(0));
  std::ranges::make_heap(kept, likelier);
  constexpr size_t block = 64;
  for (size_t begin = kept.size(); begin < logits.size(); begin += block) {
    const size_t end = std::min(begin + block, logits.size());
    // Almost no block has anything likelier, which the compiler finds out for several values at a time.
    const float least = logits[size_t(kept.front())];
    unsigned any = 0;
    for (size_t i = begin; i < end; ++i) any |= unsigned(logits[i] > least);
    for (size_t i = begin; any != 0 && i < end; ++i) {
      if (!likelier(TokenId(i), kept.front())) continue;
      std::ranges::pop_heap(kept, likelier);
      kept.back() = TokenId(i);
      std::ranges::push_heap(kept, likelier);
    }
  }
  std::ranges::sort(kept, likelier);
  return kept;
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
  std::vector<TokenId> kept = most_likely(logits, size_t(std::max<int64_t>(0, count)));
  if (std::ranges::find(kept, chosen) == kept.end()) kept.push_back(chosen);
  TokenLogprobs out;
  out.token_ids = std::move(kept);
  out.logprobs.resize(out.token_ids.size());
  logprobs_of(logits, out.token_ids, out.logprobs.data());
  out.chosen = size_t(std::ranges::find(out.token_ids, chosen) - out.token_ids.begin());
  return out;
}

}  // namespace easydel::esurge
