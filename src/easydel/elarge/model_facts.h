// What a model is, for people and for documents of results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "easydel/base/document.h"
#include "easydel/models/model.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::elarge {

struct ModelFacts {
  const models::Model& model;
  const text::Tokenizer* tokenizer = nullptr;     // null: it has none
  int64_t max_length = 0;                         // tokens that are read of a request
  std::optional<text::TokenId> prefix = {};       // what an empty context is
  std::optional<std::string> chat_template = {};  // instead of the tokenizer's
};

// `digests`: also that of the weights, which reads all of them.
Value model_facts(const ModelFacts& facts, bool digests);

}  // namespace easydel::elarge
