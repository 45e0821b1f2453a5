// Recurrences over tokens with a matrix as state: selective scans (arXiv 2312.00752, 2405.21060), gated delta rules
// (2412.06464, 2510.26692), linear attention with decay (2401.04658), xLSTM's matrix memory (2405.04517), RWKV.
//
//   S' = exp(rate) S            the state before the token, decayed; S is [k_dim, v_dim]
//   u  = v                      or, with the delta rule, beta (v - S'^T k)
//   S  = S' + k u^T
//   o  = S^T q                  or, if read before the token, from the S before this token
//
// Tokens are always processed one after the other: continuing from a state, one token at a time and whole sequences
// give the same bits, on every instruction set and any number of threads.
#pragma once

#include <cstdint>
#include <span>

#include "easydel/kernels/executor.h"

namespace easydel::kernels {

enum class Decay : uint8_t {
  none,
  scalar,  // rate [tokens, heads]
  keys,    // rate [tokens, heads, k_dim]: rows of the state
  values   // rate [tokens, heads, v_dim], times `slopes` [heads, k_dim, v_dim] if given: columns, or single elements
};

struct RecurrenceSpec {
  int64_t heads = 0, groups = 0;  // head h has q and k of group h / (heads / groups)
  int64_t k_dim = 0, v_dim = 0;
  Decay decay = Decay::none;
  bool delta = false;
  bool read_before = false;
};

// All are fp32 and contiguous.
struct RecurrenceInputs {
  const float *q = nullptr, *k = nullptr;  // [tokens, groups, k_dim]
  const float* v = nullptr;                // [tokens, heads, v_dim]
  const float* rate = nullptr;             // by spec.decay; the factor is its exponential
  const float* slopes = nullptr;           // Decay::values; null: all 1
  const float* beta = nullptr;             // [tokens, heads], with the delta rule
};

// Tokens [begin, end) start from the state `initial` [heads, k_dim, v_dim] (null: zero). The state after them is
// written to `final` (may be null, may be the same memory).
struct RecurrenceRange {
  int64_t begin = 0, end = 0;
  const float* initial = nullptr;
  float* final = nullptr;
};

// o [tokens, heads, v_dim]
void recurrence(Executor& executor, const RecurrenceSpec& spec, const RecurrenceInputs& in,
                std::span<const RecurrenceRange> ranges, float* o);

// Gradients; all are overwritten. Those of q and k are per head, and the caller sums them over a group; those of slopes
// are per range.
struct RecurrenceGradients {
  float *q = nullptr, *k = nullptr;  // [tokens, heads, k_dim]
  float *v = nullptr, *rate = nullptr, *beta = nullptr;
  float* slopes = nullptr;  // [ranges, heads, k_dim, v_dim]
};

// States are recomputed from the beginning of each range; about the square root of its length is kept at a time.
// Initial states have no gradient.
void recurrence_backward(Executor& executor, const RecurrenceSpec& spec, const RecurrenceInputs& in,
                         std::span<const RecurrenceRange> ranges, const float* d_o, const RecurrenceGradients& out);

// m_t = max(m_{t-1} + f_t, i_t), the exponent that keeps sums of exponentials in range (arXiv 2405.04517). f, i, m are
// [tokens, channels]; `initial` and `final` of the ranges are [channels]; without `initial`, m_0 = i_0.
void running_maximum(Executor& executor, int64_t channels, const float* f, const float* i,
                     std::span<const RecurrenceRange> ranges, float* m);

}  // namespace easydel::kernels
