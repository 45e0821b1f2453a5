#include "easydel/server/api_error.h"

#include <algorithm>
#include <span>

#include "easydel/base/error.h"
#include "easydel/base/json_text.h"
#include "easydel/base/log.h"
#include "easydel/config/problems.h"
#include "easydel/esurge/wrong_constraint.h"
#include "easydel/server/json_body.h"
#include "easydel/server/request_fields.h"
#include "easydel/text/remote/remote_tokenizer.h"

namespace easydel::server {
namespace {

// A body may have a problem in each of its values.
constexpr size_t max_shown_problems = 32;

bool is_anthropic(std::string_view path) {
  return path == "/v1/messages" || path.starts_with("/v1/messages/") || path == "/messages" ||
         path.starts_with("/messages/");
}

std::string_view anthropic_type_of(int status) {
  switch (status) {
    case 413:
      return "request_too_large";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default: {
      const std::string_view type = error_type_of(status);
      return type == "server_error" ? "api_error" : type;
    }
  }
}

}  // namespace

ApiError error_of(const UserError& error) {
  if (dynamic_cast<const text::TokenizerLost*>(&error)) {
    log::error("serve: ", error.headline());
    return {.status = 503,
            .message = "The tokenizer of the server does not answer.",
            .code = "tokenizer_lost",
            .retry_after_seconds = 5};
  }
  const auto line = [](const UserError& one) {
    std::string out = one.where.empty() ? one.problem : one.where + ": " + one.problem;
    return one.remedy.empty() ? out : out + " (" + one.remedy + ")";
  };
  ApiError out{.status = 400, .message = line(error), .code = "invalid_value", .param = error.where};
  if (dynamic_cast<const InvalidJson*>(&error)) out.code = "invalid_json";
  if (dynamic_cast<const esurge::WrongConstraint*>(&error)) out.code = "unsupported_schema";
  if (const auto* const body = dynamic_cast<const WrongBody*>(&error)) out.code = body->code;
  const auto* const several = dynamic_cast<const config::ConfigError*>(&error);
  if (!several) return out;
  out.message.clear();
  for (const UserError& one :
       std::span(several->problems).first(std::min(several->problems.size(), max_shown_problems)))
    out.message += (out.message.empty() ? "" : "\n") + line(one);
  if (several->problems.size() > max_shown_problems)
    out.message += str("\nand ", several->problems.size() - max_shown_problems, " more problems");
  return out;
}

std::string_view error_type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status < 500 ? "invalid_request_error" : "server_error";
  }
}

std::string error_body(const ApiError& error, std::string_view path, std::string_view request_id) {
  const auto text_or_null = [](const std::string& text) { return text.empty() ? "null" : json_text(text); };
  if (is_anthropic(path))
    return str(R"({"type": "error", "error": {"type": )", json_text(anthropic_type_of(error.status)),
               R"(, "message": )", json_text(error.message), R"(}, "request_id": )", json_text(request_id), "}");
  return str(R"({"error": {"message": )", json_text(error.message), R"(, "type": )",
             json_text(error.type.empty() ? error_type_of(error.status) : error.type), R"(, "param": )",
             text_or_null(error.param), R"(, "code": )", text_or_null(error.code), "}}");
}

HttpResponse error_response(const ApiError& error, std::string_view path, std::string_view request_id) {
  HttpResponse out = json_response(error.status, error_body(error, path, request_id));
  if (error.retry_after_seconds) out.with("Retry-After", std::to_string(*error.retry_after_seconds));
  if (error.status == 401) out.with("WWW-Authenticate", "Bearer");
  if (!request_id.empty()) out.with("X-Request-Id", std::string(request_id));
  return out;
}

}  // namespace easydel::server
