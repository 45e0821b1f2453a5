#include "easydel/hub/http.h"

#include <algorithm>
#include <cctype>
#include <memory>

#include "easydel/base/error.h"
#include "easydel/hub/curl.h"

namespace easydel::hub {
namespace {

constexpr int max_redirects = 10;
constexpr size_t max_body_bytes = size_t{64} << 20;  // bytes of a response that is kept in memory

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  return out;
}

// "https://host:port". Two urls have the same host if these are equal, so http and https differ.
std::string host_of(const std::string& url) {
  const Curl& api = curl();
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(api.url(), api.url_cleanup);
  if (api.url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) refuse(url, "is not a url");
  std::string out;
  for (const CURLUPart part : {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT}) {
    char* text = nullptr;
    if (api.url_get(parsed.get(), part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) continue;
    out += lower(text) + "|";
    api.free(text);
  }
  if (!out.starts_with("http|") && !out.starts_with("https|")) refuse(url, "is neither http nor https");
  return out;
}

std::string resolved(const std::string& base, const std::string& location) {
  const Curl& api = curl();
  const std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed(api.url(), api.url_cleanup);
  char* text = nullptr;
  if (api.url_set(parsed.get(), CURLUPART_URL, base.c_str(), 0) != CURLUE_OK ||
      api.url_set(parsed.get(), CURLUPART_URL, location.c_str(), 0) != CURLUE_OK ||
      api.url_get(parsed.get(), CURLUPART_URL, &text, 0) != CURLUE_OK)
    throw NetworkError(base + " redirects to '" + location + "', which is not a url");
  std::string out = text;
  api.free(text);
  return out;
}

struct Hop {
  CURL* curl;
  const Request* request;
  Response response;
  bool begun = false;
  std::exception_ptr failure;
};

size_t on_header(char* data, size_t size, size_t count, void* context) {
  auto& hop = *static_cast<Hop*>(context);
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) hop.response.headers.clear();  // drops the headers of 100-continue and the like
  if (const size_t colon = line.find(':'); colon != std::string_view::npos) {
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && std::isspace(static_cast<unsigned char>(value.front()))) value.remove_prefix(1);
    while (!value.empty() && std::isspace(static_cast<unsigned char>(value.back()))) value.remove_suffix(1);
    hop.response.headers[lower(line.substr(0, colon))] = value;
  }
  return size * count;
}

size_t on_body(char* data, size_t size, size_t count, void* context) {
  auto& hop = *static_cast<Hop*>(context);
  const std::string_view bytes(data, size * count);
  long status = 0;
  curl().easy_getinfo(hop.curl, CURLINFO_RESPONSE_CODE, &status);
  try {
    if (hop.request->on_data && status / 100 == 2) {
      if (!hop.begun && hop.request->begin)
        hop.request->begin(int(status), status == 206 ? hop.request->resume_from : 0);
      hop.begun = true;
      hop.request->on_data(bytes);
    } else {
      if (hop.response.body.size() + bytes.size() > max_body_bytes) throw NetworkError("the answer is too long");
      hop.response.body += bytes;
    }
  } catch (...) {
    hop.failure = std::current_exception();
    return 0;
  }
  return bytes.size();
}

size_t on_upload(char* buffer, size_t size, size_t count, void* context) {
  return static_cast<Hop*>(context)->request->upload(buffer, size * count);
}

// Called at least once a second.
int on_progress(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return *static_cast<const std::atomic<bool>*>(context) ? 1 : 0;
}

Response exchange(const Request& request, const std::string& url, bool with_token) {
  const Curl& api = curl();
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> handle(api.easy_init(), api.easy_cleanup);
  check(handle.get(), "libcurl could not be set up");
  Hop hop{.curl = handle.get(), .request = &request, .response = {}, .begun = false, .failure = {}};
  std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> headers(nullptr, api.slist_free_all);
  const auto add = [&](const std::string& line) { headers.reset(api.slist_append(headers.release(), line.c_str())); };
  for (const std::string& line : request.headers) add(line);
  if (with_token && !request.token.empty()) add("Authorization: Bearer " + request.token);
  if (request.resume_from > 0) add(str("Range: bytes=", request.resume_from, "-"));
  add("Expect:");
  CURL* const c = handle.get();
  api.easy_setopt(c, CURLOPT_URL, url.c_str());
  api.easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
  if (!request.unix_socket.empty()) api.easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, request.unix_socket.c_str());
  api.easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
  api.easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  api.easy_setopt(c, CURLOPT_USERAGENT, "easydel/" EASYDEL_VERSION);
  api.easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_seconds * 1000));
  api.easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
  api.easy_setopt(c, CURLOPT_LOW_SPEED_TIME, std::max(1L, static_cast<long>(request.stall_seconds)));
  api.easy_setopt(c, CURLOPT_HTTPHEADER, headers.get());
  api.easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
  api.easy_setopt(c, CURLOPT_HEADERDATA, &hop);
  api.easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
  api.easy_setopt(c, CURLOPT_WRITEDATA, &hop);
  if (request.stop) {
    api.easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    api.easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    api.easy_setopt(c, CURLOPT_XFERINFODATA, const_cast<std::atomic<bool>*>(request.stop));
  }
  if (request.method == "HEAD") {
    api.easy_setopt(c, CURLOPT_NOBODY, 1L);
  } else if (request.upload) {
    api.easy_setopt(c, CURLOPT_UPLOAD, 1L);
    api.easy_setopt(c, CURLOPT_READFUNCTION, on_upload);
    api.easy_setopt(c, CURLOPT_READDATA, &hop);
    api.easy_setopt(c, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.upload_bytes));
  } else if (request.method != "GET") {
    api.easy_setopt(c, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    api.easy_setopt(c, CURLOPT_POSTFIELDS, request.body.c_str());
    api.easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  const CURLcode code = api.easy_perform(c);
  if (hop.failure) std::rethrow_exception(hop.failure);
  if (code != CURLE_OK) throw NetworkError(url + ": " + api.easy_strerror(code));
  long status = 0;
  api.easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
  hop.response.status = int(status);
  hop.response.url = url;
  if (!hop.begun && status / 100 == 2 && request.begin && request.on_data) request.begin(hop.response.status, 0);
  return std::move(hop.response);
}

}  // namespace

std::string Response::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

Response perform(const Request& request) {
  const std::string home = host_of(request.url);
  std::string url = request.url;
  for (int hop = 0; hop <= max_redirects; ++hop) {
    const bool at_home = host_of(url) == home;
    Response response = exchange(request, url, at_home);
    const bool redirect = response.status == 301 || response.status == 302 || response.status == 303 ||
                          response.status == 307 || response.status == 308;
    if (!redirect || response.header("location").empty()) return response;
    const std::string next = resolved(url, response.header("location"));
    const std::string host = host_of(next);
    if (host != home && (!request.to_other_hosts || request.method == "PUT" || request.method == "POST"))
      return response;
    if (home.starts_with("https|") && !host.starts_with("https|"))
      throw NetworkError(url + " redirects to an address without encryption: " + next);
    url = next;
  }
  throw NetworkError(request.url + ": more than 10 redirects");
}

std::string url_path(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) || std::string_view("-._~/").find(c) != std::string_view::npos) {
      out += c;
    } else {
      char code[4];
      std::snprintf(code, sizeof code, "%%%02X", static_cast<unsigned char>(c));
      out += code;
    }
  }
  return out;
}

}  // namespace easydel::hub
