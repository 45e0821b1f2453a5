// Training of weights that will be quantized: products read codes of the weights as they are now, by the kernels that
// read the quantized model, and gradients pass straight through the rounding (arXiv:1308.3432).
#pragma once

#include <memory>
#include <string>

#include "easydel/nn/weight_policy.h"
#include "easydel/quant/format_config.h"

namespace easydel::nn {

// Of all linear layers but the output's, which are those that Quantizer takes by default. Codes are made of the values
// as a checkpoint will hold them, so the saved model has the logits of training, to the bit, when it is loaded in the
// same format. On a CPU; along fsdp each rank makes the codes of the whole weight, for which ranks gather it once a
// version.
class QuantizedTraining final : public WeightPolicy {
 public:
  // `saved`: the dtype of checkpoints; Undefined: that of the file. `where`: how errors name it.
  QuantizedTraining(quant::Format format, at::ScalarType saved, std::string where)
      : format_(std::move(format)), saved_(saved), where_(std::move(where)) {}

  // UserError: the weight is not on a CPU.
  std::shared_ptr<Weight> linear(const Scope& scope, Entry& entry, std::shared_ptr<Weight> weight,
                                 bool shared) override;

 private:
  quant::Format format_;
  at::ScalarType saved_;
  std::string where_;
};

}  // namespace easydel::nn
