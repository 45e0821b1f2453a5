// Cuts a recurrence into heads of ranges; recurrence_loops.h carries out the steps.
#include "easydel/kernels/recurrence.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/kernels/dtype.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/memory.h"
#include "easydel/kernels/recurrence_step.h"

namespace easydel::kernels {
namespace {

constexpr int64_t sixteen = 16;

void check_spec(const RecurrenceSpec& spec, const RecurrenceInputs& in) {
  check(spec.groups > 0 && spec.heads % spec.groups == 0, "recurrence: ", spec.heads, " heads in ", spec.groups,
        " groups");
  check((spec.decay == Decay::none) == !in.rate, "recurrence: a decay goes with its rates");
  check(spec.delta == (in.beta != nullptr), "recurrence: the delta rule goes with beta");
}

// Copies a state with rows of v_dim elements into rows of `columns`, or back.
void widen_state(const RecurrenceStep& s, const float* from, float* to) {
  const int64_t rows = s.spec.k_dim, n = s.spec.v_dim;
  std::memset(to, 0, size_t(rows * s.columns) * sizeof(float));
  if (!from) return;
  from += s.head * rows * n;
  for (int64_t i = 0; i < rows; ++i) std::memcpy(to + i * s.columns, from + i * n, size_t(n) * sizeof(float));
}
void narrow_state(const RecurrenceStep& s, const float* from, float* to) {
  const int64_t rows = s.spec.k_dim, n = s.spec.v_dim;
  to += s.head * rows * n;
  for (int64_t i = 0; i < rows; ++i) std::memcpy(to + i * n, from + i * s.columns, size_t(n) * sizeof(float));
}

}  // namespace

void recurrence(Executor& executor, const RecurrenceSpec& spec, const RecurrenceInputs& in,
                std::span<const RecurrenceRange> ranges, float* o) {
  check_spec(spec, in);
  const Loops& isa = loops();
  executor.run(int64_t(ranges.size()) * spec.heads, [&](int64_t part) {
    const RecurrenceRange& range = ranges[size_t(part / spec.heads)];
    const RecurrenceStep step{spec, in, part % spec.heads, round_up(spec.v_dim, sixteen)};
    thread_local Scratch<float> scratch;
    float* const state = scratch.at_least(spec.k_dim * step.columns);
    widen_state(step, range.initial, state);
    isa.recurrence.forward(step, range.begin, range.end, state, o, nullptr, nullptr);
    if (range.final) narrow_state(step, state, range.final);
  });
}

void recurrence_backward(Executor& executor, const RecurrenceSpec& spec, const RecurrenceInputs& in,
                         std::span<const RecurrenceRange> ranges, const float* d_o, const RecurrenceGradients& out) {
  check_spec(spec, in);
  const Loops& isa = loops();
  executor.run(int64_t(ranges.size()) * spec.heads, [&](int64_t part) {
    const int64_t which = part / spec.heads;
    const RecurrenceRange& range = ranges[size_t(which)];
    const RecurrenceStep step{spec, in, part % spec.heads, round_up(spec.v_dim, sixteen)};
    const int64_t tokens = range.end - range.begin, size = spec.k_dim * step.columns;
    const int64_t chunk = std::max<int64_t>(1, int64_t(std::sqrt(double(tokens)))), chunks = divide_up(tokens, chunk);
    // Scratch: running state and gradient, gradient of slopes, states at the beginnings of chunks, states and written
    // values within a chunk.
    thread_local Scratch<float> scratch;
    float* const state = scratch.at_least((3 + chunks + chunk) * size + chunk * step.columns);
    float *const d_state = state + size, *const slopes = d_state + size, *const begins = slopes + size;
    float *const before = begins + chunks * size, *const kept = before + chunk * size;
    widen_state(step, range.initial, state);
    for (int64_t c = 0; c < chunks; ++c) {
      std::memcpy(begins + c * size, state, size_t(size) * sizeof(float));
      const int64_t begin = range.begin + c * chunk;
      if (c + 1 < chunks) isa.recurrence.forward(step, begin, begin + chunk, state, nullptr, nullptr, nullptr);
    }
    std::memset(d_state, 0, size_t(2 * size) * sizeof(float));
    float* const requested_slopes = out.slopes ? slopes : nullptr;
    for (int64_t c = chunks; c-- > 0;) {
      const int64_t begin = range.begin + c * chunk, end = std::min(range.end, begin + chunk);
      std::memcpy(state, begins + c * size, size_t(size) * sizeof(float));
      isa.recurrence.forward(step, begin, end, state, nullptr, before, kept);
      isa.recurrence.backward(step, begin, end, before, kept, d_o, out, d_state, requested_slopes);
    }
    if (requested_slopes) narrow_state(step, slopes, out.slopes + which * spec.heads * spec.k_dim * spec.v_dim);
  });
}

void running_maximum(Executor& executor, int64_t channels, const float* f, const float* i,
                     std::span<const RecurrenceRange> ranges, float* m) {
  executor.run(int64_t(ranges.size()), [&](int64_t part) {
    const RecurrenceRange& range = ranges[size_t(part)];
    const float* before = range.initial;
    for (int64_t t = range.begin; t < range.end; ++t) {
      const int64_t row = t * channels;
      for (int64_t c = 0; c < channels; ++c)
        m[row + c] = before ? std::max(before[c] + f[row + c], i[row + c]) : i[row + c];
      before = m + row;
    }
    if (range.final && before && before != range.final)
      std::memcpy(range.final, before, size_t(channels) * sizeof(float));
  });
}

}  // namespace easydel::kernels
