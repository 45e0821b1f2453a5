// A model that turns whole texts into numbers, as routes use it: embeddings or scores of classes. No torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "easydel/server/embedding_json.h"
#include "easydel/server/pair_activation.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::server {

struct EncodedText {
  std::vector<text::TokenId> ids = {};
  std::vector<uint8_t> type_ids = {};  // which of a pair a token belongs to; empty: all the first
  int64_t prompt_tokens = 0;           // of the first ones, that an embedding is not pooled from
};

class ServedEncoder {
 public:
  virtual ~ServedEncoder() = default;
  // fp32 [texts][numbers]; a text's numbers do not depend on the others. One call at a time, on any thread.
  virtual std::vector<Vector> encode(std::span<const EncodedText> texts) = 0;
  // Loads the weights of a folder, which are of a model of the same shape that pools alike. What is returned puts them
  // in the place of the present ones, between two calls of encode(), and returns their fingerprint. UserError, of both:
  // the present ones stay.
  virtual std::function<std::string()> load_weights(const std::filesystem::path& folder) = 0;

  bool classifies = false;  // the numbers are scores of classes; otherwise an embedding
  std::vector<std::string> labels = {};
  ClassActivation class_activation = ClassActivation::softmax;       // of /v1/classify
  PairActivation pair_activation = find_pair_activation("Sigmoid");  // of the only score of a pair
  std::string prompt = {};                                           // stands before every text that is embedded
  bool pools_prompt = true;                                          // whether the prompt's tokens count in the pooling
  int64_t vocabulary = 0;
  // To how many numbers an embedding may be cut; null: to none, empty: to any.
  std::optional<std::vector<int64_t>> dimensions = {};
};

}  // namespace easydel::server
