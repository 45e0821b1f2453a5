// What is sent to the engine, by upstream's names. Plain values without torch.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/esurge/sampling_params.h"
#include "easydel/text/output/answer_language.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::esurge {

using text::TokenId;

// The chat template renders it; the answer is parsed for reasoning and tool calls.
struct Conversation {
  Value messages = {};              // a list, as chat templates take them
  Value tools = {};                 // a list, or null
  Value chat_template_kwargs = {};  // a map of other variables of the template, or null
};

// Text, token ids, or a conversation.
using Prompt = std::variant<std::string, std::vector<TokenId>, Conversation>;

// The reasoning at the beginning of an answer ends after this many tokens, unless it has ended before.
struct ReasoningBudget {
  int64_t tokens = 0;
  text::ReasoningEnd end = {};
};

// A text that becomes one vector: the scores of its classes, if the model is a classifier, or else an embedding.
struct PooledPrompt {
  std::vector<uint8_t> type_ids = {};  // which of a pair of texts a token belongs to; empty: all the first
  int64_t prompt_tokens = 0;  // of the first ones, which an embedding is not pooled from (include_prompt: false)
};

struct Request {
  Prompt prompt = {};
  // If it is given, nothing is generated: RequestOutput::scores are the log-probabilities of these tokens after the
  // prompt, by the rules of generation/scorer.h. Of `sampling` only priority, cache_salt, timeout_seconds and adapter
  // may be set.
  std::optional<std::vector<TokenId>> continuation = {};
  // If it is given, nothing is generated: RequestOutput::vector is that of the prompt. Of `sampling` the same may be
  // set.
  std::optional<PooledPrompt> pooled = {};
  SamplingParams sampling = {};
  // With guidance_scale (extra_args): what answers are led away from. Nothing: the prompt's last token.
  std::optional<Prompt> negative_prompt = {};
  std::string request_id = {};  // the caller's own name for it; results repeat it
  // How tokens are chosen and what ends an answer, complete, instead of these fields of `sampling` and the model's
  // defaults. Its number of results and its limits of length and time have no effect; those of `sampling` have.
  std::optional<generation::GenerationConfig> generation = {};
  // A constraint on the answer that a document cannot say, instead of sampling.guided_decoding.
  std::optional<text::constrain::Language> constraint = {};
  std::optional<ReasoningBudget> reasoning_budget = {};
  // Of a prompt that is not a conversation: where its answer is reasoning. See ignore_stop_strings_in_reasoning.
  std::optional<text::ReasoningWatch> reasoning = {};
};

// A request as a document: {"prompt": text or ids | "prompt_token_ids": ids | "messages": list, "tools"?: list,
// "chat_template_kwargs"?: map, "continuation_token_ids"?: ids, "pooled"?: bool, "negative_prompt"?: text or ids,
// "sampling"?: map, "request_id"?: text}. The sampling
// parameters priority, cache_salt, timeout_seconds and adapter may also be given beside "sampling". UserError:
// everything that is wrong.
Request read_request(const Value& document);

}  // namespace easydel::esurge
