#include "easydel/server/routes.h"

#include <algorithm>
#include <optional>

#include "easydel/server/request_parser.h"

namespace easydel::server {
namespace {

constexpr std::array all_routes = {
    Route{"POST", "/v1/chat/completions", Scope::generate, true, "Answer a conversation."},
    Route{"POST", "/v1/completions", Scope::generate, true, "Continue a text."},
    Route{"POST", "/v1/responses", Scope::responses, true, "Create a response."},
    Route{"GET", "/v1/responses/{id}", Scope::responses, false, "A stored response."},
    Route{"DELETE", "/v1/responses/{id}", Scope::responses, false, "Delete a stored response."},
    Route{"POST", "/v1/responses/{id}/cancel", Scope::responses, false, "Cancel a response."},
    Route{"GET", "/v1/responses/{id}/input_items", Scope::responses, false, "What a response was made from."},
    Route{"POST", "/v1/messages", Scope::generate, true, "Answer a conversation, in Anthropic's form."},
    Route{"POST", "/v1/messages/count_tokens", Scope::tokenize, true, "Count the tokens of a conversation."},
    Route{"POST", "/v1/embeddings", Scope::embed, true, "Embeddings of texts."},
    Route{"POST", "/v1/rerank", Scope::embed, true, "Order documents by their relevance."},
    Route{"POST", "/v1/score", Scope::embed, true, "Scores of pairs of texts."},
    Route{"POST", "/v1/classify", Scope::embed, true, "Classes of texts."},
    Route{"GET", "/v1/models", Scope::models, false, "The models that are served."},
    Route{"GET", "/v1/models/{id}", Scope::models, false, "One model."},
    Route{"POST", "/tokenize", Scope::tokenize, true, "Token ids of a text or a conversation."},
    Route{"POST", "/detokenize", Scope::tokenize, true, "The text of token ids."},
    Route{"POST", "/apply-template", Scope::tokenize, true, "The text of a conversation."},
    Route{"GET", "/tokenizer_info", Scope::tokenize, false, "What a client needs to know of the tokenizer."},
    Route{"GET", "/health", Scope::none, false, "200 if requests are served now."},
    Route{"GET", "/liveness", Scope::none, false, "200 if the process runs."},
    Route{"GET", "/readiness", Scope::none, false, "200 if requests are served now."},
    Route{"GET", "/version", Scope::models, false, "The version of the program."},
    Route{"GET", "/props", Scope::models, false, "Limits, defaults and what the model's template can do."},
    Route{"GET", "/metrics", Scope::metrics, false, "Counters, for Prometheus."},
    Route{"GET", "/openapi.json", Scope::models, false, "This interface as an OpenAPI document."},
    Route{"GET", "/docs", Scope::none, false, "A page with a table of the routes."},
    Route{"GET", "/", Scope::none, false, "The chat page."},
    Route{"GET", "/v1/tools", Scope::models, false, "The formats of tool calls."},
    Route{"POST", "/v1/tools/execute", Scope::generate, true, "Not served: this server runs no tools."},
    Route{"GET", "/v1/adapters", Scope::adapters, false, "The adapters that are loaded."},
    Route{"POST", "/v1/adapters", Scope::adapters, true, "Load an adapter."},
    Route{"DELETE", "/v1/adapters/{name}", Scope::adapters, false, "Unload an adapter."},
    Route{"POST", "/v1/load_lora_adapter", Scope::adapters, true, "Load an adapter."},
    Route{"POST", "/v1/unload_lora_adapter", Scope::adapters, true, "Unload an adapter."},
    Route{"POST", "/v1/admin/keys", Scope::admin, true, "Create a key."},
    Route{"GET", "/v1/admin/keys", Scope::admin, false, "All keys."},
    Route{"GET", "/v1/admin/keys/stats", Scope::admin, false, "Counts over all keys."},
    Route{"GET", "/v1/admin/keys/{id}", Scope::admin, false, "One key."},
    Route{"PATCH", "/v1/admin/keys/{id}", Scope::admin, true, "Change a key."},
    Route{"DELETE", "/v1/admin/keys/{id}", Scope::admin, false, "Delete a key."},
    Route{"DELETE", "/v1/admin/keys/{id}/revoke", Scope::admin, false, "End a key for good."},
    Route{"POST", "/v1/admin/keys/{id}/suspend", Scope::admin, false, "Refuse a key for a while."},
    Route{"POST", "/v1/admin/keys/{id}/reactivate", Scope::admin, false, "Accept a suspended key again."},
    Route{"POST", "/v1/admin/keys/{id}/rotate", Scope::admin, false, "Replace the secret of a key."},
    Route{"GET", "/v1/admin/audit-logs", Scope::admin, false, "What was done with keys."},
    Route{"POST", "/v1/admin/pause", Scope::admin, false, "Stop computing."},
    Route{"POST", "/v1/admin/resume", Scope::admin, false, "Compute again."},
    Route{"POST", "/v1/admin/drain", Scope::admin, false, "Finish what runs, accept nothing more."},
    Route{"POST", "/v1/admin/cache/save", Scope::admin, false, "Save the prefix cache."},
    Route{"POST", "/v1/admin/cache/reset", Scope::admin, false, "Forget the prefix cache."},
    Route{"POST", "/v1/admin/weights", Scope::admin, true, "Go on with the weights of another folder."},
    Route{"GET", "/v1/admin/requests", Scope::admin, false, "The requests in progress."},
    Route{"DELETE", "/v1/admin/requests/{id}", Scope::admin, false, "End a request."},
};

// The first segment of a path that begins with '/', and the rest, which is empty or begins with '/'.
std::pair<std::string_view, std::string_view> first_segment(std::string_view path) {
  path.remove_prefix(1);
  const size_t end = std::min(path.find('/'), path.size());
  return {path.substr(0, end), path.substr(end)};
}

bool matches(std::string_view pattern, std::string_view path,
             std::vector<std::pair<std::string_view, std::string>>& parameters) {
  parameters.clear();
  while (!pattern.empty() && !path.empty()) {
    if (path[0] != '/') return false;
    const auto [wanted, more_wanted] = first_segment(pattern);
    const auto [segment, more] = first_segment(path);
    if (wanted.starts_with('{')) {
      std::optional<std::string> value = percent_decoded(segment);
      if (!value || value->empty()) return false;
      parameters.emplace_back(wanted.substr(1, wanted.size() - 2), std::move(*value));
    } else if (wanted != segment) {
      return false;
    }
    pattern = more_wanted;
    path = more;
  }
  return pattern.empty() && path.empty();
}

RouteMatch match_exactly(std::string_view method, std::string_view path) {
  RouteMatch out;
  std::vector<std::pair<std::string_view, std::string>> parameters;
  size_t fewest_parameters = SIZE_MAX;
  for (const Route& route : all_routes) {
    if (!matches(route.path, path, parameters)) continue;
    // "/keys/stats" is not the key "stats": of two patterns the one with fewer parameters counts.
    if (parameters.size() > fewest_parameters) continue;
    if (parameters.size() < fewest_parameters) out = {};
    fewest_parameters = parameters.size();
    out.allowed.push_back(route.method);
    if (route.method == "GET") out.allowed.push_back("HEAD");
    if (route.method != method && !(route.method == "GET" && method == "HEAD")) continue;
    out.route = &route;
    out.parameters = parameters;
  }
  return out;
}

}  // namespace

std::span<const Route> routes() { return all_routes; }

std::string RouteMatch::parameter(std::string_view name) const {
  for (const auto& [key, value] : parameters)
    if (key == name) return value;
  return "";
}

std::string RouteMatch::allow() const {
  std::string out;
  for (const std::string_view method : allowed) out += std::string(method) + ", ";
  return out + "OPTIONS";
}

RouteMatch match_route(std::string_view method, std::string_view path) {
  RouteMatch out = match_exactly(method, path);
  return out.allowed.empty() && path.starts_with('/') ? match_exactly(method, "/v1" + std::string(path)) : out;
}

}  // namespace easydel::server
