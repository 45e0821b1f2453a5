// y = x W^T with a weight that is packed once, and its two gradients. For dense weights only.
//
// Promise: a row of y has the same bits for any other rows in the call, any number of threads, any plan of tasks and
// every instruction set: each element is a fixed sequence of FMAs over k, see accumulation_order.h. A bias is added
// once, after the last k.
#pragma once

#include "easydel/kernels/accumulation_order.h"
#include "easydel/kernels/dtype.h"
#include "easydel/kernels/executor.h"
#include "easydel/kernels/memory.h"

namespace easydel::kernels {

// A weight W [n, k] (Hugging Face's [out, in]) in the layout that products read; see product_layout.h.
class PackedWeight {
 public:
  PackedWeight() = default;
  PackedWeight(int64_t n, int64_t k, DType dtype);  // contents are uninitialized

  int64_t n() const { return n_; }
  int64_t k() const { return k_; }
  DType dtype() const { return number_; }
  int64_t bytes() const;
  uint8_t* data() { return data_.get(); }
  const uint8_t* data() const { return data_.get(); }

 private:
  int64_t n_ = 0, k_ = 0;
  DType number_ = DType::f32;
  Buffer<uint8_t> data_;
};

// Fills `to` from row-major w [n, k] of either dtype (bf16 is widened, fp32 is rounded to nearest even).
void pack(Executor& executor, Input w, PackedWeight& to);
PackedWeight pack(Executor& executor, Input w, int64_t n, int64_t k, DType dtype);

// y [m, n] = x [m, k] W^T + bias [n] (null: none). fp32 weights: fp32_chain, x of either dtype. bf16 weights: bf16_tile
// and bf16_pairs round x to bf16 first; fp32_chain does not. A bf16 y is rounded once. m may be 0.
void product(Executor& executor, const PackedWeight& w, Input x, int64_t m, Output y, const float* bias,
             AccumulationOrder order);

// Gradients have the same bits for any number of threads, but not on every instruction set: products of two bf16
// matrices use the processor's bf16 instruction if it is faster, also with fp32 accumulators, in the order bf16_tile
// for tiles and bf16_pairs for pairs (accumulation_order.h).

// dx [m, k] = dy [m, n] W from the row-major weight [n, k], with fp32 sums. If `add`, dx is accumulated into.
void product_dx(Executor& executor, Input dy, Input w, int64_t m, int64_t n, int64_t k, Output dx, bool add);

// dw [n, k] = dy^T x over m rows, with fp32 sums. If `add`, dw is accumulated into.
void product_dw(Executor& executor, Input dy, Input x, int64_t m, int64_t n, int64_t k, Output dw, bool add);

// db [n] = sum of the rows of dy in ascending order. If `add`, db is accumulated into.
void sum_rows(Executor& executor, Input dy, int64_t m, int64_t n, float* db, bool add);

}  // namespace easydel::kernels
