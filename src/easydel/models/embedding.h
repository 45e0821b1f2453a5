// One vector for each text: how the hidden states of a model become it.
#pragma once

#include "easydel/models/model.h"

namespace easydel::models {

struct EmbeddingSpec {
  nn::Pooling pooling = nn::Pooling::mean;
  bool normalized = false;  // to length 1
};

// As the model's folder says it in the files of sentence-transformers (modules.json and its Pooling module); where
// there are none, the mean of the tokens, and of a causal model its last. UserError: a module or a way of pooling that
// is not built, by its name.
EmbeddingSpec read_embedding(const Model& model);

// hidden [tokens, size], what model.forward gave for `tokens` in `pass` -> fp32 [sequences, size], with gradients.
Tensor embeddings(const EmbeddingSpec& spec, const Tensor& hidden, const Tensor& tokens, const nn::Pass& pass);

}  // namespace easydel::models
