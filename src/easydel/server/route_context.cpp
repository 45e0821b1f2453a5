#include "easydel/server/route_context.h"

#include <algorithm>
#include <chrono>

#include "easydel/base/error.h"

namespace easydel::server {

int64_t seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

RequestRules rules_of(const ServeConfig& config) {
  RequestRules out{.strict = config.strict_requests};
  if (!config.enable_function_calling)
    for (const char* name : {"tools", "functions"})
      out.refused.push_back(
          {name, "this server does not take tools", "leave them out, or set enable_function_calling: true"});
  if (!config.allow_request_templates)
    out.refused.push_back({"chat_template", "this server takes no templates from requests",
                           "leave it out, or set allow_request_templates: true on the server"});
  return out;
}

std::shared_ptr<const ServedModel> model_for(const RouteContext& context, const Api& api, const Call& call,
                                             const std::optional<std::string>& name) {
  if (api.state() == ServerState::draining)
    throw Refusal({.status = 503,
                   .message = "The server is shutting down.",
                   .code = "draining",
                   .retry_after_seconds = int64_t(context.config.shutdown_timeout_seconds)});
  if (api.state() == ServerState::paused)
    throw Refusal({.status = 503, .message = "The server is paused.", .code = "paused", .retry_after_seconds = 10});
  std::shared_ptr<const ServedModel> model = context.models.find(name);
  const auto& allowed = call.admission().permissions.allowed_models;
  if (allowed && std::ranges::find(*allowed, model->id) == allowed->end())
    throw Refusal({.status = 403,
                   .message = str("The key does not allow the model '", model->id, "'."),
                   .code = "model_not_allowed",
                   .param = "model"});
  return model;
}

void check_permissions(const Call& call, const Asked& asked) {
  const KeyPermissions& may = call.admission().permissions;
  const auto forbid = [](std::string message, const char* param) {
    throw Refusal({.status = 403, .message = std::move(message), .code = "permission_denied", .param = param});
  };
  if (asked.stream && !may.enable_streaming) forbid("The key does not allow streams.", "stream");
  if (asked.tools && !may.enable_function_calling) forbid("The key does not allow tools.", "tools");
  if (may.max_tokens_per_request && asked.tokens > *may.max_tokens_per_request)
    forbid(str("The key allows at most ", *may.max_tokens_per_request, " generated tokens for a request, but ",
               asked.tokens, " are asked for."),
           "max_tokens");
}

void separate_prefixes(const RouteContext& context, const Call& call, esurge::SamplingParams& sampling) {
  if (context.config.shared_prefix_cache || call.admission().key_id.empty()) return;
  sampling.cache_salt = call.admission().key_id + "\n" + sampling.cache_salt.value_or("");
}

std::vector<Header> truncation_headers(int64_t truncated_tokens) {
  if (truncated_tokens == 0) return {};
  return {{"X-EasyDeL-Truncated", std::to_string(truncated_tokens)}};
}

}  // namespace easydel::server
