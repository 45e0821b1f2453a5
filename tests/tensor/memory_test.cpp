#include "easydel/tensor/memory.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "easydel/tensor/torch.h"

namespace easydel::tensor {
namespace {

constexpr int64_t kMega = 1 << 20;

TEST(KeptMemory, RoundsToStepsOfAnEighth) {
  EXPECT_EQ(block_bytes(1 << 20), size_t{1} << 20);
  EXPECT_EQ(block_bytes((1 << 20) + 1), size_t{(1 << 20) + (1 << 17)});
  EXPECT_EQ(block_bytes(300 << 10), size_t{320} << 10);
  for (const size_t bytes : {size_t{262145}, size_t{5'000'001}, size_t{113'246'208}}) {
    EXPECT_GE(block_bytes(bytes), bytes);
    EXPECT_LE(block_bytes(bytes), bytes + bytes / 8 + 4096);
    EXPECT_EQ(block_bytes(bytes) % 4096, 0u);
  }
}

TEST(KeptMemory, GivesABlockOfTheSameSizeAgain) {
  use_kept_memory();
  void* first = nullptr;
  {
    const Tensor a = at::full({3 * kMega}, 7, at::kByte);
    first = a.data_ptr();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  }
  const MemoryUse before = memory_use();
  EXPECT_GE(before.kept, uint64_t{3 * kMega});
  const Tensor b = at::empty({3 * kMega}, at::kByte);
  EXPECT_EQ(b.data_ptr(), first);
  EXPECT_EQ(memory_use().kept, before.kept - block_bytes(3 * kMega));
  EXPECT_EQ(memory_use().in_use, before.in_use + block_bytes(3 * kMega));
}

TEST(KeptMemory, IsWatchedForTensorsOfAnySize) {
  use_kept_memory();
  const Tensor there = at::empty({2 * kMega}, at::kByte);
  const PeakWatch watch;
  EXPECT_EQ(watch.bytes(), 0);
  { const Tensor large = at::empty({2 * kMega}, at::kByte), small = at::empty({1000}, at::kByte); }
  const Tensor later = at::empty({kMega}, at::kByte);
  EXPECT_GE(watch.bytes(), 2 * kMega + 1000);
  EXPECT_LE(watch.bytes(), 2 * kMega + 2000);
}

TEST(KeptMemory, NeverHoldsMoreThanTensorsNeededAtTheirPeak) {
  use_kept_memory();
  // Sizes that never recur: kept memory must not accumulate.
  for (int64_t i = 0; i < 200; ++i) at::empty({kMega + i * 200'000}, at::kByte);
  const MemoryUse use = memory_use();
  EXPECT_LE(use.in_use + use.kept, use.peak);
}

TEST(KeptMemory, GivesPartsOfALargerBlockWithoutFreshPages) {
  use_kept_memory();
  const char* first = nullptr;
  {
    const Tensor large = at::full({int64_t(memory_use().peak) + 64 * kMega}, 1, at::kByte);
    first = static_cast<const char*>(large.data_ptr());
  }
  const int64_t peak = int64_t(memory_use().peak - memory_use().in_use);
  std::vector<Tensor> parts;
  // They fill the memory that tensors needed at their peak, so that there is no space for other pages.
  for (int64_t left = peak; left >= 9 * kMega; left -= 9 * kMega) parts.push_back(at::empty({9 * kMega}, at::kByte));
  int64_t inside = 0;
  for (const Tensor& part : parts) inside += first <= part.data_ptr() && part.data_ptr() < first + peak;
  EXPECT_GE(inside, 7);
  parts.clear();
  // Adjacent freed parts are merged again.
  EXPECT_GE(memory_use().kept, uint64_t(peak) / 2);
  EXPECT_LE(memory_use().in_use + memory_use().kept, memory_use().peak);
}

TEST(KeptMemory, PutsPagesOfSeveralFreeRangesSideBySide) {
  use_kept_memory();
  const auto piece = [](int value) { return at::full({8 * kMega}, value, at::kByte); };
  std::vector<Tensor> pieces;
  for (int i = 0; i < 12; ++i) pieces.push_back(piece(i + 1));
  while (memory_use().in_use + 8 * kMega <= memory_use().peak) pieces.push_back(piece(99));
  for (size_t i = 0; i < pieces.size(); i += 2) pieces[i] = Tensor();  // no two of them adjacent
  const Tensor large = at::empty({40 * kMega}, at::kByte);
  EXPECT_GE(large.ne(0).sum().item<int64_t>(), 20 * kMega);  // pages that were in use before
  EXPECT_LE(memory_use().in_use + memory_use().kept, memory_use().peak);
  large.fill_(7);
  for (size_t i = 1; i < 12; i += 2)
    EXPECT_TRUE(pieces[i].eq(int64_t(i + 1)).all().item<bool>()) << "the piece beside was written";
  // The rest of the ranges can be allocated and freed as before.
  std::vector<Tensor> others;
  for (int i = 0; i < 8; ++i) others.push_back(piece(50));
  EXPECT_TRUE(large.eq(7).all().item<bool>());
}

TEST(KeptMemory, KeepsPiecesThatAreTooSmallForTheNextTensor) {
  use_kept_memory();
  std::vector<Tensor> pieces, longer;
  while (memory_use().in_use + kMega <= memory_use().peak) pieces.push_back(at::empty({kMega}, at::kByte));
  for (size_t i = 0; i < pieces.size(); i += 2) pieces[i] = Tensor();  // no two of them adjacent
  const MemoryUse before = memory_use();
  for (int i = 0; i < 6; ++i) longer.push_back(at::empty({kMega + kMega / 2}, at::kByte));
  EXPECT_GE(memory_use().in_use + memory_use().kept, before.in_use + before.kept);
  EXPECT_LE(memory_use().in_use + memory_use().kept, memory_use().peak + 32 * kMega);
  // The next round reuses the memory of this one.
  const MemoryUse once = memory_use();
  longer.clear();
  for (int i = 0; i < 6; ++i) longer.push_back(at::empty({kMega + kMega / 2}, at::kByte));
  EXPECT_EQ(memory_use().kept, once.kept);
}

TEST(KeptMemory, SmallTensorsAndResizesWork) {
  use_kept_memory();
  const MemoryUse before = memory_use();
  const Tensor small = at::full({1000}, 1.5, at::kFloat);
  EXPECT_EQ(memory_use().in_use, before.in_use);
  Tensor grown = at::full({1000}, 2, at::kFloat);
  grown.resize_({4 * kMega});
  EXPECT_EQ(grown[999].item<float>(), 2);
  EXPECT_EQ(small[999].item<float>(), 1.5);
  EXPECT_EQ(at::empty({0}).numel(), 0);
}

TEST(KeptMemory, ServesManyThreads) {
  use_kept_memory();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &wrong] {
      for (int i = 0; i < 100; ++i) {
        const Tensor a = at::full({kMega / 2 + (i % 5) * 100'000}, t, at::kByte);
        if (a[0].item<int>() != t || a[-1].item<int>() != t) ++wrong;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace easydel::tensor
