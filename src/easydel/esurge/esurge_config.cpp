#include "easydel/esurge/esurge_config.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/mesh/mesh.h"
#include "easydel/text/output/output_parser.h"
#include "easydel/text/remote/line_channel.h"

namespace easydel::esurge {

void EsurgeConfig::settle(config::Keys& keys) {
  if (hbm_utilization == 0)
    keys.refuse("hbm_utilization", "0 leaves no memory for the KV cache",
                "expected a number above 0 and at most 1 (default 0.8)");
  if (max_model_len && max_num_batched_tokens && *max_num_batched_tokens > *max_model_len)
    keys.refuse("max_num_batched_tokens", str("max_num_batched_tokens (", *max_num_batched_tokens,
                                              ") cannot exceed max_model_len (", *max_model_len, ")"));
  if (max_model_len && reserve_tokens && *reserve_tokens >= *max_model_len)
    keys.refuse("reserve_tokens",
                str(*reserve_tokens, " tokens of a context of ", *max_model_len, " leave none for a prompt"),
                "lower esurge.reserve_tokens or raise esurge.max_model_len");
  if (prefix_cache_path && prefix_cache_path->empty())
    keys.refuse("prefix_cache_path", "is empty", "give a folder, or null");
  if (prefix_cache_path && !enable_prefix_caching)
    keys.refuse("prefix_cache_path", "there is no prefix cache with enable_prefix_caching: false", "leave one out");
  if (speculative_model && num_speculative_tokens == 0)
    keys.refuse("speculative_model", "drafts nothing with num_speculative_tokens: 0",
                "set num_speculative_tokens, such as 4, or leave it out");
  if (tokenizer_endpoint.has_value() != detokenizer_endpoint.has_value())
    keys.refuse(tokenizer_endpoint ? "detokenizer_endpoint" : "tokenizer_endpoint",
                str("is missing: ", tokenizer_endpoint ? "tokenizer_endpoint" : "detokenizer_endpoint", " is given"),
                "give both, or neither; both may be the same address");
  const auto check_address = [&](const char* key, const std::optional<std::string>& address) {
    if (address) keys.problems().collect(keys.path_of(key), [&] { text::parse_line_address(*address, key); });
  };
  check_address("tokenizer_endpoint", tokenizer_endpoint);
  check_address("detokenizer_endpoint", detokenizer_endpoint);
  const auto check_format = [&](const char* key, const std::optional<std::string>& name,
                                const text::OutputFormat& format, const char* what,
                                const std::vector<std::string>& known) {
    if (!name) return;
    try {
      text::OutputParser parser(format);
    } catch (const UserError&) {
      keys.refuse(key, str("'", *name, "' is not a format of ", what), did_you_mean(*name, known));
    }
  };
  check_format("tool_parser", tool_parser, {tool_parser.value_or(""), ""}, "tool calls", text::tool_parser_names());
  check_format("reasoning_parser", reasoning_parser, {"", reasoning_parser.value_or("")}, "reasoning",
               text::reasoning_parser_names());
  const mesh::Axes& axes = mesh::default_axes();
  if (std::ranges::find(axes, data_parallelism_axis) == axes.end())
    keys.refuse("data_parallelism_axis", str("the mesh has no axis '", data_parallelism_axis, "'"),
                did_you_mean(data_parallelism_axis, axes));
  if (prompt_lookup_min > prompt_lookup_max)
    keys.refuse("prompt_lookup_min", str("prompt_lookup_min (", prompt_lookup_min, ") must be <= prompt_lookup_max (",
                                         prompt_lookup_max, ")."));
  if (extra_eos_token_ids)
    for (const int64_t id : *extra_eos_token_ids)
      if (id < 0) keys.refuse("extra_eos_token_ids", str(id, " is not a token id"), "token ids are 0 or more");
  for (const std::string& text : extra_stops)
    if (text.empty()) keys.refuse("extra_stops", "an empty stop string would end every answer", "take it out");
}

}  // namespace easydel::esurge
