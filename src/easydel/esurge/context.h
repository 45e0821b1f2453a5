// Whether a prompt and its answer fit into the context, and what is cut off or capped if they do not.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "easydel/esurge/esurge_config.h"

namespace easydel::esurge {

struct FittedPrompt {
  std::vector<int32_t> tokens;
  int64_t max_tokens = 0;        // of the answer, at least 1
  int64_t truncated_tokens = 0;  // of the prompt, that were cut off
  int64_t capped_tokens = 0;     // by which the answer that was asked for is shorter
};

// Fits a prompt and an answer of `max_tokens` (nullopt: what the context leaves) into `max_model_len` tokens, by the
// rules of the section `esurge`: a prompt may take all but reserve_tokens, and with prefer_preserve_prompt the answer
// is capped before the prompt is truncated. UserError: they do not fit, and the rules do not allow to shorten them.
FittedPrompt fit_context(std::vector<int32_t> prompt, std::optional<int64_t> max_tokens, int64_t max_model_len,
                         const EsurgeConfig& config);

// The context of an engine: max_model_len of the section, else 8192 or the model's maximum, the lesser. UserError: the
// section asks for more than the model has, or for steps that are longer.
int64_t context_length(const EsurgeConfig& config, std::optional<int64_t> model_maximum);

}  // namespace easydel::esurge
