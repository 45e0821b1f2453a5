// Rotary positions (arXiv 2104.09864) with every scaling of transformers. Inverse frequencies use the same fp32
// operations in the same order as transformers' modeling_rope_utils.py, so they are equal to the bit.
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
  int64_t dim = 0;           // number of a head's dimensions that are rotated: the first `dim`
  bool interleaved = false;  // pairs are neighbors; false: first half with second half
  double factor = 1.0;
  int64_t angles = 0;  // proportional: rotate this many pairs, with frequencies of the whole head
  int64_t max_positions = 0, original_max_positions = 0;
  std::optional<double> attention_factor;            // yarn, longrope: of cos and sin
  double beta_fast = 32, beta_slow = 1;              // yarn
  std::optional<double> mscale, mscale_all_dim;      // yarn
  bool truncate = true;                              // yarn
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  std::vector<double> short_factor, long_factor;     // longrope
  std::optional<double> short_scale, long_scale;     // longrope: of cos and sin, instead of attention_factor
  // yarn, EasyDeL's: factors of the share that is not interpolated, and of cos and sin
  double extrapolation_factor = 1, attn_factor = 1;
  // mrope: number of pairs rotated by a token's first, second and third position; empty: there is one position.
  std::vector<int64_t> mrope_section;
  bool mrope_interleaved = false;  // the three alternate until the second and third have their number of pairs
};

struct Frequencies {
  Tensor inverse;      // fp32 [dim / 2]
  double scale = 1.0;  // of cos and sin
};
// `length`: one more than the largest position of the sequence in this call; dynamic and longrope depend on it.
Frequencies frequencies(const RopeSpec& spec, int64_t length);

// int64 [dim / 2]: which of a token's three positions rotates each pair, in blocks (Qwen2-VL) or interleaved
// (Qwen3-VL).
Tensor mrope_choice(const RopeSpec& spec);

struct RopeTable {
  Tensor cos, sin;  // fp32 [tokens, dim / 2]
  bool interleaved = false;
};
// positions int64 [tokens], or [3, tokens] for mrope. Sequence s is tokens [cu_seqlens[s], cu_seqlens[s + 1]);
// its length is lengths[s] if given (a chunk of a text whose end is known), otherwise it follows from its
// positions.
RopeTable rope_table(const RopeSpec& spec, const Tensor& positions, const std::vector<int64_t>& cu_seqlens,
                     const std::vector<int64_t>& lengths = {});

// x [tokens, heads, head_dim] rotated by its token's angles.
Tensor rope(const Tensor& x, const RopeTable& table);
// The same without a gradient, for the tokens from `first` of the table on, written to `to` (rows of a cache).
void rope_into(const Tensor& x, const RopeTable& table, int64_t first, const Tensor& to);

}  // namespace easydel::ops
