// Orders of additions in products with weights, and the one that bf16 products use on this machine.
#pragma once

#include <cstdint>
#include <string_view>

namespace easydel::kernels {

// Each element of a product is a fixed sequence of FMAs over k:
//   fp32_chain  one chain in ascending k, starting from +0.
//   bf16_tile   what TDPBF16PS computes: within each 32 k (missing ones count as zero) the even and the odd k are two
//               chains starting from +0; even + odd is added to the sum of the earlier blocks. Denormals count as zero
//               throughout.
//   bf16_pairs  what VDPBF16PS computes: one chain starting from +0 over pairs of k (padded with zeros to 32); in each
//               pair the odd k comes first. Denormals count as zero throughout.
enum class AccumulationOrder : uint8_t { fp32_chain, bf16_tile, bf16_pairs };

std::string_view name(AccumulationOrder order);

// The order of products in bf16 is that of the machine's fastest instruction: bf16_tile with AMX, bf16_pairs where
// VDPBF16PS is faster than FMAs, otherwise bf16_tile. EASYDEL_BF16_ORDER overrides it. It holds for the whole process
// and does not depend on a forced instruction set, because every set can compute both. Throws UserError if the variable
// names no such order.
AccumulationOrder bf16_order();

// Meaning of EASYDEL_BF16_ORDER=`text` on this machine. Throws as bf16_order() does.
AccumulationOrder choose_bf16_order(std::string_view text);

}  // namespace easydel::kernels
