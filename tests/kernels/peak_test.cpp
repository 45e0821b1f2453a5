#include "easydel/kernels/peak.h"

#include "kernels/support.h"

namespace easydel::kernels {
namespace {

TEST(Peaks, AreMeasuredOnEveryInstructionSet) {
  testing::on_every_isa([] {
    const Peaks peaks = measure_peaks(testing::pool_of_two());
    EXPECT_EQ(peaks.threads, 2);
    EXPECT_GT(peaks.fp32_gflops, 0.01);
    EXPECT_GT(peaks.bf16_gflops, 0.01);
    EXPECT_GT(peaks.read_gigabytes, 0.01);
    EXPECT_EQ(peaks.int8_gops > 0, isa() >= Isa::avx512_vnni);
  });
}

}  // namespace
}  // namespace easydel::kernels
