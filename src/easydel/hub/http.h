// One HTTP exchange over libcurl: redirects are followed here, hop by hop, so that a token never reaches another host.
#pragma once

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
  std::string token = {};                 // sent as a bearer token to the url's own host alone
  std::string body = {};
  std::function<size_t(char* buffer, size_t room)> upload = {};  // instead of body; with upload_bytes
  int64_t upload_bytes = 0;
  int64_t resume_from = 0;                                   // asks for the bytes from there on
  std::function<void(int status, int64_t from)> begin = {};  // before on_data: where the bytes begin
  std::function<void(std::string_view bytes)> on_data = {};  // the body of a 2xx answer; otherwise it is in Response
  bool to_other_hosts = true;                                // false: such a redirect is the answer
  double connect_seconds = 10, stall_seconds = 10;           // a transfer without a byte for so long is broken
};

struct Response {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case, of the last hop
  std::string body, url;
  std::string header(const std::string& name) const;  // "": not there
};

// The network failed; the text says how. Answers of any status are no exception.
struct NetworkError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// UserError for a url that is neither http nor https, NetworkError for what may pass.
Response perform(const Request& request);

// "a b/c" -> "a%20b/c": slashes stay.
std::string url_path(std::string_view text);

}  // namespace easydel::hub
