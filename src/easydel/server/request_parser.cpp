#include "easydel/server/request_parser.h"

#include <algorithm>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/json_text.h"
#include "easydel/server/json_body.h"

namespace easydel::server {
namespace {

constexpr size_t max_method_bytes = 32;
constexpr size_t max_chunk_line_bytes = 256;  // the size, and extensions, which nobody uses

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_token_character(char c) {
  return is_digit(c) || is_letter(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_control(char c) { return uint8_t(c) < 0x20 || c == 0x7f; }

// A message never has bytes that the client sent in its head, except for methods and hosts that were checked.
constexpr std::string_view not_http = "This is not an HTTP request.";

}  // namespace

bool is_token(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_token_character); }

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    out += char(high * 16 + low);
    i += 2;
  }
  if (std::ranges::any_of(out, is_control)) return std::nullopt;
  for (std::string_view rest = out; !rest.empty(); rest.remove_prefix(utf8_character_bytes(rest)))
    if (utf8_character_bytes(rest) == 0) return std::nullopt;
  return out;
}

std::optional<std::string> host_name(std::string_view host_header) {
  std::string_view host = host_header, port;
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    port = host.substr(end + 1);
    host = host.substr(0, end + 1);
    for (const char c : host.substr(1, end - 1))
      if (hex_digit(c) < 0 && c != ':' && c != '.') return std::nullopt;
  } else {
    const size_t colon = std::min(host.find(':'), host.size());
    port = host.substr(colon);
    host = host.substr(0, colon);
    for (const char c : host)
      if (!is_digit(c) && !is_letter(c) && c != '.' && c != '-' && c != '_') return std::nullopt;
  }
  if (!port.empty() && (port[0] != ':' || port.size() > 6 || !std::ranges::all_of(port.substr(1), is_digit)))
    return std::nullopt;
  if (host.empty()) return std::nullopt;
  std::string out;
  for (const char c : host) out += c >= 'A' && c <= 'Z' ? char(c + 32) : c;
  return out;
}

bool RequestParser::refuse(int status, std::string message, std::string code) {
  refusal_ = {.status = status, .message = std::move(message), .code = std::move(code)};
  state_ = State::refused;
  return false;
}

HttpRequest RequestParser::take() {
  check(state_ == State::done, "RequestParser::take: the request is not complete");
  HttpRequest out = std::move(request_);
  *this = RequestParser(limits_);
  return out;
}

size_t RequestParser::feed(std::string_view bytes) {
  switch (state_) {
    case State::head:
      return feed_head(bytes);
    case State::body:
      return request_.chunked ? feed_chunks(bytes) : feed_body(bytes);
    case State::done:
    case State::refused:
      return 0;
  }
  return 0;
}

size_t RequestParser::feed_head(std::string_view bytes) {
  size_t taken = 0;
  for (; taken < bytes.size(); ++taken) {
    const char c = bytes[taken];
    const char before = head_.empty() ? '\0' : head_.back();
    if (before == '\r' && c != '\n') return refuse(400, "A carriage return is not followed by a line feed."), taken;
    if (c == '\n' && before != '\r') return refuse(400, "A line ends in a line feed without a carriage return."), taken;
    if (c == '\0') return refuse(400, "The head of the request contains a NUL byte."), taken;
    head_ += c;
    // An empty line before the request is skipped: some clients send one after a body.
    if (head_ == "\r\n") {
      head_.clear();
      continue;
    }
    if (head_.size() == 1 && !is_token_character(c) && c != '\r') return refuse(400, std::string(not_http)), taken;
    if (head_.size() > limits_.header_bytes)
      return refuse(431, str("The headers are longer than ", limits_.header_bytes, " bytes.")), taken;
    if (c == '\n' && head_.ends_with("\r\n\r\n")) {
      parse_head();
      return taken + 1;
    }
  }
  return taken;
}

void RequestParser::parse_head() {
  std::string_view rest = head_;
  rest.remove_suffix(2);
  const auto next_line = [&rest] {
    const size_t end = rest.find("\r\n");
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    return line;
  };
  if (!parse_request_line(next_line())) return;
  while (!rest.empty()) {
    if (request_.headers.size() == limits_.header_fields)
      return void(refuse(431, str("The request has more than ", limits_.header_fields, " headers.")));
    if (!parse_header(next_line())) return;
  }
  settle_head();
}

bool RequestParser::parse_request_line(std::string_view line) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return refuse(400, std::string(not_http));
  const std::string_view method = line.substr(0, first), version = line.substr(last + 1);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (!is_token(method) || method.size() > max_method_bytes || target.empty())
    return refuse(400, std::string(not_http));
  if (target.size() > limits_.target_bytes)
    return refuse(414, str("The target is longer than ", limits_.target_bytes, " bytes."));
  for (const char c : target)
    if (is_control(c) || c == ' ' || uint8_t(c) >= 0x80 || c == '#')
      return refuse(400, "The target contains a character that has to be percent-encoded.");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    const bool other = version.size() == 8 && version.starts_with("HTTP/") && is_digit(version[5]) &&
                       version[6] == '.' && is_digit(version[7]);
    return other ? refuse(505, "This server speaks HTTP/1.1 and HTTP/1.0.") : refuse(400, std::string(not_http));
  }
  request_.method = method;
  request_.target = target;
  request_.minor_version = version.back() - '0';
  return true;
}

bool RequestParser::parse_header(std::string_view line) {
  if (line.starts_with(' ') || line.starts_with('\t')) return refuse(400, "A header is folded over several lines.");
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return refuse(400, "A header has no colon.");
  const std::string_view name = line.substr(0, colon);
  if (name.ends_with(' ') || name.ends_with('\t')) return refuse(400, "A header has a blank before its colon.");
  if (!is_token(name)) return refuse(400, "The name of a header contains an invalid character.");
  const std::string_view value = trimmed(line.substr(colon + 1));
  for (const char c : value)
    if (is_control(c) && c != '\t') return refuse(400, "A header contains a control character.");
  Header header{.name = {}, .value = std::string(value)};
  for (const char c : name) header.name += c >= 'A' && c <= 'Z' ? char(c + 32) : c;
  request_.headers.push_back(std::move(header));
  return true;
}

// Sets path and query from the target; run after the headers, because an absolute target must name the same host.
bool RequestParser::parse_target() {
  std::string_view target = request_.target;
  if (target == "*") {
    if (request_.method != "OPTIONS") return refuse(400, "The target '*' is for OPTIONS alone.");
    request_.path = "*";
    return true;
  }
  if (!target.starts_with('/')) {
    const std::string_view scheme = target.starts_with("http://")    ? "http://"
                                    : target.starts_with("https://") ? "https://"
                                                                     : "";
    if (scheme.empty()) return refuse(400, "The target is not a path.");
    target.remove_prefix(scheme.size());
    const size_t slash = std::min(target.find_first_of("/?"), target.size());
    const std::string* host = request_.header("host");
    if (!host || !equals_ignoring_case(target.substr(0, slash), *host))
      return refuse(400, "The target names another host than the header Host.");
    target.remove_prefix(slash);
  }
  const size_t question = std::min(target.find('?'), target.size());
  request_.path = target.substr(0, question);
  if (request_.path.empty()) request_.path = "/";
  request_.query = target.substr(std::min(question + 1, target.size()));
  for (size_t i = 0; i < target.size(); ++i)
    if (target[i] == '%' && (i + 2 >= target.size() || hex_digit(target[i + 1]) < 0 || hex_digit(target[i + 2]) < 0))
      return refuse(400, "The target contains a '%' that is not followed by two hex digits.");
  return true;
}

bool RequestParser::settle_length() {
  const std::string* length = nullptr;
  const std::string* coding = nullptr;
  for (const Header& header : request_.headers) {
    if (header.name == "content-length") {
      if (length && *length != header.value) return refuse(400, "The request has two Content-Lengths that differ.");
      length = &header.value;
    }
    if (header.name == "transfer-encoding") {
      if (coding) return refuse(400, "The request has two headers Transfer-Encoding.");
      coding = &header.value;
    }
  }
  if (length && coding) return refuse(400, "The request has both Content-Length and Transfer-Encoding.");
  if (coding) {
    if (request_.minor_version == 0) return refuse(400, "HTTP/1.0 has no Transfer-Encoding.");
    if (!equals_ignoring_case(*coding, "chunked"))
      return refuse(501, "Transfer-Encoding can only be 'chunked'.", "not_built");
    request_.chunked = request_.has_body = true;
  }
  if (length) {
    if (length->empty() || length->size() > 18 || !std::ranges::all_of(*length, is_digit))
      return refuse(400, "Content-Length is not a number of bytes.");
    request_.content_length = std::stoull(*length);
    request_.has_body = request_.content_length > 0;
  }
  return true;
}

void RequestParser::settle_head() {
  size_t hosts = 0;
  for (const Header& header : request_.headers) {
    if (header.name == "host") {
      if (++hosts > 1) return void(refuse(400, "The request has two headers Host."));
      if (!host_name(header.value)) return void(refuse(400, "The header Host is not a host."));
    }
    if (header.name == "expect") {
      if (!equals_ignoring_case(header.value, "100-continue"))
        return void(refuse(417, "The only expectation that is served is 100-continue."));
      request_.expects_continue = request_.minor_version > 0;
    }
  }
  if (hosts == 0 && request_.minor_version > 0) return void(refuse(400, "The header Host is missing."));
  if (!settle_length() || !parse_target()) return;
  request_.keep_alive = request_.minor_version > 0;
  for (const Header& header : request_.headers) {
    if (header.name != "connection") continue;
    if (request_.minor_version == 0 && list_has(header.value, "keep-alive")) request_.keep_alive = true;
    if (list_has(header.value, "close")) {
      request_.keep_alive = false;
      break;
    }
  }
  if (request_.content_length > limits_.body_bytes)
    return void(refuse(413, str("The body is longer than ", limits_.body_bytes, " bytes."), "body_too_large"));
  state_ = request_.has_body ? State::body : State::done;
}

size_t RequestParser::feed_body(std::string_view bytes) {
  const size_t taken = size_t(std::min<uint64_t>(bytes.size(), request_.content_length - request_.body.size()));
  std::string& body = request_.body;
  // Doubled as it comes, but never beyond its length: nobody gets memory for bytes that were only announced.
  if (body.size() + taken > body.capacity()) {
    std::string larger;
    larger.reserve(size_t(std::min<uint64_t>(request_.content_length, 2 * (body.size() + taken))) + json_padding);
    body.swap(larger.append(body));
  }
  body.append(bytes.substr(0, taken));
  if (body.size() == request_.content_length) state_ = State::done;
  return taken;
}

size_t RequestParser::feed_line(std::string_view bytes, size_t most, bool& complete) {
  size_t taken = 0;
  for (complete = false; taken < bytes.size() && !complete && state_ == State::body; ++taken) {
    const char c = bytes[taken];
    const char before = line_.empty() ? '\0' : line_.back();
    if ((c == '\n') != (before == '\r') || (is_control(c) && c != '\r' && c != '\n' && c != '\t')) {
      refuse(400, "The chunks of the body are not well-formed.");
      return taken;
    }
    line_ += c;
    complete = c == '\n';
    if (line_.size() > most) refuse(400, "A line between the chunks of the body is too long.");
  }
  return taken;
}

void RequestParser::parse_chunk_size() {
  std::string_view line = line_;
  line.remove_suffix(2);
  const size_t digits = std::min(line.find_first_not_of("0123456789abcdefABCDEF"), line.size());
  const bool extension = digits < line.size();
  // Sixteen digits could overflow; eight are more than any limit.
  if (digits == 0 || digits > 8 || (extension && line[digits] != ';'))
    return void(refuse(400, "The size of a chunk is not a hexadecimal number of at most 8 digits."));
  chunk_left_ = 0;
  for (const char c : line.substr(0, digits)) chunk_left_ = chunk_left_ * 16 + uint64_t(hex_digit(c));
  line_.clear();
  chunk_ = chunk_left_ == 0 ? Chunk::trailer : Chunk::data;
  if (request_.body.size() + chunk_left_ > limits_.body_bytes)
    refuse(413, str("The body is longer than ", limits_.body_bytes, " bytes."), "body_too_large");
}

// Trailers are checked like headers and dropped: none of them means anything here.
void RequestParser::parse_trailer_line() {
  trailer_bytes_ += line_.size();
  const std::string line = std::exchange(line_, {});
  if (line == "\r\n") {
    state_ = State::done;
    return;
  }
  if (trailer_bytes_ > limits_.header_bytes)
    return void(refuse(431, str("The trailers are longer than ", limits_.header_bytes, " bytes.")));
  const size_t count = request_.headers.size();
  if (parse_header(std::string_view(line).substr(0, line.size() - 2))) request_.headers.resize(count);
}

size_t RequestParser::feed_chunks(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && state_ == State::body) {
    const std::string_view rest = bytes.substr(taken);
    bool complete = false;
    switch (chunk_) {
      case Chunk::size_line:
        taken += feed_line(rest, max_chunk_line_bytes, complete);
        if (complete && state_ == State::body) parse_chunk_size();
        break;
      case Chunk::data: {
        const size_t count = size_t(std::min<uint64_t>(rest.size(), chunk_left_));
        request_.body.append(rest.substr(0, count));
        taken += count;
        chunk_left_ -= count;
        if (chunk_left_ == 0) chunk_ = Chunk::data_end;
        break;
      }
      case Chunk::data_end:
        if (rest[0] != (line_.empty() ? '\r' : '\n')) {
          refuse(400, "A chunk is longer than its size.");
          break;
        }
        line_ += rest[0];
        ++taken;
        if (line_.size() == 2) {
          line_.clear();
          chunk_ = Chunk::size_line;
        }
        break;
      case Chunk::trailer:
        taken += feed_line(rest, limits_.header_bytes, complete);
        if (complete && state_ == State::body) parse_trailer_line();
        break;
    }
  }
  return taken;
}

}  // namespace easydel::server
