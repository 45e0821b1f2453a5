#include "easydel/server/http_message.h"

#include <array>
#include <ctime>

#include "easydel/base/error.h"

namespace easydel::server {

const std::string* HttpRequest::header(std::string_view name) const {
  for (const Header& header : headers)
    if (header.name == name) return &header.value;
  return nullptr;
}

HttpResponse json_response(int status, std::string body) {
  HttpResponse out{.status = status, .body = std::move(body)};
  return out.with("Content-Type", "application/json");
}

std::string_view reason_of(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Status";
  }
}

std::string http_date(int64_t seconds_since_1970) {
  const std::time_t time = seconds_since_1970;
  std::tm parts{};
  gmtime_r(&time, &parts);
  static constexpr std::array days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  char rest[40], begin[16];
  // strftime's own names of days and months depend on the locale.
  std::strftime(begin, sizeof begin, ", %d ", &parts);
  std::strftime(rest, sizeof rest, " %Y %H:%M:%S GMT", &parts);
  return str(days[size_t(parts.tm_wday)], begin, months[size_t(parts.tm_mon)], rest);
}

std::string head_of(const HttpResponse& response, BodyEnd end, size_t body_bytes, int minor_version, bool keep_alive,
                    std::string_view date) {
  std::string out = str("HTTP/1.1 ", response.status, " ", reason_of(response.status), "\r\n");
  for (const Header& header : response.headers) out += header.name + ": " + header.value + "\r\n";
  out += str("Date: ", date, "\r\n");
  if (end == BodyEnd::chunks) out += "Transfer-Encoding: chunked\r\n";
  if (end == BodyEnd::length && !is_status_without_body(response.status))
    out += str("Content-Length: ", body_bytes, "\r\n");
  if (!keep_alive)
    out += "Connection: close\r\n";
  else if (minor_version == 0)
    out += "Connection: keep-alive\r\n";
  return out + "\r\n";
}

bool is_status_without_body(int status) { return status < 200 || status == 204 || status == 304; }

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; };
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool list_has(std::string_view list, std::string_view word) {
  while (true) {
    const size_t comma = list.find(',');
    if (equals_ignoring_case(trimmed(list.substr(0, comma)), word)) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace easydel::server
