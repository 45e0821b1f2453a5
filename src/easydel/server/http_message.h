// A request and a response of HTTP/1.1 as values. Reading requests is in request_parser.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace easydel::server {

struct Header {
  std::string name;  // of a request: lower case
  std::string value;
};

struct HttpRequest {
  std::string method;
  std::string target;       // as it was sent
  std::string path, query;  // of the target, as they were sent (percent-encoded); query without '?'
  int minor_version = 1;    // HTTP/1.x
  std::vector<Header> headers;
  std::string body;
  bool has_body = false;  // a length other than 0, or chunks, are announced
  uint64_t content_length = 0;
  bool chunked = false;
  bool keep_alive = true;         // the client lets the connection stay open
  bool expects_continue = false;  // the client waits for "100 Continue" before it sends the body
  std::string peer_address;       // without the port; empty: a Unix socket

  // The value of the first header of this (lower-case) name; nullptr: there is none.
  const std::string* header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::vector<Header> headers = {};  // without lengths, Connection and Date, which the connection adds
  std::string body = {};

  HttpResponse& with(std::string name, std::string value) {
    headers.push_back({std::move(name), std::move(value)});
    return *this;
  }
};

HttpResponse json_response(int status, std::string body);

std::string_view reason_of(int status);  // "Not Found"
// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string http_date(int64_t seconds_since_1970);

// How the end of a response's body is marked.
enum class BodyEnd : uint8_t { length, chunks, close };
// The status line and all headers, with the empty line. `body_bytes` counts only for BodyEnd::length.
std::string head_of(const HttpResponse& response, BodyEnd end, size_t body_bytes, int minor_version, bool keep_alive,
                    std::string_view date);

bool is_status_without_body(int status);  // 1xx, 204, 304
bool equals_ignoring_case(std::string_view a, std::string_view b);
std::string_view trimmed(std::string_view text);  // without blanks and tabs at both ends
// Whether the comma-separated list has the word, ignoring case.
bool list_has(std::string_view list, std::string_view word);

}  // namespace easydel::server
