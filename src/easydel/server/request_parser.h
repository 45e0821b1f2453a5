// Reads requests of HTTP/1.0 and 1.1 from bytes that come in pieces. It is stricter than RFC 9112 demands: whatever two
// programs could understand differently is refused, so that nothing can be smuggled past a proxy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "easydel/server/api_error.h"
#include "easydel/server/http_message.h"

namespace easydel::server {

struct RequestLimits {
  size_t header_bytes = 16384;  // the request line and all headers; also trailers of chunks
  size_t header_fields = 64;
  size_t target_bytes = 2048;
  uint64_t body_bytes = 8 << 20;
};

class RequestParser {
 public:
  // head: the request line and headers are not complete. body: the head is complete and the body is not. done: the
  // request is complete. refused: it never will be; see refusal(), and the connection has to be closed.
  enum class State : uint8_t { head, body, done, refused };

  explicit RequestParser(const RequestLimits& limits) : limits_(limits) {}

  // Takes bytes from the front of `bytes` and returns their number. It stops where the head ends (even if bytes of the
  // body follow) and where the request ends.
  size_t feed(std::string_view bytes);

  State state() const { return state_; }
  bool began() const { return !head_.empty(); }            // something of a head has come
  const HttpRequest& request() const { return request_; }  // from `body` on; the body grows until `done`
  const ApiError& refusal() const { return refusal_; }
  uint64_t body_bytes_received() const { return request_.body.size(); }
  void forget_body() { std::string().swap(request_.body); }  // of a request that is not taken any more
  HttpRequest take();                                        // of state done; the parser then waits for the next head

 private:
  enum class Chunk : uint8_t { size_line, data, data_end, trailer };

  size_t feed_head(std::string_view bytes);
  size_t feed_body(std::string_view bytes);
  size_t feed_chunks(std::string_view bytes);
  void parse_head();
  bool parse_request_line(std::string_view line);
  bool parse_target();
  bool parse_header(std::string_view line);
  void settle_head();
  bool settle_length();
  void parse_chunk_size();
  void parse_trailer_line();
  // Appends up to and with a line feed to line_; refuses lines of more than `most` bytes.
  size_t feed_line(std::string_view bytes, size_t most, bool& complete);
  bool refuse(int status, std::string message, std::string code = "invalid_request");  // false

  RequestLimits limits_;
  State state_ = State::head;
  std::string head_;
  HttpRequest request_;
  ApiError refusal_;
  Chunk chunk_ = Chunk::size_line;
  std::string line_;
  uint64_t chunk_left_ = 0;
  size_t trailer_bytes_ = 0;
};

bool is_token(std::string_view text);  // characters of methods and header names; not empty
// The text with each %XX replaced once. nullopt: a '%' without two hex digits, or the result has control characters or
// is not UTF-8.
std::optional<std::string> percent_decoded(std::string_view text);
// The host of a Host header without its port, in lower case: "localhost", "[::1]". nullopt: it is not a host.
std::optional<std::string> host_name(std::string_view host_header);

}  // namespace easydel::server
