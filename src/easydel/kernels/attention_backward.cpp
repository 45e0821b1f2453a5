// Cuts the backward of attention into parts; the parts themselves are attention_backward_loops.h.
#include <algorithm>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/kernels/attention.h"
#include "easydel/kernels/attention_step.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/memory.h"

namespace easydel::kernels {

namespace {

// The rows that see any of these keys, whole pieces of them.
AttentionRows rows_seeing(const AttentionBackwardStep& step, const AttentionRows& rows, Range keys) {
  const AttentionSequence& s = *rows.sequence;
  int64_t first = 0, end = s.queries;
  if (step.spec.causal)
    first = std::clamp<int64_t>(keys.begin - s.past, 0, s.queries);
  else if (step.spec.window > 0)
    first = std::clamp<int64_t>(keys.begin + 1 - step.spec.window - s.past, 0, s.queries);
  if (step.spec.chunk > 0) {
    const int64_t c = step.spec.chunk;
    first = std::clamp<int64_t>(keys.begin / c * c - s.past, first, s.queries);
    end = std::clamp<int64_t>(divide_up(keys.end, c) * c - s.past, first, s.queries);
  }
  if (step.spec.window > 0) end = std::clamp<int64_t>(keys.end - 1 + step.spec.window - s.past, first, end);
  first = first / backward_piece * backward_piece;
  end = std::min(round_up(end, backward_piece), s.queries);
  return {&s, rows.kv_head, first * step.group(), (end - first) * step.group()};
}

// One pass does a kv head of a sequence at a time, 5 products. With too few of those for the threads, two passes, 7
// products, over pieces of keys and then of rows, add in the same order.
std::vector<AttentionBackwardPart> cut(const AttentionBackwardStep& step, std::span<const AttentionSequence> sequences,
                                       int threads) {
  std::vector<AttentionRows> all;
  for (const AttentionSequence& s : sequences)
    for (int64_t head = 0; head < step.spec.kv_heads; ++head)
      if (s.queries > 0 || s.keys > 0) all.push_back({&s, head, 0, s.queries * step.group()});
  std::stable_sort(all.begin(), all.end(),
                   [](const AttentionRows& a, const AttentionRows& b) { return a.sequence->keys > b.sequence->keys; });
  const int64_t count = int64_t(all.size()), rounds = divide_up(count, threads);
  std::vector<AttentionBackwardPart> parts;
  if (7 * count >= 5 * rounds * threads) {
    for (const AttentionRows& rows : all) parts.push_back({rows, {0, rows.sequence->keys}, true, true});
    return parts;
  }
  constexpr int64_t some_keys = 2 * backward_piece;
  const int64_t some_rows = backward_piece * step.group();
  for (const AttentionRows& rows : all) {
    const int64_t keys = rows.sequence->keys;
    for (int64_t k = 0; k < keys; k += some_keys) {
      const Range range{k, std::min(k + some_keys, keys)};
      parts.push_back({rows_seeing(step, rows, range), range, false, true});
    }
    for (int64_t r = 0; r < rows.count; r += some_rows) {
      const AttentionRows some{rows.sequence, rows.kv_head, r, std::min(some_rows, rows.count - r)};
      const int64_t begin = visible(step.spec, *rows.sequence, r / step.group()).begin;
      const int64_t end = visible(step.spec, *rows.sequence, (r + some.count - 1) / step.group()).end;
      parts.push_back({some, {std::min(begin, end) / backward_piece * backward_piece, end}, true, false});
    }
  }
  return parts;
}

}  // namespace

void attend_backward(Executor& executor, const AttentionSpec& spec, std::span<const AttentionSequence> sequences,
                     const AttentionGradient& gradient) {
  for (const AttentionSequence& s : sequences) check(!s.pages, "attention: no gradient through pages");
  int64_t tokens = 0;
  for (const AttentionSequence& s : sequences) tokens = std::max(tokens, s.first_query + s.queries);
  thread_local Scratch<float> of_caller;
  float* const dots = of_caller.at_least(tokens * spec.heads);
  const Loops& isa = loops();
  constexpr int64_t together = 64;
  executor.run(divide_up(tokens, together), [&](int64_t part) {
    for (int64_t t = part * together; t < std::min(tokens, (part + 1) * together); ++t)
      isa.attention_dots(spec, gradient, t, dots + t * spec.heads);
  });
  const AttentionBackwardStep step{spec, gradient, dots};
  const std::vector<AttentionBackwardPart> parts = cut(step, sequences, executor.size());
  const auto of_bf16 = [](const Heads& x) { return x.number == Number::bf16; };
  const bool pairs = isa.attend_backward_pairs && of_bf16(gradient.q) && of_bf16(gradient.k) && of_bf16(gradient.v) &&
                     of_bf16(gradient.dout);
  const auto differentiate = pairs ? isa.attend_backward_pairs : isa.attend_backward;
  executor.run(int64_t(parts.size()), [&](int64_t i) { differentiate(step, parts[size_t(i)]); });
  if (!gradient.dsinks || !spec.sinks) return;
  for (int64_t h = 0; h < spec.heads; ++h) {
    double sum = 0;
    for (const AttentionSequence& s : sequences)
      for (int64_t t = s.first_query; t < s.first_query + s.queries; ++t)
        sum += std::exp(double(spec.sinks[h]) - double(gradient.lse[t * spec.heads + h])) *
               double(dots[t * spec.heads + h]);
    gradient.dsinks[h] -= float(sum);
  }
}

}  // namespace easydel::kernels
