// Rotary positions through the public functions of EasyDeL's configurations: get_basic_frequencies,
// get_basic_inv_frequencies and get_basic_rope. Families do not use them; they rotate by ops::rope_table.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/ops/rope.h"

namespace easydel::models {

struct RopeRequest {
  std::optional<int64_t> head_size = {};      // else head_dim, or hidden_size / num_attention_heads
  std::optional<int64_t> rotary_dim = {};     // rotated dimensions before partial_rotary_factor; else all
  std::optional<double> base = {};            // else rope_theta
  std::optional<int64_t> max_positions = {};  // else max_position_embeddings
  bool is_neox_style = true;                  // pairs: first half with second half; false: adjacent (GPT-J)
};

// fp32 [rotary_dim / 2], bit-equal to transformers. UserError "config: ...": unknown rope type, missing key.
Tensor get_basic_inv_frequencies(const Value& config, const RopeRequest& request = {});
// fp32 [positions, rotary_dim]: cosines, then sines. As many positions as the scaled model has; for a list of
// linear factors, one table after the other. longrope: [1, positions, 2 * rotary_dim], each twice.
Tensor get_basic_frequencies(const Value& config, const RopeRequest& request = {});

class BasicRope {
 public:
  // positions int64 [tokens], or for mrope [3, tokens]; x [tokens, heads, head_size]. Throws UserError if a table of
  // get_basic_frequencies was given and a position is outside it.
  Tensor operator()(const Tensor& x, const Tensor& positions,
                    const std::optional<Tensor>& frequencies = std::nullopt) const;

 private:
  friend BasicRope get_basic_rope(const Value& config, const RopeRequest& request);
  ops::RopeSpec spec_;
  int64_t length_ = 0;           // the length for which dynamic and longrope are computed
  std::optional<Tensor> table_;  // for several linear factors: positions continue from one table to the next
};
BasicRope get_basic_rope(const Value& config, const RopeRequest& request = {});

}  // namespace easydel::models
