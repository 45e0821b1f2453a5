// Which weights of a model are quantized while it is loaded, and to what format: a run's `quantization` section.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "easydel/base/regular_expression.h"
#include "easydel/nn/layer_pattern.h"
#include "easydel/nn/weight_policy.h"
#include "easydel/quant/format_config.h"

namespace easydel::nn {

struct Quantization {
  quant::Format format;
  std::string pattern = {};            // a LayerPattern
  std::string linear_pattern = {};     // must be found in a linear layer's path, too
  bool simulate = false;               // round the values, and keep them in their dtype
  std::string where = "quantization";  // how errors name it
  // runtime_dtype: values are rounded to `stored` first, and what these codes stand for is rounded once to `format`.
  std::optional<quant::Format> stored = {};
  // runtime_dtype for a checkpoint in codes: what its codes stand for is rounded once to `format`, in every weight that
  // lies in codes and whose path the patterns match. Other weights stay as they are.
  bool of_codes = false;
};

// Quantizes linear layers, and embeddings and experts that the pattern names. Norms and routers stay as they are. A
// tied output layer that the pattern matches gets codes of its own in addition to the embedding's values; that of an
// embedding in codes reads these codes.
class Quantizer final : public WeightPolicy {
 public:
  // UserError if a pattern is not a regular expression.
  explicit Quantizer(const Quantization& quantization);

  // A quantized entry no longer holds its values, unless they are `shared`. An entry without values is only counted.
  std::shared_ptr<Weight> linear(const Scope& scope, Entry& entry, std::shared_ptr<Weight> weight,
                                 bool shared) override;
  std::shared_ptr<Weight> embedding(const Scope& scope, Entry& entry, std::shared_ptr<Weight> weight) override;
  // UserError on several ranks.
  std::shared_ptr<WeightStack> experts(const Scope& scope, Entry& entry, std::shared_ptr<WeightStack> weight) override;

  // Of an entry that lies in codes: whether they become others (Quantization::of_codes). Then the entry must get its
  // values in fp32, and linear() or experts() makes the new codes.
  bool converts(const Entry& entry);

  // Whether the patterns take the linear layer `layer`; counted.
  bool takes(const Entry& entry, const std::string& layer, bool shared);

  // After the last layer: UserError if the patterns matched none.
  void refuse_none() const;
  std::string told() const;  // "30 weights in nf4: 57.1 of 216.0 MB"

 private:
  std::shared_ptr<Weight> coded(Entry& entry, std::shared_ptr<Weight> weight, bool shared);
  ops::Matrix codes_of(const Tensor& values, at::ScalarType compute);

  Quantization quantization_;
  LayerPattern pattern_;
  RegularExpression linear_pattern_;
  std::map<const Entry*, std::shared_ptr<Weight>> tables_;  // embeddings in codes
  std::set<const Entry*> converted_;
  std::string seen_;  // a layer that was not taken
  int64_t weights_ = 0, bytes_before_ = 0, bytes_ = 0;
};

}  // namespace easydel::nn
