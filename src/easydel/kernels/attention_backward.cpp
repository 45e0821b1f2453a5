// Cuts the backward of attention into tasks; attention_backward_loops.h carries them out.
#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>

#include "easydel/base/error.h"
#include "easydel/kernels/attention.h"
#include "easydel/kernels/attention_step.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/memory.h"
#include "easydel/kernels/row_tasks.h"

namespace easydel::kernels {

namespace {

// The rows that see any of these keys, in whole pieces.
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

// Approximate number of the rows' scores; never 0.
double work_of(const AttentionBackwardStep& step, const AttentionRows& rows) {
  double scores = 1;
  for (int64_t q = 0; q < rows.sequence->queries; q += backward_piece) {
    const int64_t some = std::min(backward_piece, rows.sequence->queries - q);
    const Range keys = visible(step.spec, *rows.sequence, q + some / 2);
    scores += double(some * step.group()) * double(std::max<int64_t>(keys.end - keys.begin, 0));
  }
  return scores;
}

// When the last thread finishes these tasks if each is taken by the first free thread.
double end_of(std::span<const double> works, int threads) {
  std::priority_queue<double, std::vector<double>, std::greater<>> busy(std::greater<>(),
                                                                        std::vector<double>(size_t(threads), 0));
  double last = 0;
  for (const double work : works) {
    const double end = busy.top() + work;
    busy.pop(), busy.push(end);
    last = std::max(last, end);
  }
  return last;
}

// A kv head of a sequence: the gradients of its rows and keys in one pass of 5 products, or in two passes of 7 products
// together, pieces of keys and then of rows. Both add in the same order.
void cut_to_pieces(const AttentionBackwardStep& step, const AttentionRows& rows,
                   std::vector<AttentionBackwardPart>& parts) {
  constexpr int64_t some_keys = 2 * backward_piece;
  const int64_t keys = rows.sequence->keys, some_rows = backward_piece * step.group();
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

// Whole heads, the largest first; as many of the largest are cut into pieces as lets all threads finish soonest.
std::vector<AttentionBackwardPart> cut_parts(const AttentionBackwardStep& step,
                                             std::span<const AttentionSequence> sequences, int threads) {
  std::vector<std::pair<double, AttentionRows>> all;
  for (const AttentionSequence& s : sequences)
    for (int64_t head = 0; head < step.spec.kv_heads; ++head)
      if (const AttentionRows rows{&s, head, 0, s.queries * step.group()}; s.queries > 0 || s.keys > 0)
        all.emplace_back(work_of(step, rows), rows);
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<double> works;
  double left = 0, in_pieces = 0, soonest = INFINITY;
  for (const auto& [work, rows] : all) works.push_back(work), left += work;
  size_t in_two = 0;
  for (size_t i = 0; i <= std::min(works.size(), size_t(threads)) && threads > 1; ++i) {
    const double end = std::max(end_of(std::span(works).subspan(i), threads), (left + in_pieces) / threads);
    if (end < soonest) soonest = end, in_two = i;
    if (i < works.size()) left -= works[i], in_pieces += 7.0 / 5 * works[i];
  }
  std::vector<AttentionBackwardPart> parts;
  for (size_t i = in_two; i < all.size(); ++i)
    parts.push_back({all[i].second, {0, all[i].second.sequence->keys}, true, true});
  for (size_t i = 0; i < in_two; ++i) cut_to_pieces(step, all[i].second, parts);
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
  run_rows(executor, tokens, spec.heads * spec.head_dim,
           [&](int64_t t) { isa.attention.dots(spec, gradient, t, dots + t * spec.heads); });
  const AttentionBackwardStep step{spec, gradient, dots};
  const std::vector<AttentionBackwardPart> parts = cut_parts(step, sequences, executor.size());
  const auto of_bf16 = [](const Heads& x) { return x.dtype == DType::bf16; };
  const bool pairs = isa.attention.backward_bf16 && of_bf16(gradient.q) && of_bf16(gradient.k) && of_bf16(gradient.v) &&
                     of_bf16(gradient.dout);
  const auto differentiate = pairs ? isa.attention.backward_bf16 : isa.attention.backward;
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
