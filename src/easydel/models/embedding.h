// Pools a model's hidden states into one vector per text.
#pragma once

#include "easydel/models/model.h"

namespace easydel::models {

struct EmbeddingSpec {
  nn::Pooling pooling = nn::Pooling::mean;
  bool normalized = false;  // to length 1
};

// As the files of sentence-transformers in the model's folder say (modules.json and its Pooling module). Without those
// files: the mean of the tokens, or the last token of a causal model. UserError: a module or pooling mode that is not
// built.
EmbeddingSpec read_embedding(const Model& model);

// hidden [tokens, size], returned by model.forward for `tokens` in `pass` -> fp32 [sequences, size], with gradients.
Tensor embeddings(const EmbeddingSpec& spec, const Tensor& hidden, const Tensor& tokens, const nn::Pass& pass);

}  // namespace easydel::models
