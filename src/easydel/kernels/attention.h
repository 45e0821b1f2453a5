// Attention over flat tokens: softmax(scale q k^T) v per sequence and head, forward and backward. Memory is linear in
// the length. Visibility depends on positions: key t of a sequence is at position t, query i at `past` + i.
//
// Promise of the forward: a row (one query of one head) has the same bits whatever rows are computed with it. So
// decoding with cached keys, a prompt cut anywhere and the whole prompt agree, on any number of threads and every
// instruction set. The order of operations: keys in blocks of 64 from position 0; a score is one chain of FMAs in
// ascending dimension; a running maximum per block (online softmax, arXiv 1805.02867, 2112.05682), weights 2^(score -
// maximum); 16 partial sums of weights, key t in sum t mod 16; values are one chain in ascending key over the visible
// keys only; every 512 keys start a new partial result, and these are merged in ascending order.
//
// The bf16 orders are those of accumulation_order.h, over dimensions for a score and over keys for values: in
// bf16_pairs one chain over pairs, keys 2t and 2t + 1 together, the odd one first; in bf16_tile blocks of 32, keys 32t
// to 32t + 31 together, whose even and odd keys are two chains. A missing dimension, and an invisible key of a pair or
// block with visible ones, count as zero (weight and value). A block's maximum replaces the old one only if it is more
// than 8 above it. Weights are rounded to bf16 when they multiply values, not when they are summed. Denormals count as
// zero until partial results are merged. A result is never -0, and every NaN has the same bits.
//
// Keys and values may be codes (int8 or e4m3, or int8 keys and int4 values) with one scale per token and head. The
// order is that of the queries' dtype, over codes instead of elements: a score is (sum x key scale) x query scale, then
// as above; a weight is multiplied by its value's scale before it is rounded and multiplies codes. int8 keys meet
// queries that are rounded to int8, too (query scale: largest |q| / 127), so that their sum is a whole number below
// 2^24, which every instruction adds exactly in any order. For e4m3 the query scale is 1. Codes are exact in bf16.
//
// If the groups of keys or of values have scales of their own, an element is code x scale of its group, rounded to the
// queries' dtype, and everything is as for plain keys and values of that dtype.
#pragma once

#include <span>
#include <vector>

#include "easydel/kernels/accumulation_order.h"
#include "easydel/kernels/dtype.h"
#include "easydel/kernels/executor.h"

namespace easydel::kernels {

struct AttentionSpec {
  int64_t heads = 0, kv_heads = 0;  // heads is a multiple of kv_heads; consecutive heads share a kv head
  int64_t head_dim = 0, v_dim = 0;
  float scale = 1;
  bool causal = true;             // sees keys at its own position and before; otherwise every key
  int64_t window = 0;             // > 0: of those, only keys less than `window` positions away (Hugging Face's w)
  int64_t chunk = 0;              // > 0: of those, only keys of its own chunk of `chunk` positions
  float softcap = 0;              // > 0: scores become softcap x tanh(score / softcap)
  const float* sinks = nullptr;   // [heads]: an additional score in each softmax whose weight multiplies no value
  const float* slopes = nullptr;  // [heads]: slope x distance is subtracted from each score, last (arXiv 2108.12409)
  // Falcon's instead: slope x the key's position is added to q k before the scale; slope, position and their product
  // are rounded to bf16. Without a softcap.
  bool rounded_slopes = false;
};

// The scales of codes: [tokens, heads, groups] by strides in floats; with pages [pages, page tokens, heads, groups].
// The scales of a vector are contiguous, one for each of its `groups` equal parts. A NaN makes its part one of NaNs.
struct CodeScales {
  const float* data = nullptr;
  int64_t token_stride = 0, head_stride = 0, page_stride = 0;
  int64_t groups = 1;

  const float* at(int64_t page, int64_t token, int64_t head) const {
    return data + page * page_stride + token * token_stride + head * head_stride;
  }
};

// [tokens, heads, dim] by strides in elements (i4: in bytes); the elements of a vector of dim are contiguous. With
// pages: [pages, page tokens, heads, dim].
struct Heads {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t token_stride = 0, head_stride = 0;
  int64_t page_stride = 0;  // with pages: distance from one page to the next
  CodeScales scales = {};   // of codes

  const void* at(int64_t token, int64_t head) const {
    return static_cast<const char*>(data) + (token * token_stride + head * head_stride) * bytes_of(dtype);
  }
};
struct MutableHeads {
  void* data = nullptr;
  DType dtype = DType::f32;
  int64_t token_stride = 0, head_stride = 0;

  void* at(int64_t token, int64_t head) const {
    return static_cast<char*>(data) + (token * token_stride + head * head_stride) * bytes_of(dtype);
  }
  operator Heads() const { return {data, dtype, token_stride, head_stride, 0, {}}; }
};

// One sequence: its rows of q and out, and the location of its keys and values.
struct AttentionSequence {
  int64_t first_query = 0, queries = 0;
  int64_t past = 0;                // position of its first query
  int64_t keys = 0;                // number of its keys; causal: at least past + queries
  int64_t first_key = 0;           // without pages: the token of k and v at its position 0
  const int32_t* pages = nullptr;  // position t is token t % page_tokens of page pages[t / page_tokens]
  int64_t page_tokens = 0;
};

// out [tokens, heads, v_dim]; lse (may be null) [tokens, heads] fp32, contiguous: the natural logarithm of the sum of
// e^score, sinks included. A row without visible keys is 0, and its lse -infinity (with sinks: the sink's score). Rows
// of q that belong to no sequence are not written. Orders other than fp32_chain require bf16 q, and bf16 or coded k and
// v (else a Bug). k and v are codes of the same dtype, or int8 and int4 ones, or neither is codes; int8 keys have at
// most 1024 dimensions unless groups have scales of their own.
void attend(Executor& executor, const AttentionSpec& spec, std::span<const AttentionSequence> sequences, Heads q,
            Heads k, Heads v, MutableHeads out, float* lse, AccumulationOrder order = AccumulationOrder::fp32_chain);

// The order of attention over q, k and v of these dtypes on this machine: bf16_order() if q is bf16, and k and v are
// bf16 or codes; else fp32_chain.
AccumulationOrder attention_order(DType q, DType k, DType v);

// The sequences of training: sequence i is tokens offsets[i] to offsets[i + 1] of q, k and v. `count` + 1 ascending
// offsets, int32 or int64.
std::vector<AttentionSequence> sequences_of(const int32_t* offsets, int64_t count);
std::vector<AttentionSequence> sequences_of(const int64_t* offsets, int64_t count);

// Inputs of the backward from the forward, and its results. Sequences must not share keys and have no pages. dk and dv
// of tokens without a sequence are not written. dsinks [heads] (may be null) is accumulated into. The results have the
// same bits for any number of threads, and from fp32 inputs on every instruction set. If q, k, v and dout are bf16 and
// the processor multiplies pairs or tiles faster than by FMAs, all five products use those instructions with fp32
// accumulators: scores are computed again in fp32, weights and gradients of scores are rounded to bf16 (as in the
// programs of arXiv 2307.08691).
struct AttentionGradient {
  Heads q, k, v, out, dout;
  const float* lse = nullptr;
  MutableHeads dq, dk, dv;
  float* dsinks = nullptr;
};
void attend_backward(Executor& executor, const AttentionSpec& spec, std::span<const AttentionSequence> sequences,
                     const AttentionGradient& gradient);

}  // namespace easydel::kernels
