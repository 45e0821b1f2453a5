// Which layers of a model a regular expression means: `quantization.model.pattern`, `trainer.quantization_pattern`.
#pragma once

#include <string>
#include <vector>

#include "easydel/base/regular_expression.h"
#include "easydel/nn/parameter.h"

namespace easydel::nn {

// UserError, at `where`, if it is not a regular expression.
RegularExpression pattern_expression(const std::string& pattern, const std::string& where);

// The pattern must be found in a linear layer's path ("model.layers.0.self_attn.q_proj"). An empty one takes every
// linear layer but the output's. Embeddings and stacks of experts are taken by a pattern that names them: a word of it,
// outside of (?!...), is in the embedding's own name ("embed_tokens"), or has "expert" in it.
class LayerPattern {
 public:
  LayerPattern(const std::string& pattern, const std::string& where);

  // Whether it takes the linear layer `layer`. `shared`: its weight is an embedding that a tied head reads.
  bool takes(const Entry& entry, const std::string& layer, bool shared) const;
  // Whether it takes an embedding, or a stack of experts.
  bool names(const Entry& entry) const;
  bool found_in(const std::string& layer) const { return pattern_.found_in(layer); }

 private:
  bool empty_;
  RegularExpression pattern_;
  std::vector<std::string> words_;
};

}  // namespace easydel::nn
