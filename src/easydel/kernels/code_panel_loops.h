// Decodes panels of weights in codes to the panels that products read. Included by loops_<set>.cpp only.
#pragma once

#include <cstring>
#include <utility>

#include "easydel/kernels/code_panels.h"

namespace easydel::kernels {

template <class V>
struct CodePanelLoops {
  using F = typename V::F;
  static constexpr int64_t width = V::width, pair_numbers = 2 * panel_columns;

  // Panel `panel` as product_layout.h has it: fp32 or bf16.
  static void decode(const CodePanelsLayout& from, int64_t panel, DType dtype, void* to) {
    with_codes(from, [&](const auto& codes) {
      if (is_scaled_only(from, dtype))
        decode_groups<true>(from, panel, dtype, to, codes);
      else
        decode_groups<false>(from, panel, dtype, to, codes);
    });
  }

 protected:
  // Codes of pair `pair` of k from number `at` on; a number is column 2c or 2c + 1 of the pair: the even or the odd k.
  template <class T>
  struct Bytes {
    static constexpr int pairs = 1;
    template <int pair>
    F get(const uint8_t* codes, int64_t at) const {
      return V::load(reinterpret_cast<const T*>(codes + at));
    }
  };
  struct Indices {
    static constexpr int pairs = 8;
    typename V::Table table;
    template <int pair>
    F get(const uint8_t* codes, int64_t at) const {
      return V::look_up(table, V::nibbles(codes + at * 4), pair);
    }
  };

  // Calls work with what reads codes of the kind.
  template <class Work>
  static void with_codes(const CodePanelsLayout& from, const Work& work) {
    switch (from.spec.codes) {
      case PanelCodes::i8:
        return work(Bytes<int8_t>());
      case PanelCodes::u8:
        return work(Bytes<uint8_t>());
      case PanelCodes::e4m3:
        return work(Bytes<e4m3>());
      case PanelCodes::table4:
        return work(Indices{V::table(from.spec.table.data())});
    }
  }

  // What follows from the head of a group, each number twice.
  struct Numbers {
    alignas(64) float scales[pair_numbers];
    alignas(64) float shifts[pair_numbers];

    const Numbers& of_pair(int64_t) const { return *this; }
    F scales_at(int64_t v) const { return V::load(scales + v); }
    F shifts_at(int64_t v) const { return V::load(shifts + v); }
    // Returns the group's codes.
    const uint8_t* read(const CodePanelsLayout& from, const uint8_t* head) {
      spread(head, from.numbers, scales);
      if (from.spec.shift != CodeShift::none) spread(head + from.bytes_of_numbers(), from.numbers, shifts);
      return head + from.bytes_of_head();
    }
  };

  // Act order: the numbers of each k are those of its group, so that those of a pair may differ.
  class OrderedNumbers {
   public:
    OrderedNumbers(const CodePanelsLayout& from, int64_t panel)
        : group_of_k_(from.spec.group_of_k.data()),
          k_(from.k),
          group_numbers_(from.spec.shift == CodeShift::none ? pair_numbers : 2 * pair_numbers) {
      thread_local Scratch<float> of_thread;
      float* const to = of_thread.at_least(from.groups * group_numbers_);
      for (int64_t g = 0; g < from.groups; ++g) {
        const uint8_t* const head = from.group_at(panel, g);
        spread(head, from.numbers, to + g * group_numbers_);
        if (from.spec.shift != CodeShift::none)
          spread(head + from.bytes_of_numbers(), from.numbers, to + g * group_numbers_ + pair_numbers);
      }
      of_groups_ = to;
    }

    struct Pair {
      const float *even, *odd;

      [[gnu::always_inline]] F scales_at(int64_t v) const {
        if constexpr (width == 1)
          return V::load((v % 2 == 0 ? even : odd) + v);
        else
          return V::alternate(V::load(even + v), V::load(odd + v));
      }
      [[gnu::always_inline]] F shifts_at(int64_t v) const { return scales_at(pair_numbers + v); }
    };
    // Of k and k + 1.
    [[gnu::always_inline]] Pair of_pair(int64_t k) const {
      return {of_groups_ + group_of_k_[k] * group_numbers_,
              of_groups_ + group_of_k_[k + 1 < k_ ? k + 1 : k] * group_numbers_};
    }

   private:
    const int32_t* group_of_k_;
    int64_t k_, group_numbers_;
    const float* of_groups_;  // scales and shifts of 32 columns, each number twice
  };

  // Whether a value that is written as `dtype` is code x scale and nothing else.
  static bool is_scaled_only(const CodePanelsLayout& from, DType dtype) {
    const CodePanelsSpec& spec = from.spec;
    const bool rounds = spec.rounding != ValueRounding::none && !(is_bf16(spec) && dtype == DType::bf16);
    return spec.shift == CodeShift::none && !rounds && spec.factor == 1;
  }
  static bool is_bf16(const CodePanelsSpec& spec) { return spec.rounding == ValueRounding::bf16; }

  template <bool only_scales, class Codes>
  static void decode_groups(const CodePanelsLayout& from, int64_t panel, DType dtype, void* to, const Codes& codes) {
    const int64_t k = from.k, block = k / k_block * k_block;
    if (dtype == DType::bf16 && k % k_block != 0)
      std::memset(static_cast<bf16*>(to) + block * panel_columns, 0, k_block * panel_columns * sizeof(bf16));
    const auto decode_stream = [&](auto& numbers, const uint8_t* at, int64_t begin, int64_t end) {
      for (int64_t k0 = begin; k0 < end; k0 += 2 * Codes::pairs, at += 2 * Codes::pairs * from.bytes_of_k()) {
        for (int64_t line = 0; line < Codes::pairs * 2 * from.bytes_of_k(); line += 64)
          V::prefetch(at + prefetch_distance_bytes + line);
        some_pairs<Codes, only_scales>(from, numbers, codes, at, k0, dtype, to,
                                       std::make_integer_sequence<int, Codes::pairs>());
      }
    };
    if (from.spec.is_ordered()) {
      OrderedNumbers numbers(from, panel);
      decode_stream(numbers, from.codes_at(panel, 0), 0, k);
    } else {
      Numbers numbers;
      for (int64_t g = 0; g < from.groups; ++g)
        decode_stream(numbers, numbers.read(from, from.group_at(panel, g)), g * from.group,
                      g * from.group + from.length_of(g));
    }
    if (dtype == DType::bf16 && k % 2 != 0) clear_odd(static_cast<bf16*>(to), k - 1);
  }

  template <class Codes, bool only_scales, class GroupNumbers, int... pair>
  [[gnu::always_inline]] static void some_pairs(const CodePanelsLayout& from, GroupNumbers& numbers, const Codes& codes,
                                                const uint8_t* at, int64_t k0, DType dtype, void* to,
                                                std::integer_sequence<int, pair...>) {
    (one_pair<Codes, only_scales, pair>(from, numbers, codes, at, k0 + 2 * pair, dtype, to), ...);
  }

  template <class Codes, bool only_scales, int pair, class GroupNumbers>
  [[gnu::always_inline]] static void one_pair(const CodePanelsLayout& from, GroupNumbers& of_groups, const Codes& codes,
                                              const uint8_t* at, int64_t k, DType dtype, void* to) {
    if (k >= from.k) return;
    const auto& numbers = of_groups.of_pair(k);
    if (dtype == DType::bf16) {
      bf16* const pairs = static_cast<bf16*>(to) + k / k_block * k_block * panel_columns + k % k_block * tile_columns;
#pragma GCC unroll 4
      for (int64_t v = 0; v < pair_numbers; v += width)
        V::store(pairs + v / k_block * tile_elements + v % k_block,
                 value<only_scales>(from.spec, numbers, codes.template get<pair>(at, v), v, true));
      return;
    }
    alignas(64) float decoded[pair_numbers];
    for (int64_t v = 0; v < pair_numbers; v += width)
      V::store(decoded + v, value<only_scales>(from.spec, numbers, codes.template get<pair>(at, v), v, false));
    float* const even = static_cast<float*>(to) + k * panel_columns;
    for (int64_t c = 0; c < panel_columns; ++c) even[c] = decoded[2 * c];
    if (k + 1 < from.k)
      for (int64_t c = 0; c < panel_columns; ++c) even[panel_columns + c] = decoded[2 * c + 1];
  }

  template <bool only_scales, class PairNumbers>
  [[gnu::always_inline]] static F value(const CodePanelsSpec& spec, const PairNumbers& numbers, F x, int64_t v,
                                        bool narrow) {
    if constexpr (!only_scales)
      if (spec.shift == CodeShift::zeros) x = V::sub(x, numbers.shifts_at(v));
    x = V::mul(x, numbers.scales_at(v));
    if constexpr (!only_scales) {
      if (spec.shift == CodeShift::offsets) x = V::add(x, numbers.shifts_at(v));
      if (spec.factor != 1) x = V::mul(x, V::set1(spec.factor));
      if (spec.rounding == ValueRounding::f16) x = V::rounded_to_half(x);
      if (is_bf16(spec) && !narrow) x = V::rounded(x);
    }
    return x;
  }

  // The scales, zeros or offsets of 32 columns, each twice.
  static void spread(const uint8_t* from, CodeNumbers numbers, float* to) {
    alignas(64) float plain[panel_columns];
    for (int64_t c = 0; c < panel_columns; c += width)
      V::store(plain + c, numbers == CodeNumbers::f32    ? V::load(reinterpret_cast<const float*>(from) + c)
                          : numbers == CodeNumbers::bf16 ? V::load(reinterpret_cast<const bf16*>(from) + c)
                                                         : V::load_halves(from + 2 * c));
    for (int64_t c = 0; c < panel_columns; ++c) to[2 * c] = to[2 * c + 1] = plain[c];
  }

  // The second of the pair that begins at k, in every column.
  static void clear_odd(bf16* to, int64_t k) {
    bf16* const pairs = to + k / k_block * k_block * panel_columns + k % k_block * tile_columns;
    for (int64_t c = 0; c < panel_columns; ++c)
      pairs[c / tile_columns * tile_elements + c % tile_columns * 2 + 1] = {0};
  }
};

}  // namespace easydel::kernels
