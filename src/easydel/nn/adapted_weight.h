// Weights with low-rank adapters: y = W x + scale * B A x (LoRA, arXiv:2106.09685), and with a trained length for each
// row (DoRA, arXiv:2402.09353). The base may be in any form. With B = 0 the results have the base's bits.
#pragma once

#include <memory>
#include <string>

#include "easydel/nn/weight.h"

namespace easydel::nn {

// The parameters of one adapter on one weight.
struct LowRank {
  Parameter a, b;       // [r, in] and [out, r]; of an embedding, [rows, r] and [size, r]
  Parameter bias;       // of B, [out]; none: it has no bias
  Parameter magnitude;  // DoRA: the lengths of the rows, [out]; none: plain LoRA
  double scale = 1;
  double dropout = 0;  // of x, while a model trains
  std::string path;    // of the layer: names the draws of the dropout
};

// Shared by the weights of one adapter.
struct AdapterSwitch {
  bool merged = false;  // the base's values contain the adapter
};

// `base` with the adapter, of a linear layer or an output layer. `parameter` is the base's.
std::shared_ptr<Weight> adapted_weight(std::shared_ptr<Weight> base, Parameter parameter, LowRank adapter,
                                       std::shared_ptr<const AdapterSwitch> state);
// The same of an embedding, whose rows are looked up.
std::shared_ptr<Weight> adapted_embedding(std::shared_ptr<Weight> base, LowRank adapter,
                                          std::shared_ptr<const AdapterSwitch> state);
// Read instead of `base` by passes with adapters: a layer that is trained in full.
std::shared_ptr<Weight> replaced_weight(std::shared_ptr<Weight> base, std::shared_ptr<Weight> own,
                                        std::shared_ptr<const AdapterSwitch> state);

// y + scale * (x A^T) B^T, where y is a product of x, and a and b are weights of values (ops::add_low_rank).
Tensor with_low_rank(const Tensor& y, const Tensor& x, Weight& a, Weight& b, double scale, Pass& pass);

// The length of each row of base + scale * B A, fp32 [out], without a gradient. base [out, in], a [r, in], b [out, r]
// may have any floating dtype. An undefined b stands for zeros.
Tensor row_lengths(const Tensor& base, const Tensor& a, const Tensor& b, double scale);

// fp32 [out, in]: base + scale * B A, with DoRA's rows brought to `magnitude` (undefined: they are not).
Tensor merged_values(const Tensor& base, const Tensor& a, const Tensor& b, const Tensor& magnitude, double scale);

}  // namespace easydel::nn
