#include "easydel/kernels/accumulation_order.h"

#include "easydel/base/error.h"
#include "easydel/kernels/product.h"
#include "kernels/support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

TEST(Order, OfBf16IsTheMachinesWhateverSetIsForced) {
  const AccumulationOrder chosen = choose_bf16_order("");
  EXPECT_EQ(chosen == AccumulationOrder::bf16_pairs, available_isas().back() != Isa::amx && has_fast_pairs());
  on_every_isa([&] { EXPECT_EQ(choose_bf16_order(""), chosen); });
  EXPECT_EQ(choose_bf16_order("bf16_tile"), AccumulationOrder::bf16_tile);
  EXPECT_EQ(choose_bf16_order("bf16_pairs"), AccumulationOrder::bf16_pairs);
}

TEST(Order, RefusesAnUnknownOrder) {
  try {
    choose_bf16_order("fp32_chain");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(
        error.what(),
        "EASYDEL_BF16_ORDER: 'fp32_chain' is not an order of additions in bf16\n    it is bf16_tile or bf16_pairs");
  }
}

TEST(Order, OfPairsIsNoneOfWeightsInFp32) {
  const std::vector<float> w(64 * 32, 1.0f), x(64, 1.0f);
  std::vector<float> y(32);
  const PackedWeight wide = pack(serial_executor(), {w.data(), 64}, 32, 64, DType::f32);
  EXPECT_THROW(
      product(serial_executor(), wide, {x.data(), 64}, 1, {y.data(), 32}, nullptr, AccumulationOrder::bf16_pairs), Bug);
}

}  // namespace
}  // namespace easydel::kernels
