// Detects the order; the only file that reads EASYDEL_BF16_ORDER.
#include "easydel/kernels/accumulation_order.h"

#include <cstdlib>

#include "easydel/base/error.h"
#include "easydel/kernels/isa.h"

namespace easydel::kernels {

namespace {

constexpr std::string_view order_names[] = {"fp32_chain", "bf16_tile", "bf16_pairs"};

}  // namespace

std::string_view name(AccumulationOrder order) { return order_names[int(order)]; }

AccumulationOrder choose_bf16_order(std::string_view text) {
  for (const AccumulationOrder order : {AccumulationOrder::bf16_tile, AccumulationOrder::bf16_pairs})
    if (name(order) == text) return order;
  if (!text.empty())
    refuse("EASYDEL_BF16_ORDER", str("'", text, "' is not an order of additions in bf16"),
           "it is bf16_tile or bf16_pairs");
  return available_isas().back() != Isa::amx && has_fast_pairs() ? AccumulationOrder::bf16_pairs
                                                                 : AccumulationOrder::bf16_tile;
}

AccumulationOrder bf16_order() {
  static const AccumulationOrder order = [] {
    const char* const text = std::getenv("EASYDEL_BF16_ORDER");
    return choose_bf16_order(text ? text : "");
  }();
  return order;
}

}  // namespace easydel::kernels
