#include "easydel/cli/doctor.h"

#include <gtest/gtest.h>

#include "easydel/elarge/torch_report.h"
#include "easydel/media/image_decoder.h"

namespace easydel::cli {
namespace {

Machine healthy() {
  Machine m;
  m.processor = "A Processor";
  m.instruction_sets = {"reference", "avx2"};
  m.instruction_set_in_use = "avx2";
  m.no_tiles = "the processor has no tiles";
  m.bf16_order = "bf16_tile";
  m.waiting = "GOMP_SPINCOUNT=4000";
  m.processor_list = "0-1";
  m.processors = 4;
  m.allowed_processors = m.threads = 2;
  m.memory_bytes = int64_t(8) << 30;
  m.free_memory_bytes = int64_t(6) << 30;
  m.disk_folder = "/tmp";
  m.file_seconds = 0.00125;
  m.arrow = "26.0.1";
  m.images = "libjpeg 62";
  m.fp32_gflops = 200;
  m.bf16_gflops = 100;
  m.read_gigabytes = 20;
  return m;
}

TEST(Doctor, PrintsALineForEachFinding) {
  EXPECT_EQ(
      report(healthy()),
      "processor         A Processor\n"
      "instruction sets  reference avx2; in use: avx2; no amx: the processor has no tiles\n"
      "order class       fp32_chain in fp32, bf16_tile in bf16; every instruction set above gives the same bits in "
      "a forward pass\n"
      "threads           2 on 2 allowed of 4 processors (0-1)\n"
      "waiting threads   GOMP_SPINCOUNT=4000\n"
      "memory            6.0 GiB free of 8.0 GiB\n"
      "disk              1.25 ms for a small file with fsync in /tmp\n"
      "Parquet, Arrow    read by Arrow 26.0.1\n"
      "images            decoded by libjpeg 62\n"
      "measured peak     fp32 200 GFLOP/s, bf16 100 GFLOP/s, reading memory 20.0 GB/s\n");
}

std::string warning_of(const Machine& m) {
  const std::string text = report(m);
  const size_t begin = text.find("warning: ");
  return begin == std::string::npos ? "" : text.substr(begin);
}

TEST(Doctor, WarnsOfMoreThreadsThanProcessors) {
  Machine m = healthy();
  m.threads = 8;
  EXPECT_EQ(warning_of(m), "warning: 8 threads share 2 processors\n    set OMP_NUM_THREADS=2\n");
}

TEST(Doctor, WarnsOfAForcedInstructionSet) {
  Machine m = healthy();
  m.instruction_set_in_use = "reference";
  EXPECT_EQ(warning_of(m), "warning: the kernels run on reference, but this machine has avx2\n    unset EASYDEL_ISA\n");
}

TEST(Doctor, WarnsOfASlowDisk) {
  Machine m = healthy();
  m.file_seconds = 0.2;
  EXPECT_EQ(warning_of(m),
            "warning: the disk takes 200 ms to write and sync a small file\n    checkpoints are synced to disk; save "
            "them less often or on another disk\n");
}

TEST(Doctor, DescribesTorchWithItsShareOfThePeak) {
  EXPECT_EQ(elarge::describe(elarge::TorchReport{"2.13.0", true, 150, 90}, 200),
            "libtorch          2.13.0, with a GPU\n"
            "its BLAS          fp32 150 GFLOP/s (75% of the peak), bf16 90 GFLOP/s\n");
}

TEST(Doctor, WarnsOfASlowBlas) {
  EXPECT_EQ(elarge::describe(elarge::TorchReport{"2.13.0", false, 40, 90}, 200),
            "libtorch          2.13.0, no GPU\nits BLAS          fp32 40 GFLOP/s (20% of the peak), bf16 90 "
            "GFLOP/s\nwarning: torch's BLAS reaches only 20% of this machine's fp32 peak\n    the sdpa and vanilla "
            "attention backends use it; install a torch wheel from PyPI, which has MKL or OpenBLAS\n");
}

TEST(Doctor, ReportsWhyParquetCannotBeRead) {
  Machine m = healthy();
  m.arrow.clear();
  EXPECT_NE(report(m).find("Parquet, Arrow    cannot be read: this program was built without Arrow\n"),
            std::string::npos);
  EXPECT_EQ(warning_of(m), "");
  m.arrow_error = "libeasydel_arrow.so: cannot be loaded: x\n    y";
  EXPECT_EQ(warning_of(m), "warning: libeasydel_arrow.so: cannot be loaded: x\n    y\n");
  m.arrow_error.clear();
  m.images.clear();
  EXPECT_NE(report(m).find("images            cannot be decoded: this program was built without libjpeg, libpng and "
                           "libwebp\n"),
            std::string::npos);
  m.images_error = "libeasydel_media.so: cannot be loaded: x\n    y";
  EXPECT_EQ(warning_of(m), "warning: libeasydel_media.so: cannot be loaded: x\n    y\n");
}

TEST(Doctor, MeasuresThisMachine) {
  const Machine m = examine(testing::TempDir());
  EXPECT_TRUE(m.images.empty() || m.images.starts_with("libjpeg")) << m.images;
  EXPECT_EQ(m.images.empty(), !media::image_decoder_is_there());
  EXPECT_FALSE(m.instruction_sets.empty());
  EXPECT_GT(m.threads, 0);
  EXPECT_GT(m.free_memory_bytes, 0);
  EXPECT_LE(m.free_memory_bytes, m.memory_bytes);
  EXPECT_EQ(m.disk_error, "");
  EXPECT_GT(m.file_seconds, 0);
  EXPECT_GT(m.fp32_gflops, 0);
}

TEST(Doctor, ReportsADiskThatCannotBeWritten) {
  const Machine m = examine("/proc");
  EXPECT_NE(m.disk_error, "");
  EXPECT_NE(report(m).find("warning: the disk: "), std::string::npos) << report(m);
}

}  // namespace
}  // namespace easydel::cli
