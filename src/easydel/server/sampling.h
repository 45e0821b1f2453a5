// What a request's fields ask of the engine, completed from the model's generation_config.json and OpenAI's defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "easydel/esurge/sampling_params.h"
#include "easydel/server/request_fields.h"
#include "easydel/server/served_model.h"

namespace easydel::server {

// `max_tokens`: the limit that applies; null: what the context leaves. Log-probabilities and the kind of output are the
// caller's business.
esurge::SamplingParams sampling_of(const GenerationFields& fields, std::optional<int64_t> max_tokens,
                                   const ServedModel& model);

// Number of equal answers that are wanted of a request at temperature 0, which is changed to ask for one; 1: the
// request is as it was.
int64_t take_equal_answers(esurge::SamplingParams& sampling);

// max_new_tokens of generation_config.json, if it has one.
std::optional<int64_t> default_max_tokens(const ServedModel& model);

// A prompt that fits into the context together with its answer.
struct FittedRequest {
  std::vector<text::TokenId> prompt = {};
  int64_t max_tokens = 0;
  int64_t truncated_tokens = 0;  // of the prompt, that were cut off
};
// By truncate_prompt_tokens and the rules of the section `esurge`. Refusal with the code context_length_exceeded: they
// do not fit.
FittedRequest fit_request(std::vector<text::TokenId> prompt, const esurge::SamplingParams& sampling,
                          const ServedModel& model);

}  // namespace easydel::server
