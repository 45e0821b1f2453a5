// Keys and values that are codes, for a vector type V: making codes of rows, and decoding a block of 64 keys for the
// loops of attention's forward, which then read it like plain keys and values. Included by loops_<set>.cpp only,
// through attention_loops.h.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "easydel/kernels/attention_few_loops.h"
#include "easydel/kernels/attention_step.h"
#include "easydel/kernels/memory.h"
#include "easydel/kernels/wide.h"

namespace easydel::kernels {

template <class V>
struct CodeRows {
  using W = Wide<V>;
  using Math = WideMath<V>;

  static constexpr float largest_of(DType codes) {
    return codes == DType::i8 ? 127.0f : codes == DType::i4 ? 7.0f : 448.0f;
  }

  // The quotients of a row x [n] by its scale, which is returned: the largest magnitude over the largest code, 127, 7
  // or 448. int8 and int4: rounded to whole numbers. `to` has room for n rounded up to a multiple of 16. A row whose
  // numbers are all below 2^-100 has scale 0; one with an infinity or a NaN has scale NaN; both have codes 0.
  static float divide(const void* x, DType dtype, int64_t n, DType codes, float* to) {
    uint32_t most = 0;  // as bits, which order numbers, infinities and NaNs by magnitude
    for (int64_t i = 0; i < n; i += lanes) {
      (dtype == DType::f32 ? W::load(static_cast<const float*>(x) + i, n - i)
                           : W::load(static_cast<const bf16*>(x) + i, n - i))
          .store(to + i);
      for (int64_t j = i; j < i + lanes; ++j) most = std::max(most, std::bit_cast<uint32_t>(to[j]) & 0x7fffffffu);
    }
    const float size = std::bit_cast<float>(most), largest = largest_of(codes);
    const bool finite = most < 0x7f800000u;
    if (!finite || size < 0x1p-100f) {
      std::memset(to, 0, size_t(round_up(n, lanes)) * sizeof(float));
      return finite ? 0 : std::bit_cast<float>(0x7fc00000u);
    }
    const W factor = W::set(largest / size), top = W::set(largest);
    for (int64_t i = 0; i < n; i += lanes) {
      const W y = W::load(to + i) * factor, whole = is_whole(codes) ? Math::round(y) : y;
      Math::max(W::zero() - top, Math::min(top, whole)).store(to + i);
    }
    return size / largest;
  }

  static void encode_row(const void* x, DType dtype, int64_t n, int64_t groups, DType codes, void* to, float* scales) {
    thread_local Scratch<float> of_thread;
    const int64_t size = n / groups;
    float* const quotients = of_thread.at_least(n + lanes);  // a group is divided in whole vectors
    for (int64_t i = 0; i < n; i += size)
      *scales++ = divide(static_cast<const char*>(x) + i * bytes_of(dtype), dtype, size, codes, quotients + i);
    if (codes == DType::i8)
      for (int64_t i = 0; i < n; ++i) static_cast<int8_t*>(to)[i] = int8_t(quotients[i]);
    else if (codes == DType::i4)
      pack(quotients, n, static_cast<i4_pair*>(to));
    else
      for (int64_t i = 0; i < n; ++i) static_cast<e4m3*>(to)[i] = narrow_e4m3(quotients[i]);
  }

  // Widens `count` codes of type Code to T, in whole vectors.
  template <class Code, class T>
  static void decode_row(const void* codes, int64_t count, T* to) {
    int64_t i = 0;
    if constexpr (requires { V::widen_codes(static_cast<const Code*>(codes), to); })
      for (; i + 32 <= count; i += 32) V::widen_codes(static_cast<const Code*>(codes) + i, to + i);
    for (; i < count; i += lanes) W::load(static_cast<const Code*>(codes) + i, count - i).store_exact(to + i);
  }
  template <class T>
  static void decode_pairs(const void* codes, int64_t count, T* to) {
    const i4_pair* from = static_cast<const i4_pair*>(codes);
    for (int64_t i = 0; i < count; i += i4_block, from += i4_block / 2) {
      if constexpr (requires { V::widen_codes(from, to); })
        if (count - i >= i4_block) {
          V::widen_codes(from, to + i);
          continue;
        }
      int8_t whole[i4_block] = {};
      if (count - i >= i4_block)
        spread(from, i4_block / 2, whole);
      else
        spread(from, (count - i + 1) / 2, whole);
      for (int64_t j = 0; j < std::min(i4_block, count - i); j += lanes) W::load(whole + j).store_exact(to + i + j);
    }
  }

 private:
  // n whole numbers from -7 to 7; one that n lacks is 0.
  static void pack(const float* from, int64_t n, i4_pair* to) {
    for (int64_t first = 0; first < n; first += i4_block, from += i4_block) {
      const int64_t count = std::min(i4_block, n - first), half = (count + 1) / 2;
      for (int64_t j = 0; j < half; ++j) {
        const int low = int(from[j]) + 8, high = half + j < count ? int(from[half + j]) + 8 : 8;
        (to++)->bits = uint8_t(low | high << 4);
      }
    }
  }
  // The first codes of `half` pairs, then the second ones.
  [[gnu::always_inline]] static void spread(const i4_pair* from, int64_t half, int8_t* to) {
    for (int64_t j = 0; j < half; ++j) to[j] = int8_t((from[j].bits & 15) - 8);
    for (int64_t j = 0; j < half; ++j) to[half + j] = int8_t((from[j].bits >> 4) - 8);
  }
};

// The scales of one row of queries and of the 64 keys of a block.
struct BlockScales {
  const float *keys = nullptr, *values = nullptr;
  float query = 1;
};

// Keys and values that the loops read where they are. T: what they are multiplied as, bf16 or float.
template <class V, class T>
class PlainBlocks {
 public:
  static constexpr bool coded = false;

  PlainBlocks(const AttentionStep& step, const AttentionRows& rows) : step_(step), rows_(rows) {}
  const AttentionStep& step() const { return step_; }
  const AttentionRows& rows() const { return rows_; }
  DType query_dtype() const { return step_.q.dtype; }
  const void* query(int64_t, const void* q) const { return q; }
  void begin(int64_t) const {}
  BlockScales scales(int64_t) const { return {}; }

 private:
  const AttentionStep& step_;
  const AttentionRows& rows_;
};

// Codes: step() and rows() are those of a sequence without pages whose keys and values are the decoded ones of the
// block that begin() was called for last.
template <class V, class T>
class CodedBlocks {
 public:
  static constexpr bool coded = true;

  CodedBlocks(const AttentionStep& step, const AttentionRows& rows)
      : codes_(step),
        coded_sequence_(*rows.sequence),
        kv_head_(rows.kv_head),
        step_(step),
        sequence_(*rows.sequence),
        rows_{&sequence_, rows.kv_head, rows.first, rows.count} {
    const AttentionSpec& spec = step.spec;
    const int64_t k_step = round_up(spec.head_dim, panel_columns), v_step = step.v_step();
    thread_local Scratch<T> of_thread;
    keys_ = of_thread.at_least(key_block * (k_step + v_step) + max_attention_rows * k_step);
    values_ = keys_ + key_block * k_step, queries_ = values_ + key_block * v_step;
    constexpr DType plain = std::is_same_v<T, float> ? DType::f32 : DType::bf16;
    step_.k = {keys_, plain, k_step, 0, 0, {}}, step_.v = {values_, plain, v_step, 0, 0, {}};
    sequence_.pages = nullptr, sequence_.page_tokens = 0;
  }
  CodedBlocks(const CodedBlocks&) = delete;
  CodedBlocks& operator=(const CodedBlocks&) = delete;

  const AttentionStep& step() const { return step_; }
  const AttentionRows& rows() const { return rows_; }
  DType query_dtype() const { return rounds_queries() ? step_.k.dtype : step_.q.dtype; }

  // Row `row` of queries as it is multiplied; int8 keys: as whole numbers.
  const void* query(int64_t row, const void* q) {
    query_scales_[row] = 1;
    if (!rounds_queries()) return q;
    thread_local Scratch<float> of_thread;
    const int64_t dim = step_.spec.head_dim;
    float* const whole = of_thread.at_least(round_up(dim, lanes));
    query_scales_[row] = CodeRows<V>::divide(q, step_.q.dtype, dim, DType::i8, whole);
    T* const to = queries_ + row * step_.k.token_stride;
    for (int64_t i = 0; i < dim; i += lanes) Wide<V>::load(whole + i).store_exact(to + i);
    return to;
  }

  void begin(int64_t block) {
    const int64_t present = std::min(key_block, coded_sequence_.keys - block);
    sequence_.first_key = -block, sequence_.keys = block + present;
    decode(codes_.k, block, present, step_.spec.head_dim, step_.k.token_stride, keys_);
    find_scales(codes_.k.scales, block, present, key_scales_);
    begin_values(block, present);
  }
  BlockScales scales(int64_t row) const { return {key_scales_, value_scales_, query_scales_[row]}; }

 protected:
  void begin_values(int64_t block, int64_t present) {
    decode(codes_.v, block, present, step_.spec.v_dim, step_.v.token_stride, values_);
    find_scales(codes_.v.scales, block, present, value_scales_);
  }
  bool rounds_queries() const { return codes_.k.dtype == DType::i8; }

  void decode(const Heads& x, int64_t block, int64_t present, int64_t dim, int64_t step, T* to) const {
    const void* row[key_block];
    FewRows<V>::find_rows(coded_sequence_, x, kv_head_, block, present, row);
    const int64_t prefetch_distance = next_block_distance(coded_sequence_, x, block);
    const int64_t bytes = row_bytes(x.dtype, dim);
    for (int64_t t = 0; t < present; ++t, to += step) {
      for (int64_t i = 0; prefetch_distance && i < bytes; i += 64)
        V::prefetch(static_cast<const char*>(row[t]) + prefetch_distance + i);
      if (x.dtype == DType::i8)
        CodeRows<V>::template decode_row<int8_t>(row[t], dim, to);
      else if (x.dtype == DType::i4)
        CodeRows<V>::decode_pairs(row[t], dim, to);
      else
        CodeRows<V>::template decode_row<e4m3>(row[t], dim, to);
    }
  }

  // Zeros for missing keys.
  void find_scales(const CodeScales& from, int64_t block, int64_t present, float* to) const {
    const AttentionSequence& s = coded_sequence_;
    std::memset(to, 0, size_t(key_block) * sizeof(float));
    for (int64_t t = 0; t < present;) {
      const int64_t page = s.pages ? s.pages[(block + t) / s.page_tokens] : 0;
      const int64_t token = s.pages ? (block + t) % s.page_tokens : s.first_key + block + t;
      const int64_t count = s.pages ? std::min(present - t, s.page_tokens - token) : present - t;
      const float* const some = from.at(page, token, kv_head_);
      if (from.token_stride == 1)
        std::memcpy(to + t, some, size_t(count) * sizeof(float));
      else
        for (int64_t i = 0; i < count; ++i) to[t + i] = some[i * from.token_stride];
      t += count;
    }
  }

  const AttentionStep& codes_;  // as given
  const AttentionSequence& coded_sequence_;
  int64_t kv_head_;
  AttentionStep step_;
  AttentionSequence sequence_;
  AttentionRows rows_;
  T *keys_, *values_, *queries_;
  alignas(64) float key_scales_[key_block], value_scales_[key_block];
  float query_scales_[max_attention_rows];
};

// Codes whose groups have scales of their own: the loops read the products of codes and scales like plain keys and
// values.
template <class V, class T>
class GroupedBlocks : public CodedBlocks<V, T> {
  using Base = CodedBlocks<V, T>;
  using W = Wide<V>;

 public:
  static constexpr bool coded = false;

  using Base::Base;
  DType query_dtype() const { return this->step_.q.dtype; }
  const void* query(int64_t, const void* q) const { return q; }
  void begin(int64_t block) {
    const int64_t present = std::min(key_block, this->coded_sequence_.keys - block);
    this->sequence_.first_key = -block, this->sequence_.keys = block + present;
    const AttentionStep& step = this->step_;
    decode(this->codes_.k, block, present, step.spec.head_dim, step.k.token_stride, this->keys_);
    decode(this->codes_.v, block, present, step.spec.v_dim, step.v.token_stride, this->values_);
  }
  BlockScales scales(int64_t) const { return {}; }

 private:
  void decode(const Heads& x, int64_t block, int64_t present, int64_t dim, int64_t step, T* to) const {
    Base::decode(x, block, present, dim, step, to);
    const AttentionSequence& s = this->coded_sequence_;
    const int64_t size = dim / x.scales.groups;
    const bool even = size % lanes == 0;
    thread_local Scratch<float> of_thread;
    float* const of_elements = of_thread.at_least(even ? 1 : dim + lanes);
    for (int64_t t = 0; t < present; ++t, to += step) {
      const int64_t at = block + t;
      const float* const scales = s.pages ? x.scales.at(s.pages[at / s.page_tokens], at % s.page_tokens, this->kv_head_)
                                          : x.scales.at(0, s.first_key + at, this->kv_head_);
      if (even) {
        for (int64_t g = 0; g < x.scales.groups; ++g) {
          const W scale = W::set(scales[g]);
          for (int64_t i = g * size; i < (g + 1) * size; i += lanes) (W::load(to + i) * scale).store(to + i);
        }
        continue;
      }
      for (int64_t i = 0; i < dim; ++i) of_elements[i] = scales[i / size];
      for (int64_t i = dim; i < round_up(dim, lanes); ++i) of_elements[i] = 0;
      for (int64_t i = 0; i < dim; i += lanes) (W::load(to + i) * W::load(of_elements + i)).store(to + i);
    }
  }
};

}  // namespace easydel::kernels
