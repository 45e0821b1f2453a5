// What an adapter of low rank adds to a product, in fp32. A row of a result has the same bits on every instruction set,
// with any other rows and on any number of threads.
#pragma once

#include <memory>
#include <span>

#include "easydel/kernels/dtype.h"
#include "easydel/kernels/executor.h"
#include "easydel/kernels/product.h"

namespace easydel::kernels {

// out [m, n] = y + factor * (low B^T), where low [m, k] is fp32 and B [n, k] is packed in fp32. An element of the
// product is one chain of FMAs over k, as in fp32_chain, and the sum is one more. y without data counts as zeros; out
// may be y.
void add_narrow_product(Executor& executor, Input y, const float* low, int64_t low_stride, const PackedWeight& b,
                        int64_t m, float factor, Output out);

// out [m, n] = y + factor * x, by one FMA each; out may be y or x.
void add_scaled(Executor& executor, Input y, Input x, int64_t m, int64_t n, float factor, Output out);

// Ranks that the two below serve: others are padded with zeros.
constexpr int64_t max_narrow_rank = 8;
constexpr bool is_narrow(int64_t rank) { return rank == 2 || rank == 4 || rank == 8; }

// low [m, rank] fp32 = factor * x A^T for a [rank, k] in fp32, contiguous. Sixteen sums, of every sixteenth k, are
// added at the end.
void narrow_product(Executor& executor, Input x, const float* a, int64_t m, int64_t k, int64_t rank, float factor,
                    float* low);

// A [rank, k] in bf16 and B [n, rank] in fp32 of one adapter as add_low_ranks() reads them: in one block of memory,
// without the columns that a panel of A has beyond whole tiles.
class PackedLowRank {
 public:
  // Whether x A^T is computed from it: at most 32 rows in bf16, whole blocks of 32 k, in the order bf16_pairs with the
  // loops of its instruction.
  static bool serves(const PackedWeight& a);

  PackedLowRank(const PackedWeight& a, const PackedWeight& b);  // serves(a)

  int64_t rank() const { return rank_; }
  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  const uint32_t* a() const { return reinterpret_cast<const uint32_t*>(data_.get()); }
  const float* b() const { return reinterpret_cast<const float*>(data_.get() + bytes_of_a_); }

 private:
  int64_t rank_, n_, k_, bytes_of_a_;
  std::shared_ptr<const uint8_t> data_;
};

// What one adapter adds to some rows of y, the product of the same rows of x with a weight.
struct AddedRows {
  std::span<const int64_t> rows = {};
  // Both, for x in bf16: x A^T in the order bf16_pairs; or
  const PackedLowRank* both = nullptr;
  // x A^T by narrow_product() from A [rank, k], or made before, sign * x A^T [rows.size(), rank], and B.
  const float* narrow_a = nullptr;
  const float* low = nullptr;
  int64_t rank = 0;
  const PackedWeight* b = nullptr;  // [n, at most rank], packed in fp32
  float sign = 1, factor = 1;       // narrow_product()'s factor and add_narrow_product()'s
  Output y{};
};

// y += factor * (sign * x A^T) B^T for the rows of each adapter, with the bits of narrow_product() or product() and of
// add_narrow_product(), in one set of tasks. The rows of one y are disjoint.
void add_low_ranks(Executor& executor, std::span<const AddedRows> adapters, Input x, int64_t k);

// dw [rank, k] = low^T x over m rows, in ascending order.
void narrow_gradient(Executor& executor, const float* low, Input x, int64_t m, int64_t k, int64_t rank, float* dw);

// Rows of x A^T: row i of `low` is made from row rows[i] of x; null: from row i.
struct LowStep {
  Input x;
  const int64_t* rows;
  const void* a;  // [rank, k] in fp32, or PackedLowRank::a()
  int64_t k, rank;
  float factor;
  float* low;
};

// What the tasks of add_narrow_product share. Row i of `low` is added to row rows[i] of y; null: to row i.
struct LowRankStep {
  Input y{};
  const float* low = nullptr;
  int64_t low_stride = 0;
  const float* panels = nullptr;
  int64_t n = 0, k = 0;
  float factor = 1;
  Output out{};
  const int64_t* rows = nullptr;
};

}  // namespace easydel::kernels
