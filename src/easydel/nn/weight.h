// A weight of a product and its representations: the master shard in the table, a copy in the number type of the
// computation, a packed one; codes; later adapted forms. Replaceable after construction through Entry::weight.
#pragma once

#include <memory>

#include "easydel/nn/parameter.h"
#include "easydel/ops/product.h"

namespace easydel::nn {

class Weight {
 public:
  virtual ~Weight() = default;
  // x [tokens, in] -> [tokens, out]; as ops::product.
  virtual Tensor product(const Tensor& x, const Tensor& bias, const Tensor& given) = 0;
  // product(gated(gate, up)), keeping no more than it must.
  virtual Tensor gated_product(const Tensor& gate, const Tensor& up, ops::Activation kind, const Tensor& bias,
                               const Tensor& given) {
    return product(ops::gated(gate, up, kind), bias, given);
  }
  // The copy in the computation's number type that products read, where one is kept and is that of the shard as it is
  // now; else undefined. An optimizer that writes the shard may write it in the same sweep, and says so by copied()
  // after Entry::written(); a copy that nobody wrote is made anew.
  virtual Tensor copy() { return {}; }
  virtual void copied() {}
  // For ops that multiply on their own terms (the head's chunks). Bug where the form has no such thing.
  virtual ops::Matrix matrix() = 0;
  // The values in full, [out, in], of a form whose parameter does not hold them itself; else Bug.
  virtual Tensor values() const;
};

// The parameter's values as they are; a copy in the computation's number type is made where that differs from the
// shard's, and made again after the shard was written.
std::shared_ptr<Weight> dense_weight(Parameter parameter);

// Codes for good; `type` is that of values(). Gradients flow to x and to the bias alone.
std::shared_ptr<Weight> quantized_weight(std::shared_ptr<const kernels::QuantizedWeight> codes, at::ScalarType type);

}  // namespace easydel::nn
