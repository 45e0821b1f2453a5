// Weights of a checkpoint in codes that stay codes: the first of a model's policies.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "easydel/models/model.h"
#include "easydel/nn/quantization.h"
#include "easydel/nn/weight_policy.h"
#include "easydel/quant/coded_folder.h"

namespace easydel::models {

class KeptCodes final : public nn::WeightPolicy {
 public:
  // `quantizes`: the model's weights become codes once more, so that those which stand for values are decoded.
  // `converter` (may be null, else outlives it) makes other codes of some.
  KeptCodes(bool quantizes, nn::Quantizer* converter) : quantizes_(quantizes), converter_(converter) {}
  // Whether the codes of an entry become others: it needs its values in fp32 then.
  bool converts(const nn::Entry& entry) const {
    return converter_ && entry.role != nn::Role::embedding && converter_->converts(entry);
  }
  // Embeddings of codes that stand for values are decoded.
  bool keeps(const nn::Entry& entry, const quant::CodedWeight& weight) const {
    return !weight.stands_for_values || (!quantizes_ && entry.role != nn::Role::embedding);
  }
  // Whether products can read the entry from codes: a linear layer, a stack of experts or an embedding that is not
  // trained.
  static bool can_keep(const nn::Entry& entry);
  // One weight for each matrix of the entry, which has no shard.
  void keep(const nn::Entry& entry, std::vector<ops::Matrix> codes) { codes_[&entry] = std::move(codes); }

  std::shared_ptr<nn::Weight> linear(const nn::Scope& scope, nn::Entry& entry, std::shared_ptr<nn::Weight> weight,
                                     bool shared) override;
  std::shared_ptr<nn::Weight> embedding(const nn::Scope& scope, nn::Entry& entry,
                                        std::shared_ptr<nn::Weight> weight) override;
  std::shared_ptr<nn::WeightStack> experts(const nn::Scope& scope, nn::Entry& entry,
                                           std::shared_ptr<nn::WeightStack> weight) override;

 private:
  bool quantizes_;
  nn::Quantizer* converter_;
  std::map<const nn::Entry*, std::vector<ops::Matrix>> codes_;
};

// UserError: the folder's weights are codes, and the options quantize them once more or train them; or they are not,
// and the options convert codes.
[[noreturn]] void refuse_conversion(const std::filesystem::path& folder, const nn::Quantization& wanted);
void check_codes(const std::filesystem::path& folder, const quant::CodedFolder& weights, const LoadOptions& options);

}  // namespace easydel::models
