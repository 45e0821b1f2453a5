#include "easydel/models/kept_codes.h"

#include <algorithm>

#include "easydel/base/error.h"

namespace easydel::models {

namespace {

bool holds_codes(const quant::CodedFolder& weights) {
  const auto packed = [](const std::string& name) { return name.ends_with("_blocks"); };  // mxfp4's, in a model's layer
  return !weights.all_codes().empty() || std::ranges::any_of(weights.names(), packed);
}

}  // namespace

bool KeptCodes::can_keep(const nn::Entry& entry) {
  const bool stack = entry.role == nn::Role::weight && entry.shape.size() == 3;
  return !entry.trainable && (stack || nn::is_linear(entry) || entry.role == nn::Role::embedding) &&
         (entry.compute == at::kFloat || entry.compute == at::kBFloat16);
}

std::shared_ptr<nn::Weight> KeptCodes::linear(const nn::Scope&, nn::Entry& entry, std::shared_ptr<nn::Weight> weight,
                                              bool /*shared*/) {
  const auto found = codes_.find(&entry);
  if (found == codes_.end()) return weight;
  return nn::quantized_weight(nn::Parameter(&entry), found->second.front(), entry.compute);
}

std::shared_ptr<nn::Weight> KeptCodes::embedding(const nn::Scope& scope, nn::Entry& entry,
                                                 std::shared_ptr<nn::Weight> weight) {
  return linear(scope, entry, std::move(weight), /*shared=*/false);
}

std::shared_ptr<nn::WeightStack> KeptCodes::experts(const nn::Scope&, nn::Entry& entry,
                                                    std::shared_ptr<nn::WeightStack> weight) {
  const auto found = codes_.find(&entry);
  return found == codes_.end() ? weight : nn::quantized_stack(found->second, entry.compute);
}

void refuse_conversion(const std::filesystem::path& folder, const nn::Quantization& wanted) {
  refuse(wanted.where + ".runtime_dtype", str("the weights of ", folder.string(), " are not in codes to be converted"),
         "give their format as quantization_method");
}

void check_codes(const std::filesystem::path& folder, const quant::CodedFolder& weights, const LoadOptions& options) {
  if (options.quantization && options.quantization->of_codes && !holds_codes(weights))
    refuse_conversion(folder, *options.quantization);
  const quant::CodedWeight* const first = weights.only_codes();
  if (!first) return;
  const std::string what = str(weights.all_codes().size(), " weights are in codes (", first->format, ")");
  if (options.quantization && !options.quantization->of_codes)
    refuse(options.quantization->where, str(folder.string(), ": ", what, " already"),
           "leave the key out, load the unquantized model, or give runtime_dtype alone, which converts the codes");
  if (options.training && options.adapters.empty())
    refuse(folder.string(), str(what, ", and codes are not trained: only the other parameters could be"),
           "train an adapter over them: the section lora, LoadOptions::adapters");
}

}  // namespace easydel::models
