// Generation on the plain cache: prompts are prefilled, then decoded together; when one ends, the next takes its
// place. For the command line, previews while training, and tests; serving has an engine of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/generation/sampling_config.h"
#include "easydel/models/model.h"
#include "easydel/text/tokenizer.h"

namespace easydel::generation {

using text::TokenId;

enum class StopReason : uint8_t { end, stop_string, length, cancelled };
std::string_view name_of(StopReason reason);

struct Request {
  std::vector<TokenId> prompt;  // at least one token
  SamplingConfig sampling;
};

struct Result {
  std::vector<TokenId> tokens;  // new ones; the end token is not among them
  std::string text;             // their text, special tokens skipped, cut before a stop string; empty without tokenizer
  StopReason reason = StopReason::end;
  int64_t prompt_tokens = 0;
  double prefill_seconds = 0, decode_seconds = 0;  // of the batch that it ran in
};

struct GeneratorOptions {
  int64_t batch = 16;           // sequences decoded together
  int64_t prefill_tokens = 2048;  // of prompts in one pass
};

// Called after every token with the piece of text that is now certain (perhaps nothing); false ends this request.
using OnText = std::function<bool(size_t request, TokenId token, std::string_view piece)>;

class Generator {
 public:
  // The tokenizer may be null: then there is no text, and stop strings are refused. Both must outlive the generator.
  Generator(const models::Model& model, std::shared_ptr<const text::Tokenizer> tokenizer, GeneratorOptions options = {});

  // In the order of the requests. A request's tokens do not depend on the others. UserError where a prompt is empty,
  // holds an id beyond the vocabulary, or is longer than the model's positions. Not thread-safe.
  std::vector<Result> run(const std::vector<Request>& requests, const OnText& on_text = {});

 private:
  const models::Model& model_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  GeneratorOptions options_;
};

}  // namespace easydel::generation
