// Which weights of a model become codes while it is loaded, and of what format: what a run's `quantization` asks for.
#pragma once

#include <functional>
#include <memory>
#include <regex>
#include <string>

#include "easydel/nn/parameter.h"
#include "easydel/quant/format_config.h"

namespace easydel::nn {

struct Quantization {
  quant::Format format;
  // Regular expressions that must be found in a linear layer's path ("model.layers.0.self_attn.q_proj"). An empty
  // pattern takes every layer but the output's.
  std::string pattern = {}, linear_pattern = {};
  bool simulate = false;               // round the values, and keep them as they are held
  std::string where = "quantization";  // what errors call it
};

// Embeddings, norms, routers and experts stay as they are; a tied output layer that the pattern names has codes of its
// own beside the embedding's values.
class Quantizer {
 public:
  explicit Quantizer(const Quantization& wanted);  // UserError for what is no regular expression

  // Whether it takes the linear layer `layer`, dotted and as EasyDeL calls it, whose weight is `entry`; counted.
  bool takes(const Entry& entry, const std::string& layer);
  // The form in which products read the values of `entry`, which the entry then no longer holds, unless it is `shared`
  // with another layer. Null: the dense form, of the values that the entry holds now.
  std::shared_ptr<Weight> weight_of(Entry& entry, bool shared);

  // After the last layer: UserError where the patterns took none.
  void refuse_none() const;
  std::string told() const;  // "30 weights in nf4: 57.1 of 216.0 MB"

 private:
  Quantization wanted_;
  std::regex pattern_, linear_pattern_;
  std::string seen_;  // a layer that was not taken
  int64_t weights_ = 0, bytes_before_ = 0, bytes_ = 0;
};

}  // namespace easydel::nn
