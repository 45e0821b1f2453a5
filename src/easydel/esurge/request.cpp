#include "easydel/esurge/request.h"

#include <algorithm>
#include <limits>

#include "easydel/esurge/request_document.h"

namespace easydel::esurge {
namespace {

// What does not fit into the type is outside every vocabulary, and stays so.
std::vector<TokenId> token_ids(const std::vector<int64_t>& numbers) {
  using Limits = std::numeric_limits<TokenId>;
  std::vector<TokenId> ids;
  for (const int64_t number : numbers)
    ids.push_back(TokenId(std::clamp<int64_t>(number, Limits::min(), Limits::max())));
  return ids;
}

std::optional<std::vector<int64_t>> whole_numbers(const Value& list) {
  std::vector<int64_t> numbers;
  for (const Value& item : list.items) {
    const std::optional<int64_t> number = item.as_int();
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

// Of text or a list of token ids.
Prompt prompt_of(const Value& given) {
  if (given.is_list()) return token_ids(*whole_numbers(given));
  return *given.as_string();
}

bool is_conversation(const Value& messages) {
  return messages.is_list() && !messages.items.empty() && std::ranges::all_of(messages.items, &Value::is_map);
}

}  // namespace

void RequestDocument::settle(config::Keys& keys) {
  const int prompts = int(!prompt.is_null()) + int(prompt_token_ids.has_value()) + int(!messages.is_null());
  const char* const one = "give one of prompt, prompt_token_ids and messages";
  if (prompts == 0) keys.refuse("prompt", "is missing", one);
  if (prompts > 1) keys.refuse("prompt", "a request has one prompt, but several are given", one);
  const auto check_prompt = [&](const char* key, const Value& given) {
    if (!given.is_null() && !given.as_string() && !(given.is_list() && whole_numbers(given)))
      keys.refuse(key, "is neither text nor a list of token ids", R"(give such as "Hello" or [1, 15043])");
  };
  if (pooled && continuation_token_ids)
    keys.refuse("pooled", "a request gives a vector or scores a continuation, not both", "give one of them");
  check_prompt("prompt", prompt);
  check_prompt("negative_prompt", negative_prompt);
  if (!messages.is_null() && !is_conversation(messages))
    keys.refuse("messages", "is not a list of messages",
                R"(give at least one, such as [{"role": "user", "content": "Hello"}])");
  if (!tools.is_null() && !tools.is_list()) keys.refuse("tools", "is not a list of tools");
  if (!chat_template_kwargs.is_null() && !chat_template_kwargs.is_map())
    keys.refuse("chat_template_kwargs", "is not a map");
  for (const char* key : {"tools", "chat_template_kwargs"})
    if (messages.is_null() && keys.given(key))
      keys.refuse(key, "is only for a conversation", "give messages instead of another prompt");
  const auto move_to_sampling = [&](const char* key, auto& own, auto& its) {
    if (!own) return;
    if (keys.given(str("sampling.", key))) keys.refuse(key, "is also in sampling", "give it once");
    its = *own;
  };
  move_to_sampling("priority", priority, sampling.priority);
  move_to_sampling("cache_salt", cache_salt, sampling.cache_salt);
  move_to_sampling("timeout_seconds", timeout_seconds, sampling.timeout_seconds);
  move_to_sampling("adapter", adapter, sampling.adapter);
}

Request read_request(const Value& document) {
  RequestDocument in;
  throw_problems(config::read(document, in, "request"));
  Request out;
  if (!in.messages.is_null())
    out.prompt = Conversation{std::move(in.messages), std::move(in.tools), std::move(in.chat_template_kwargs)};
  else if (in.prompt_token_ids)
    out.prompt = token_ids(*in.prompt_token_ids);
  else
    out.prompt = prompt_of(in.prompt);
  if (!in.negative_prompt.is_null()) out.negative_prompt = prompt_of(in.negative_prompt);
  if (in.pooled) out.pooled.emplace();
  if (in.continuation_token_ids) out.continuation = token_ids(*in.continuation_token_ids);
  out.sampling = std::move(in.sampling);
  out.request_id = in.request_id.value_or("");
  return out;
}

}  // namespace easydel::esurge
