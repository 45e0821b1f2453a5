// The orders of additions in products with weights, and which of them products in bf16 have on this machine.
#pragma once

#include <cstdint>
#include <string_view>

namespace easydel::kernels {

// Each element of a product is a fixed sequence of FMAs over k:
//   fp32_chain  one chain in ascending k from +0.
//   bf16_tile   what TDPBF16PS does: within each 32 k (missing ones count as zero) the even and the odd k are two
//               chains from +0; even + odd is added to the sum of the blocks before. Denormals count as zero
//               throughout.
//   bf16_pairs  what VDPBF16PS does: one chain from +0 over pairs of k (filled up to 32 with zeros), of each the odd k
//               first, then the even one. Denormals count as zero throughout.
enum class Order : uint8_t { fp32_chain, bf16_tile, bf16_pairs };

std::string_view name(Order order);

// The order class of products in bf16: that of the machine's fastest instruction, which is the tiles' where there are
// tiles, the pairs' where VDPBF16PS is faster than FMAs, else the tiles'; EASYDEL_BF16_ORDER names another. The same
// for the whole process, whatever instruction set it is forced to: every set can do both. Throws UserError for a value
// that names no such order.
Order bf16_order();

// What EASYDEL_BF16_ORDER=`text` means here. Throws as bf16_order() does.
Order choose_bf16_order(std::string_view text);

}  // namespace easydel::kernels
