// What the tasks of one attention share: attention.cpp creates them, the loops carry them out.
#pragma once

#include <algorithm>

#include "easydel/kernels/attention.h"
#include "easydel/kernels/product_layout.h"

namespace easydel::kernels {

constexpr int64_t key_block = 64, chunk_keys = 512, max_attention_rows = 192;
constexpr int64_t max_int8_dim = 1024;  // 127 x 127 x 1024 < 2^24

struct AttentionStep {
  AttentionSpec spec;
  Heads q, k, v;
  MutableHeads out;
  float* lse;
  AccumulationOrder order;
  int64_t group() const { return spec.heads / spec.kv_heads; }
  int64_t v_step() const { return round_up(spec.v_dim, panel_columns); }
};

// Consecutive rows that share a kv head: row = query x group + head within the group.
struct AttentionRows {
  const AttentionSequence* sequence;
  int64_t kv_head, first, count;
};

struct Range {  // of positions
  int64_t begin, end;
  bool empty() const { return begin >= end; }
  Range within(int64_t from, int64_t to) const { return {std::clamp(begin, from, to), std::clamp(end, from, to)}; }
};

// The key (or value) at a position of a sequence.
inline const void* key_at(const AttentionSequence& s, const Heads& x, int64_t position, int64_t head) {
  if (!s.pages) return x.at(s.first_key + position, head);
  const int64_t page = s.pages[position / s.page_tokens], token = position % s.page_tokens;
  const int64_t element = page * x.page_stride + token * x.token_stride + head * x.head_stride;
  return static_cast<const char*>(x.data) + element * bytes_of(x.dtype);
}

// Distance in elements (i4: bytes) from each key of the block at `block` to the key 64 positions later, for
// prefetching. 0: unknown, or there is none.
inline int64_t next_block_distance(const AttentionSequence& s, const Heads& x, int64_t block) {
  if (!s.pages) return key_block * x.token_stride;
  if (s.page_tokens % key_block != 0 || block + key_block >= s.keys) return 0;
  const int64_t page = block / s.page_tokens, next = (block + key_block) / s.page_tokens;
  if (page == next) return key_block * x.token_stride;
  return (int64_t(s.pages[next]) - s.pages[page]) * x.page_stride + (key_block - s.page_tokens) * x.token_stride;
}

// The keys that a query sees; neither end decreases from one query to the next.
inline Range visible(const AttentionSpec& spec, const AttentionSequence& sequence, int64_t query) {
  const int64_t position = sequence.past + query;
  Range keys{0, spec.causal ? std::min(position + 1, sequence.keys) : sequence.keys};
  if (spec.window > 0) {
    keys.begin = std::max<int64_t>(0, position + 1 - spec.window);
    keys.end = std::min(keys.end, position + spec.window);  // matters only without causal
  }
  if (spec.chunk > 0) {
    const int64_t own = position / spec.chunk * spec.chunk;
    keys = {std::max(keys.begin, own), std::min(keys.end, own + spec.chunk)};
  }
  return keys;
}

// Up to 192 rows over one chunk of keys. `out` is [row][v_step], relative to 2^top as `sum` is.
struct AttentionPartial {
  float *top, *sum, *out;
};
inline int64_t partial_floats(const AttentionStep& step) { return max_attention_rows * (2 + step.v_step()); }
inline AttentionPartial partial_at(float* data) {
  return {data, data + max_attention_rows, data + 2 * max_attention_rows};
}

struct AttentionBackwardStep {
  AttentionSpec spec;
  AttentionGradient gradient;
  const float* dots;  // [tokens, heads]: dout . out
  int64_t group() const { return spec.heads / spec.kv_heads; }
};

// The gradients of one kv head of a sequence: of its rows [rows.first, + count) from keys [keys.begin, keys.end), and
// of those keys from those rows. Both begin at multiples of backward_piece (rows: of as many queries) and have that
// length unless they end the sequence. A range that does not cover the sequence is for one of the two gradients only.
struct AttentionBackwardPart {
  AttentionRows rows;
  Range keys;
  bool want_dq, want_dkv;
};
constexpr int64_t backward_rows = 48;  // rows per step of the FMA loops, with key_block keys
// queries, and keys, per step of the pair loops: whole blocks of 12 and whole panels of 32
constexpr int64_t backward_pair_block = 96;
constexpr int64_t backward_piece = 192;  // a multiple of all three

}  // namespace easydel::kernels
