// Rotary positions (arXiv 2104.09864) with every scaling that transformers has. Inverse frequencies are made by the
// same fp32 operations in the same order as transformers' modeling_rope_utils.py, so they are equal bit for bit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "easydel/tensor/torch.h"

namespace easydel::ops {

enum class RopeType : uint8_t { standard, linear, dynamic, yarn, llama3, longrope, proportional };

struct RopeSpec {
  RopeType type = RopeType::standard;
  double theta = 10000.0;
  int64_t dim = 0;           // how many of a head's dimensions turn: the first `dim`
  bool interleaved = false;  // pairs are neighbours; false: the first half with the second
  double factor = 1.0;
  int64_t angles = 0;  // proportional: so many of a head's pairs turn, with the frequencies of a whole head
  int64_t max_positions = 0, original_max_positions = 0;
  std::optional<double> attention_factor;            // yarn, longrope: of cos and sin
  double beta_fast = 32, beta_slow = 1;              // yarn
  std::optional<double> mscale, mscale_all_dim;      // yarn
  bool truncate = true;                              // yarn
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  std::vector<double> short_factor, long_factor;     // longrope
  std::optional<double> short_scale, long_scale;     // longrope: of cos and sin, in place of attention_factor
  double extrapolation_factor = 1, attn_factor = 1;  // yarn, EasyDeL's: of the share that stays, of cos and sin
  // mrope: how many pairs turn by the first, second and third position of a token; empty: there is one position.
  std::vector<int64_t> mrope_section;
  bool mrope_interleaved = false;  // the three take turns, until the second and the third have theirs
};

struct Frequencies {
  Tensor inverse;      // fp32 [dim / 2]
  double scale = 1.0;  // of cos and sin
};
// `length`: one more than the greatest position of the sequence in this call; dynamic and longrope depend on it.
Frequencies frequencies(const RopeSpec& spec, int64_t length);

// int64 [dim / 2]: by which of a token's three positions each pair turns, as Qwen2-VL (in a row) and Qwen3-VL (in
// turns) have it.
Tensor mrope_choice(const RopeSpec& spec);

struct RopeTable {
  Tensor cos, sin;  // fp32 [tokens, dim / 2]
  bool interleaved = false;
};
// positions int64 [tokens], or of mrope [3, tokens]; sequence s is the tokens [cu_seqlens[s], cu_seqlens[s + 1]), and
// counts as lengths[s] long where that is given (a part of a text whose end is known), else as long as its positions
// go.
RopeTable rope_table(const RopeSpec& spec, const Tensor& positions, const std::vector<int64_t>& cu_seqlens,
                     const std::vector<int64_t>& lengths = {});

// x [tokens, heads, head_dim] turned by its token's angles.
Tensor rope(const Tensor& x, const RopeTable& table);
// The same, without a gradient, of the tokens from `first` of the table on, written to `to` (rows of a cache).
void rope_into(const Tensor& x, const RopeTable& table, int64_t first, const Tensor& to);

}  // namespace easydel::ops
