// The words for ways to compute a layer of experts. A face: no torch.
#pragma once

#include <array>
#include <cstdint>

#include "easydel/config/choice.h"

namespace easydel::ops {

// By EasyDeL's names; all give the same bits.
enum class MoeMethod : uint8_t {
  fused_moe,     // products grouped by expert
  standard_moe,  // one product after another
  dense_moe      // every expert computes every token: the reference
};
constexpr auto choices(MoeMethod) {
  using config::Choice;
  return std::array{Choice{MoeMethod::fused_moe, "fused_moe"},
                    Choice{MoeMethod::standard_moe, "standard_moe"}.also("einsum"),
                    Choice{MoeMethod::dense_moe, "dense_moe"}};
}

}  // namespace easydel::ops
