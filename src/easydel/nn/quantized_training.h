// Training of weights that will be quantized: products read codes of the weights as they are now, by the kernels that
// read the quantized model, and gradients pass straight through the rounding (arXiv:1308.3432).
#pragma once

#include <memory>
#include <string>

#include "easydel/nn/layer_pattern.h"
#include "easydel/nn/weight_policy.h"
#include "easydel/quant/format_config.h"

namespace easydel::nn {

// Of the layers that Quantizer takes by the same pattern: linear ones, and experts that it names. Codes are made of the
// values as a checkpoint will hold them, so the saved model has the logits of training, to the bit, when it is loaded
// in the same format. On a CPU; along fsdp each rank makes the codes of the whole weight, for which ranks gather it
// once a version.
class QuantizedTraining final : public WeightPolicy {
 public:
  // `saved`: the dtype of checkpoints; Undefined: that of the file. `where`: how errors name it. UserError: `pattern`
  // is not a regular expression.
  QuantizedTraining(quant::Format format, at::ScalarType saved, std::string where, const std::string& pattern = {})
      : format_(std::move(format)),
        saved_(saved),
        where_(std::move(where)),
        pattern_(pattern, "trainer.quantization_pattern") {}

  // UserError: the weight is not on a CPU, or the pattern takes the output layer or an embedding.
  std::shared_ptr<Weight> linear(const Scope& scope, Entry& entry, std::shared_ptr<Weight> weight,
                                 bool shared) override;
  std::shared_ptr<Weight> embedding(const Scope& scope, Entry& entry, std::shared_ptr<Weight> weight) override;
  std::shared_ptr<WeightStack> experts(const Scope& scope, Entry& entry, std::shared_ptr<WeightStack> weight) override;

 private:
  void check_place(const Entry& entry) const;

  quant::Format format_;
  at::ScalarType saved_;
  std::string where_;
  LayerPattern pattern_;
};

}  // namespace easydel::nn
