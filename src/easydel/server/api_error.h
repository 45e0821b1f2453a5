// What a client is told when its request fails, in OpenAI's and Anthropic's forms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "easydel/server/http_message.h"

namespace easydel::server {

struct ApiError {
  int status = 400;
  std::string message = {};
  std::string code = {};   // "invalid_json"; empty: null
  std::string param = {};  // the path of the first wrong field, "messages[2].content"; empty: null
  std::optional<int64_t> retry_after_seconds = {};
  std::string type = {};  // empty: the one that goes with the status
};

// OpenAI's word for a status: "invalid_request_error", "rate_limit_error", ...
std::string_view error_type_of(int status);

// The object {"error": {...}}; below /v1/messages Anthropic's {"type": "error", "error": {...}, "request_id": ...}.
std::string error_body(const ApiError& error, std::string_view path, std::string_view request_id);
HttpResponse error_response(const ApiError& error, std::string_view path, std::string_view request_id);

}  // namespace easydel::server
