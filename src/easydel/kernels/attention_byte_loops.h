// Few rows of queries (decoding) over int8 keys by VPDPBUSD: keys are read once, as bytes. The sums are whole numbers,
// so that they have the bits of every other way to add them. Included by loops_avx512_vnni.cpp and
// loops_avx512_bf16.cpp only.
#pragma once

#include "easydel/kernels/attention_bf16_loops.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/simd_avx512.h"

namespace easydel::kernels {

// Blocks of codes of which only the values are decoded; queries and keys remain bytes.
class ByteBlocks : public CodedBlocks<Avx512, bf16> {
 public:
  static constexpr int64_t max_rows = block_rows, chunk = 64;  // chunk: of dimensions

  // Whether the loops of this file serve the rows.
  static bool serve(const AttentionStep& step, const AttentionRows& rows) {
    return step.k.dtype == DType::i8 && rows.count <= max_rows;
  }

  ByteBlocks(const AttentionStep& step, const AttentionRows& rows) : CodedBlocks(step, rows) {
    thread_local Scratch<int8_t> of_thread;
    row_bytes_ = round_up(step.spec.head_dim, chunk);
    queries_ = of_thread.at_least((max_rows + key_block) * row_bytes_);
    copied_keys_ = queries_ + max_rows * row_bytes_;
    std::memset(queries_, 0, size_t((max_rows + key_block) * row_bytes_));
  }

  const void* query(int64_t row, const void* q) {
    const bf16* const whole = static_cast<const bf16*>(CodedBlocks::query(row, q));
    int8_t* const to = queries_ + row * row_bytes_;
    int32_t sum = 0;
    for (int64_t i = 0; i < step_.spec.head_dim; ++i) to[i] = int8_t(widen(whole[i])), sum += to[i];
    offsets_[row] = 128 * sum;
    return whole;
  }

  void begin(int64_t block) {
    const AttentionSequence& s = coded_sequence_;
    block_ = block, present_ = std::min(key_block, s.keys - block), decoded_ = false;
    sequence_.first_key = -block, sequence_.keys = block + present_;
    in_one_page_ = present_ == key_block && (!s.pages || block % s.page_tokens + key_block <= s.page_tokens);
    if (in_one_page_)
      keys_ = first_of(codes_.k), key_step_ = codes_.k.token_stride;
    else
      copy_keys();
    ahead_ = next_block_distance(s, codes_.k, block);
    find_scales(codes_.k.scales, block, present_, key_scales_);
    find_scales(codes_.v.scales, block, present_, value_scales_);
  }

  // scores [count][64]: products of rows t to t + count with the block's keys; at least those of `any`.
  void multiply(int64_t t, int64_t count, Range any, float* scores) const {
    for (int64_t key = any.begin / lanes * lanes; key < any.end; key += lanes) {
      int64_t r = 0;
      for (; r + 4 <= count; r += 4) some_rows<4>(t + r, key, scores + r * key_block + key, r == 0);
      if (count - r == 3) some_rows<3>(t + r, key, scores + r * key_block + key, r == 0);
      if (count - r == 2) some_rows<2>(t + r, key, scores + r * key_block + key, r == 0);
      if (count - r == 1) some_rows<1>(t + r, key, scores + r * key_block + key, r == 0);
    }
  }

  // The block's values where they are, if all 64 are there and equally far apart; else null.
  const void* values() const { return in_one_page_ ? first_of(codes_.v) : nullptr; }
  DType value_dtype() const { return codes_.v.dtype; }
  int64_t value_step() const { return codes_.v.token_stride; }
  int64_t values_ahead() const { return next_block_distance(coded_sequence_, codes_.v, block_); }
  // From here on, step() and rows() have the block's values.
  void decode_values() {
    if (!decoded_) begin_values(block_, present_);
    decoded_ = true;
  }

 private:
  const int8_t* first_of(const Heads& x) const {
    return static_cast<const int8_t*>(key_at(coded_sequence_, x, block_, kv_head_));
  }
  void copy_keys() {
    const int8_t* rows[key_block];
    FewRows<Avx512>::find_rows(coded_sequence_, codes_.k, kv_head_, block_, present_, rows);
    for (int64_t t = 0; t < present_; ++t)
      std::memcpy(copied_keys_ + t * row_bytes_, rows[t], size_t(step_.spec.head_dim));
    keys_ = copied_keys_, key_step_ = row_bytes_;
  }

  template <int rows>
  void some_rows(int64_t row, int64_t key, float* scores, bool prefetches) const {
    __m512i sums[rows][2];
    for (auto& of_row : sums) of_row[0] = of_row[1] = _mm512_setzero_si512();
    const __m512i sign = _mm512_set1_epi8(int8_t(-128));
    for (int64_t c = 0; c < row_bytes_; c += chunk) {
      const int64_t left = step_.spec.head_dim - c;
      const __mmask64 own = left >= chunk ? ~__mmask64(0) : (__mmask64(1) << left) - 1;
      const int8_t* from = keys_ + key * key_step_ + c;
      __m512 keys[lanes];  // four dimensions of a key move as one float
#pragma GCC unroll 16
      for (int64_t j = 0; j < lanes; ++j, from += key_step_) {
        if (prefetches) Avx512::prefetch(from + ahead_);
        keys[j] = _mm512_castsi512_ps(_mm512_maskz_loadu_epi8(own, from));
      }
      Avx512::transpose(keys);
      const int8_t* const q = queries_ + row * row_bytes_ + c;
#pragma GCC unroll 16
      for (int64_t j = 0; j < lanes; ++j) {
        const __m512i offset_keys = _mm512_xor_si512(_mm512_castps_si512(keys[j]), sign);
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) {
          int32_t four;
          std::memcpy(&four, q + r * row_bytes_ + 4 * j, sizeof four);
          sums[r][j % 2] = _mm512_dpbusd_epi32(sums[r][j % 2], offset_keys, _mm512_set1_epi32(four));
        }
      }
    }
    for (int r = 0; r < rows; ++r) {
      const __m512i sum = _mm512_add_epi32(sums[r][0], sums[r][1]);
      const __m512i exact = _mm512_sub_epi32(sum, _mm512_set1_epi32(offsets_[row + r]));
      Avx512::store(scores + r * key_block, _mm512_cvtepi32_ps(exact));
    }
  }

  int64_t row_bytes_, block_ = 0, present_ = 0, ahead_ = 0;
  bool in_one_page_ = false, decoded_ = false;
  int8_t *queries_, *copied_keys_;  // [rows][row_bytes_], padded with zeros
  int32_t offsets_[max_rows];
  const int8_t* keys_ = nullptr;
  int64_t key_step_ = 0;
};

// P with its keys as bytes, and its values, too, where all are visible.
template <class P>
class ByteKeys : public P {
 public:
  using Seen = typename P::Seen;

  ByteKeys(const AttentionStep& step, const AttentionRows& rows, const bf16* const* queries)
      : P(step, rows, queries), v_dim_(step.spec.v_dim) {}
  void set_blocks(ByteBlocks& blocks) { blocks_ = &blocks; }
  void begin(int64_t block) { block_ = block, begun_ = false; }
  void multiply_queries(int64_t t, int64_t count, Range any, float* scores) const {
    blocks_->multiply(t, count, any, scores);
  }
  void add_values(const Seen& seen, int64_t count, const typename P::Weight* weights, float* out) {
    if constexpr (P::reads_codes)
      if (const void* const codes = blocks_->values(); codes && seen.whole && v_dim_ % panel_columns == 0) {
        const int64_t step = blocks_->value_step(), ahead = blocks_->values_ahead();
        if (blocks_->value_dtype() == DType::i4)
          return P::add_codes(count, weights, static_cast<const i4_pair*>(codes), step, ahead, v_dim_, out);
        return P::add_codes(count, weights, static_cast<const int8_t*>(codes), step, ahead, v_dim_, out);
      }
    if (!begun_) blocks_->decode_values(), P::begin_values(block_);
    begun_ = true;
    P::add_values(seen, count, weights, out);
  }

 private:
  ByteBlocks* blocks_ = nullptr;
  int64_t v_dim_, block_ = 0;
  bool begun_ = false;
};

// One chunk of keys by ByteKeys<P> if they serve, else by `otherwise`.
template <class P, Loops::Attention::AttendChunk otherwise>
void attend_byte_chunk(const AttentionStep& step, const AttentionRows& rows, int64_t chunk, AttentionPartial part) {
  if (!ByteBlocks::serve(step, rows)) return otherwise(step, rows, chunk, part);
  Bf16AttentionLoops<Avx512, ByteKeys<P>>::template attend<ByteBlocks>(step, rows, chunk, part);
}

}  // namespace easydel::kernels
