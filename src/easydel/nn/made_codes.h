// Codes that were made of a weight's values while the model was loaded, for what saves them.
#pragma once

#include <memory>

#include "easydel/nn/weight.h"
#include "easydel/quant/format_config.h"

namespace easydel::nn {

// As quantized_weight() and quantized_stack(), and made_codes() finds them again.
std::shared_ptr<Weight> quantized_weight(Parameter parameter, ops::Matrix codes, at::ScalarType type,
                                         const quant::Format& format);
std::shared_ptr<WeightStack> quantized_stack(std::vector<ops::Matrix> codes, at::ScalarType type,
                                             const quant::Format& format);

struct MadeCodes {
  std::vector<ops::Matrix> codes = {};    // all rows; of a stack one for each of its weights
  const quant::Format* format = nullptr;  // null: the weight is not of this kind
};
// Of the weight itself, or of the one inside those that wrap it. Valid as long as the weight. Collective where ranks
// keep parts of the rows.
MadeCodes made_codes(Weight& weight);
MadeCodes made_codes(WeightStack& stack);
// Of what products read of the entry.
MadeCodes made_codes(const Entry& entry);

}  // namespace easydel::nn
