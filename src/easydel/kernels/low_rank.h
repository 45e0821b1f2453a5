// What an adapter of low rank adds to a product, in fp32. A row of a result has the same bits on every instruction set,
// with any other rows and on any number of threads.
#pragma once

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

// Rows of one adapter among those of others.
struct LowRankRows {
  int64_t begin = 0, end = 0;
  const float* a = nullptr;         // [rank, k] as narrow_product() reads it; null: low holds x A^T already
  const PackedWeight* b = nullptr;  // [n, at most rank], packed in fp32
  float sign = 1, factor = 1;       // narrow_product()'s factor and add_narrow_product()'s
};

// out = y + factor * (low B^T) for the rows of each run, which are disjoint, with the bits of narrow_product() and
// add_narrow_product(), in one set of tasks. low [rows, rank]; out may be y.
void add_low_ranks(Executor& executor, std::span<const LowRankRows> runs, Input x, int64_t k, float* low, int64_t rank,
                   Input y, Output out);

// dw [rank, k] = low^T x over m rows, in ascending order.
void narrow_gradient(Executor& executor, const float* low, Input x, int64_t m, int64_t k, int64_t rank, float* dw);

// What the tasks of add_narrow_product share.
struct LowRankStep {
  Input y;
  const float* low;
  int64_t low_stride;
  const float* panels;
  int64_t n, k;
  float factor;
  Output out;
};

}  // namespace easydel::kernels
