// Attention over flat tokens: softmax(scale q k^T) v per sequence and head, forward and backward. Memory is linear in
// length. What a query sees is a matter of positions: key t of a sequence is at position t, query i at `past` + i.
//
// Promise of the forward: a row (one query of one head) has the same bits whatever rows are computed with it, so
// decoding with cached keys, a prompt cut anyhow and the whole prompt agree, on any number of threads and every
// instruction set. The order: keys in blocks of 64 from position 0; a score is one chain of FMAs in ascending
// dimension; a running maximum per block (online softmax, arXiv 1805.02867, 2112.05682), weights 2^(score - maximum);
// 16 sums of weights, key t in sum t mod 16; values are one chain in ascending key over the visible keys alone,
// invisible ones are never multiplied; every 512 keys a new partial result, merged in ascending order.
//
// In the orders of bf16 products are those of accumulation_order.h, of dimensions for a score, of keys for values: in
// bf16_pairs one chain over pairs, keys 2t and 2t + 1 together, the odd one first; in bf16_tile blocks of 32, keys 32t
// to 32t + 31 together, whose even and odd ones are two chains. A missing dimension, and an invisible key of a pair or
// block in which others are seen, count as zero, weight and value. A block's maximum is the new one only where it is
// more than 8 above the old. Weights are rounded to bf16 where they meet values, not where they are summed. Denormals
// count as zero until partial results are merged; a result is never -0, and of NaN there is one.
#pragma once

#include <span>
#include <vector>

#include "easydel/kernels/accumulation_order.h"
#include "easydel/kernels/dtype.h"
#include "easydel/kernels/executor.h"

namespace easydel::kernels {

struct AttentionSpec {
  int64_t heads = 0, kv_heads = 0;  // heads is a multiple of kv_heads; neighbours share a kv head
  int64_t head_dim = 0, v_dim = 0;
  float scale = 1;
  bool causal = true;             // sees keys at its own position and before; else every key
  int64_t window = 0;             // > 0: of those only nearer ones than `window` positions (Hugging Face's w)
  int64_t chunk = 0;              // > 0: of those only the keys of its own stretch of `chunk` positions
  float softcap = 0;              // > 0: scores become softcap x tanh(score / softcap)
  const float* sinks = nullptr;   // [heads]: one more score in each softmax, whose weight goes nowhere
  const float* slopes = nullptr;  // [heads]: slope x distance is taken from each score, last (arXiv 2108.12409)
};

// [tokens, heads, dim] by strides in elements; the elements of a vector of dim are contiguous. With pages:
// [pages, page tokens, heads, dim].
struct Heads {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t token_stride = 0, head_stride = 0;
  int64_t page_stride = 0;  // with pages: from a page to the next

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
  operator Heads() const { return {data, dtype, token_stride, head_stride, 0}; }
};

// One sequence: its rows of q and out, and where its keys and values are.
struct AttentionSequence {
  int64_t first_query = 0, queries = 0;
  int64_t past = 0;                // the position of its first query
  int64_t keys = 0;                // how many keys it has; causal: at least past + queries
  int64_t first_key = 0;           // without pages: token of k and v that is its position 0
  const int32_t* pages = nullptr;  // position t is token t % page_tokens of page pages[t / page_tokens]
  int64_t page_tokens = 0;
};

// out [tokens, heads, v_dim]; lse (null: not wanted) [tokens, heads] fp32, side by side: the natural logarithm of the
// sum of e^score, sinks included. A row that sees no key is 0, its lse -infinity (the sink's score, with sinks). Rows
// of q that belong to no sequence are left alone in out. Orders other than fp32_chain are of q, k and v in bf16 alone
// (a Bug else).
void attend(Executor& executor, const AttentionSpec& spec, std::span<const AttentionSequence> sequences, Heads q,
            Heads k, Heads v, MutableHeads out, float* lse, AccumulationOrder order = AccumulationOrder::fp32_chain);

// The order of attention over q, k and v of these types on this machine: bf16_order() where all are bf16, else
// fp32_chain.
AccumulationOrder attention_order(DType q, DType k, DType v);

// The sequences of training: sequence i is tokens offsets[i] to offsets[i + 1] of q, k and v alike. Offsets are int32
// or int64, count + 1 of them, ascending.
std::vector<AttentionSequence> sequences_of(const int32_t* offsets, int64_t count);
std::vector<AttentionSequence> sequences_of(const int64_t* offsets, int64_t count);

// What the backward needs of the forward, and what it gives. Sequences must not share keys and have no pages. dk and dv
// of tokens that no sequence has are left alone. dsinks [heads] (null: not wanted) is added to. The same bits for any
// number of threads, and from fp32 on every instruction set. Where q, k, v and dout are bf16 and the processor's own
// products of pairs or tiles are faster than FMAs, all five products are made of them, with fp32 sums: scores again as
// fp32, weights and gradients of scores rounded to bf16 (as arXiv 2307.08691's programs do).
struct AttentionGradient {
  Heads q, k, v, out, dout;
  const float* lse = nullptr;
  MutableHeads dq, dk, dv;
  float* dsinks = nullptr;
};
void attend_backward(Executor& executor, const AttentionSpec& spec, std::span<const AttentionSequence> sequences,
                     const AttentionGradient& gradient);

}  // namespace easydel::kernels
