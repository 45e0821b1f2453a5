// What the ops over an output layer's logits share: they compute the logits of a chunk of tokens at a time, and again
// in the backward.
#pragma once

#include <vector>

#include "easydel/ops/product.h"

namespace easydel::ops {

// Tokens per chunk: `wanted`, or if it is 0 as many as have about 64 MB of fp32 logits. Chunks are of equal size, so
// that no chunk of a few rows reads the whole weight.
int64_t chunk_rows(int64_t rows, int64_t vocabulary, int64_t wanted);
// Whether the products of `rows` tokens in such chunks save time if the weight is packed once, for all of them.
bool pays_to_pack_for(int64_t rows, int64_t chunk);

// Rows [begin, end) of each product's x.
std::vector<Factors> rows_of(const std::vector<Factors>& all, int64_t begin, int64_t end);
// The tensors that receive gradients: x and master of each.
std::vector<Tensor> inputs_of(const std::vector<Factors>& added);

// The output layer's weight as an autograd node has it: codes, which get no gradient, have an empty tensor as their
// master and values.
Matrix in_graph(const Matrix& weight, const Tensor& hidden);

// The steps between a product and a logit: the multiplier, then the softcap (0: off), then the temperature.
struct LogitShape {
  double multiplier = 1.0, softcap = 0.0, temperature = 1.0;
};

// The logits without a gradient, fp32 [n, vocabulary]: the product with the weight, the bias and the `added` products.
// An added product of zeros changes no bit, not even that of -0.
Tensor head_product(const Tensor& hidden, const Matrix& weight, const Tensor& bias, const std::vector<Factors>& added);
// The same after the steps of `shape`. If there is a softcap and `bent` is given, it receives the values of tanh.
Tensor chunk_logits(const Tensor& hidden, const Matrix& weight, const Tensor& bias, const std::vector<Factors>& added,
                    const LogitShape& shape, Tensor* bent = nullptr);

// The gradients of one added product, collected chunk by chunk.
struct AddedGradient {
  AddedGradient(const Factors& factors, bool wants_x, bool wants_weight);
  void add(const Tensor& gradient, int64_t begin, int64_t end);  // of the logits of rows [begin, end)
  Tensor answer() const;                                         // by the master, in its dtype; undefined: not wanted

  Factors of;
  Tensor x, weight;
};

}  // namespace easydel::ops
