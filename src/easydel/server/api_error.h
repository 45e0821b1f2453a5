// What a client is told when its request fails, in OpenAI's and Anthropic's forms.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "easydel/base/error.h"
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

// Thrown by a handler whose request is refused with another status than 400, which a UserError gives.
class Refusal : public std::exception {
 public:
  explicit Refusal(ApiError error) : error_(std::move(error)) {}
  const char* what() const noexcept override { return error_.message.c_str(); }
  const ApiError& error() const { return error_; }

 private:
  ApiError error_;
};

// A UserError as a refusal with 400: the path of the first wrong field, and all of what is wrong in one text.
ApiError error_of(const UserError& error);

// OpenAI's word for a status: "invalid_request_error", "rate_limit_error", ...
std::string_view error_type_of(int status);

// The object {"error": {...}}; below /v1/messages Anthropic's {"type": "error", "error": {...}, "request_id": ...}.
std::string error_body(const ApiError& error, std::string_view path, std::string_view request_id);
HttpResponse error_response(const ApiError& error, std::string_view path, std::string_view request_id);

}  // namespace easydel::server
