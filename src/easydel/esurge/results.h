// What the engine returns for a request, by upstream's names. Plain values without torch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/esurge/finish_reason.h"
#include "easydel/esurge/token_logprobs.h"
#include "easydel/generation/score_request.h"

namespace easydel::esurge {

// One answer. `text`, `token_ids` and `logprobs` hold the answer so far; with output_kind `delta` only what is new
// since the last result.
struct CompletionOutput {
  int64_t index = 0;  // among the request's answers, the best one first once they are finished
  std::string text = {};
  // With the end token, if one came.
  std::vector<TokenId> token_ids = {};
  // Sum over all tokens of the answer; of a beam search, whose answers have a score, only with logprobs.
  double cumulative_logprob = 0;
  std::optional<float> score = {};           // of a beam search, as generation::Beam has it
  std::vector<TokenLogprobs> logprobs = {};  // of each token, if they were asked for
  std::string accumulated_text = {};         // all that came so far, whatever output_kind is, before it is parsed
  std::string delta_text = {};               // text that is new since the last result
  int64_t num_generated_tokens = 0;
  std::optional<FinishReason> finish_reason = {};                    // nullopt: it goes on
  std::variant<std::monostate, std::string, TokenId> stop_reason{};  // the stop string or the token that ended it
  // Of a conversation's answer: what the parsers took out of it, whose content is `text`. tool_calls is a list of whole
  // calls, or null. With output_kind `delta` they are what is new, and nothing is withdrawn later: text that a later
  // marker may turn into something else is held back.
  std::string reasoning_content = {};
  Value tool_calls = {};
};

struct RequestOutput {
  std::string request_id = {};
  std::string prompt = {};                     // the text, rendered from a conversation; decoded if it was truncated
  std::vector<TokenId> prompt_token_ids = {};  // as computed: truncated, with special tokens
  // Of each prompt token after the first, if they were asked for: in the last result, with output_kind `delta` in the
  // first one that has tokens.
  std::vector<TokenLogprobs> prompt_logprobs = {};
  std::vector<CompletionOutput> outputs = {};
  std::optional<generation::TokenScores> scores = {};  // of the request's continuation
  std::optional<std::vector<float>> vector = {};       // of a pooled prompt
  bool finished = false;
  std::string error = {};  // of a request that failed: the whole text of the error
  bool timed_out = false;  // it was aborted by timeout_seconds
  int64_t update_seq = 0;  // number of this result among the request's, from 1
  // Of all answers together.
  int64_t num_generated_tokens = 0;
  std::string accumulated_text = {}, delta_text = {};  // of the first answer

  // Seconds since the request arrived.
  std::optional<double> queue_time = {};  // until the engine began with it
  std::optional<double> first_token_time = {};
  double processing_time = 0;        // until this result
  double time_spent_generating = 0;  // of that, since the first token
  double tokens_per_second = 0;      // num_generated_tokens over time_spent_generating; 0 before the second token

  int64_t cached_tokens = 0;     // of the prompt, found in the prefix index
  int64_t truncated_tokens = 0;  // of the prompt, cut off by truncate_prompt_tokens or the context's rules
  int64_t capped_tokens = 0;     // by which the context's rules lowered max_tokens
  int64_t preemptions = 0;       // of all its sequences
  int64_t accepted_drafts = 0, rejected_drafts = 0;  // tokens that were speculated for it
  uint64_t seed = 0;                                 // that was used
  // Hash of weights, adapter, formats, layout over ranks and order class. Equal fingerprints, requests and seeds give
  // equal bytes.
  std::string fingerprint = {};
};

}  // namespace easydel::esurge
