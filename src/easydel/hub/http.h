// One HTTP request over libcurl. Redirects are followed here, one by one, so that a token never reaches another host.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace easydel::hub {

struct Request {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers = {};  // "Name: value"
  std::string token = {};                 // sent as a bearer token, only to the url's own host
  std::string body = {};
  std::function<size_t(char* buffer, size_t room)> upload = {};  // instead of body; needs upload_bytes
  int64_t upload_bytes = 0;
  int64_t resume_from = 0;                                   // requests the bytes from this offset on
  std::function<void(int status, int64_t from)> begin = {};  // called before on_data; from: offset of the first byte
  std::function<void(std::string_view bytes)> on_data =
      {};                                           // receives the body of a 2xx response; otherwise it is in Response
  std::string unix_socket = {};                     // path of a Unix socket to connect through; empty: the url's host
  bool to_other_hosts = true;                       // false: a redirect to another host is returned as the response
  double connect_seconds = 10, stall_seconds = 10;  // abort after so long without a byte
  const std::atomic<bool>* stop = nullptr;  // set by another thread or a signal handler: end with a NetworkError
};

struct Response {
  int status = 0;
  std::map<std::string, std::string> headers;  // of the last hop; names in lower case
  std::string body, url;
  std::string header(const std::string& name) const;  // "": no such header
};

// The network failed; what() says how. Responses of any status are returned, not thrown.
struct NetworkError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// UserError: the url is neither http nor https. NetworkError: a failure that may be temporary.
Response perform(const Request& request);

// Percent-encodes everything but slashes: "a b/c" -> "a%20b/c".
std::string url_path(std::string_view text);

}  // namespace easydel::hub
