// Generation on the plain cache: prompts are prefilled, then decoded together; when a sequence ends, the next request
// takes its place. Used by the command line, previews during training, and tests; serving has an engine of its own.
// search.h chooses the tokens of a request.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/generation/generation_config.h"
#include "easydel/generation/processors.h"
#include "easydel/generation/rank_state.h"
#include "easydel/models/model.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::generation {

using text::TokenId;

// Where max_new_tokens and max_length are not given.
constexpr int64_t default_new_tokens = 256;

enum class StopReason : uint8_t { end, stop_string, length, max_time, cancelled };
std::string_view name_of(StopReason reason);

struct Request {
  std::vector<TokenId> prompt;  // none: config.bos_token_id
  GenerationConfig config;
  std::vector<TokenId> negative_prompt = {};  // with guidance_scale; none: the prompt's last token
  AllowedTokens allowed = {};                 // what may follow, if not everything
  bool logps = false;                         // results have log-probabilities; not with beams
  bool kept = false;                          // and the tokens that each of theirs was drawn from
  // Of the model (models::Adapters), which reads the prompt with it; a blended model does not. Null: none.
  std::shared_ptr<const nn::LoadedAdapter> adapter = {};
};

// One result; a request has config.num_return_sequences of them.
struct Result {
  std::vector<TokenId> tokens;  // new ones; the end token is not among them
  std::optional<TokenId> end;   // the end token, if one was generated
  // What they add to the text of the prompt, special tokens skipped, cut before a stop string; empty without tokenizer.
  std::string text;
  StopReason reason = StopReason::end;
  int64_t prompt_tokens = 0;
  double prefill_seconds = 0, decode_seconds = 0;  // of the batch that it ran in
  float score = 0;                                 // of beams: sum of log-probabilities / length ^ length_penalty
  std::vector<int64_t> beam_indices;               // of beams: which of those running each new token continued
  // Only if requested: for each new token (including the end token) the row [vocabulary] from which it was chosen,
  // after and before processors. With beams: log-probabilities after, logits before.
  std::vector<std::vector<float>> scores, logits;
  // Only if requested: the log-probability of each new token (including the end token) at the temperature, over the
  // whole vocabulary by the model's own scores, and over what processors and warpers left. The first are the same bits
  // as those of nn::Head::score on the whole text, for families whose memory does not depend on roles.
  std::vector<float> logps, kept_logps;
  // Only if requested: for each new token (including the end token) the tokens that processors and warpers left, in
  // ascending order; empty: all of them.
  std::vector<std::vector<TokenId>> kept;
};

struct GeneratorOptions {
  int64_t batch = 16;             // sequences decoded together, including beams
  int64_t prefill_tokens = 2048;  // of prompts in one pass
  // Set by another thread or a signal handler: running requests end with the text so far ("cancelled") after the
  // current pass.
  const std::atomic<bool>* stop = nullptr;
  bool adapters = true;  // false: the model without its adapters
  // Another model of the same vocabulary, which reads the same tokens: what is searched are the logits
  // (1 - weight) * the model's + weight * its. Requests then have one result each, without beams.
  struct Blend {
    const models::Model* model = nullptr;  // null: none
    double weight = 0;
    bool adapters = true;  // false: without its adapters
  };
  Blend blend = {};
  // With ranks that hold parts of one model's weights and continue different prompts: every pass is made by all of
  // them.
  RankExchange exchange = {};
};

// Called after every token with the text that is now final (perhaps empty); returning false ends the sequence. With
// beams, which change until the end, it is called once per result with the whole text. `sequence` is the index of the
// result.
using OnText = std::function<bool(size_t sequence, TokenId token, std::string_view piece)>;

// Called when a result is complete, with its index; in the order in which they end.
using OnResult = std::function<void(size_t sequence, const Result& result)>;

class Generator {
 public:
  // The tokenizer may be null: results then have no text, and stop strings are refused. Both must outlive the
  // generator.
  Generator(const models::Model& model, std::shared_ptr<const text::Tokenizer> tokenizer,
            GeneratorOptions options = {});

  // In the order of the requests; the results of one request best first. A request's tokens do not depend on the other
  // requests. Throws UserError if a prompt is empty, contains an id outside the vocabulary, or is longer than the
  // model's positions or max_length, if a config's fields do not fit together, or if another rank cannot go on. Not
  // thread-safe.
  std::vector<Result> run(const std::vector<Request>& requests, const OnText& on_text = {},
                          const OnResult& on_result = {});

 private:
  std::vector<Result> run_own(const std::vector<Request>& requests, const OnText& on_text, const OnResult& on_result);
  RankState exchange(RankState own);
  void idle_pass() const;  // what this rank adds to a pass of the others

  const models::Model& model_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  GeneratorOptions options_;
  bool others_ended_ = false;
};

}  // namespace easydel::generation
