// Pools a model's hidden states into one vector per text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "easydel/models/model.h"

namespace easydel::models {

struct EmbeddingSpec {
  nn::Pooling pooling = nn::Pooling::mean;
  bool normalized = false;   // to length 1
  bool pools_prompt = true;  // whether the tokens of a prompt before the text are pooled, too
};

// As the files of sentence-transformers in the model's folder say (modules.json and its Pooling module). Without those
// files: the mean of the tokens, or the last token of a causal model. UserError: a module or pooling mode that is not
// built.
EmbeddingSpec read_embedding(const Model& model);

// Writes what read_embedding, the server and sentence-transformers read beside a bare model's files: the modules, how
// they pool, the longest text in tokens (0: not said) and, in config.json, to which sizes a vector may be cut (empty:
// not said). `size`: of a vector.
void write_embedding(const EmbeddingSpec& spec, int64_t size, int64_t max_tokens, const std::vector<int64_t>& prefixes,
                     const std::filesystem::path& folder);

// Of Outputs::hidden, found by the forward of a token. Collective.
int64_t hidden_size(const Model& model);

// hidden [tokens, size], returned by model.forward for `tokens` in `pass` -> fp32 [sequences, size], with gradients.
Tensor embeddings(const EmbeddingSpec& spec, const Tensor& hidden, const Tensor& tokens, const nn::Pass& pass);

// The same without the first prompt_tokens[i] tokens of sequence i. Of a sequence that has no others, the mean and the
// last token are zeros, and the first token is that of the prompt, as in sentence-transformers.
Tensor embeddings_after_prompts(const EmbeddingSpec& spec, const Tensor& hidden, const Tensor& tokens,
                                const nn::Pass& pass, const std::vector<int64_t>& prompt_tokens);

}  // namespace easydel::models
