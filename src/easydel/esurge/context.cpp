#include "easydel/esurge/context.h"

#include <algorithm>

#include "easydel/base/error.h"

namespace easydel::esurge {
namespace {

void truncate(std::vector<int32_t>& tokens, int64_t size, TruncateMode mode) {
  const int64_t cut = int64_t(tokens.size()) - size;
  if (cut <= 0) return;
  const int64_t begin = mode == TruncateMode::left ? 0 : mode == TruncateMode::right ? size : (size + 1) / 2;
  tokens.erase(tokens.begin() + begin, tokens.begin() + begin + cut);
}

}  // namespace

FittedPrompt fit_context(std::vector<int32_t> prompt, std::optional<int64_t> max_tokens, int64_t max_model_len,
                         const EsurgeConfig& config) {
  const auto size = int64_t(prompt.size());
  const int64_t wanted = max_tokens.value_or(1), reserve = config.reserve_tokens.value_or(0);
  if (reserve >= max_model_len)
    refuse("esurge.reserve_tokens", str(reserve, " tokens of a context of ", max_model_len, " leave none for a prompt"),
           "lower esurge.reserve_tokens or raise esurge.max_model_len");
  const int64_t prompt_limit = max_model_len - std::max<int64_t>(reserve, 1);
  const bool answer_fits = wanted < max_model_len;
  const auto finish = [&](int64_t kept) {
    FittedPrompt out{std::move(prompt), max_model_len - kept, size - kept, 0};
    truncate(out.tokens, kept, config.truncate_mode);
    if (max_tokens) out.max_tokens = std::min(wanted, out.max_tokens), out.capped_tokens = wanted - out.max_tokens;
    return out;
  };
  if (size <= prompt_limit && size + wanted <= max_model_len) return finish(size);
  if (!config.strict_context && size <= prompt_limit) {
    const bool can_truncate = config.auto_truncate_prompt && answer_fits;
    if (config.auto_cap_new_tokens && (config.prefer_preserve_prompt || !can_truncate)) return finish(size);
    if (can_truncate) return finish(max_model_len - wanted);
  } else if (!config.strict_context && config.auto_truncate_prompt) {
    // The prompt is truncated in any case. It leaves what is reserved; without that the answer that was asked for, up
    // to a quarter of the context.
    int64_t answer = std::min(max_tokens.value_or(max_model_len), std::max<int64_t>(max_model_len / 4, 1));
    if (config.reserve_tokens) answer = std::max<int64_t>(reserve, 1);
    if (answer_fits && !(config.prefer_preserve_prompt && config.auto_cap_new_tokens))
      answer = std::max(answer, wanted);
    if (wanted <= answer || config.auto_cap_new_tokens) return finish(std::min(prompt_limit, max_model_len - answer));
  }
  refuse("prompt",
         str("a prompt of ", size, " tokens and ", max_tokens ? str("an answer of up to ", wanted) : "an answer",
             " do not fit into a context of ", max_model_len,
             reserve > 0 ? str(", of which ", reserve, " are reserved for the answer") : ""),
         config.strict_context
             ? "shorten the prompt, lower max_tokens, or set esurge.strict_context: false to truncate and to cap"
             : "shorten the prompt, lower max_tokens, or allow esurge.auto_truncate_prompt and "
               "esurge.auto_cap_new_tokens");
}

int64_t context_length(const EsurgeConfig& config, std::optional<int64_t> model_maximum) {
  const int64_t length = config.max_model_len.value_or(std::min<int64_t>(8192, model_maximum.value_or(8192)));
  if (model_maximum && length > *model_maximum)
    refuse("esurge.max_model_len", str(length, " is more than the ", *model_maximum, " positions of the model"),
           "lower it, or give null");
  if (config.max_num_batched_tokens && *config.max_num_batched_tokens > length)
    refuse("esurge.max_num_batched_tokens", str("max_num_batched_tokens (", *config.max_num_batched_tokens,
                                                ") cannot exceed max_model_len (", length, ")"));
  return length;
}

}  // namespace easydel::esurge
