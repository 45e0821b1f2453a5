// What is sent to the engine and what comes back, by upstream's names. No torch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/esurge/sampling_params.h"
#include "easydel/esurge/scheduler.h"

namespace easydel::esurge {

struct Conversation {
  Value messages;  // a list, as chat templates take them
  Value tools;     // a list, or null
};

struct Request {
  // Text, token ids, or a conversation that the model's chat template renders.
  std::variant<std::string, std::vector<TokenId>, Conversation> prompt;
  SamplingParams sampling = {};
  std::string request_id = {};  // the caller's own name for it
};

// The most likely tokens of one row and the chosen one, most likely first; equal ones in the order of their ids.
struct TokenLogprobs {
  std::vector<TokenId> token_ids;
  std::vector<float> logprobs;
};

struct CompletionOutput {
  int64_t index = 0;
  std::string text;
  std::vector<TokenId> token_ids;
  double cumulative_logprob = 0;
  std::vector<TokenLogprobs> logprobs;  // of each token, if they were asked for
  std::optional<FinishReason> finish_reason = {};
  // The stop string or token that ended it, and the reasoning and tool calls that a chat's answer has.
  std::variant<std::monostate, std::string, TokenId> stop_reason = {};
  std::string reasoning_content = {};
  Value tool_calls = {};
};

struct RequestOutput {
  std::string request_id, prompt;
  std::vector<TokenId> prompt_token_ids;
  std::vector<TokenLogprobs> prompt_logprobs;  // of each prompt token after the first, if they were asked for
  std::vector<CompletionOutput> outputs;
  bool finished = false;
  std::string accumulated_text, delta_text;  // of the first output
  int64_t num_generated_tokens = 0, update_seq = 0;
  double tokens_per_second = 0, time_spent_generating = 0, processing_time = 0;  // seconds
  std::optional<double> first_token_time = {};                                   // seconds after the request arrived
  // Of the prompt: tokens that were found in the index, and that the context's rules cut off. Of the answer: tokens
  // that they took away from max_tokens.
  int64_t cached_tokens = 0, truncated_tokens = 0, capped_tokens = 0;
  int64_t preemptions = 0;
  uint64_t seed = 0;  // that was used
  // Weights, adapter, formats, layout and order of additions: equal fingerprints, requests and seeds give equal bytes.
  std::string fingerprint;
};

}  // namespace easydel::esurge
