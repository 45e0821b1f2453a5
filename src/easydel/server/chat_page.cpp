#include "easydel/server/chat_page.h"

#include <chat_page_html.h>
#include <openssl/sha.h>

#include <array>

#include "easydel/base/error.h"
#include "easydel/server/embedding_json.h"

namespace easydel::server {
namespace {

// "'sha256-...'" of what is between <tag> and </tag>.
std::string hash_of(std::string_view tag) {
  const std::string open = "<" + std::string(tag) + ">", close = "</" + std::string(tag) + ">";
  const size_t begin = chat_page_html.find(open), end = chat_page_html.find(close);
  check(begin != std::string_view::npos && end != std::string_view::npos, "the chat page has no ", tag);
  const std::string_view content = chat_page_html.substr(begin + open.size(), end - begin - open.size());
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(content.data()), content.size(), digest.data());
  return "'sha256-" + base64({reinterpret_cast<const char*>(digest.data()), digest.size()}) + "'";
}

}  // namespace

std::string_view chat_page_source() { return chat_page_html; }

HttpResponse chat_page() {
  static const std::string policy = "default-src 'none'; script-src " + hash_of("script") + "; style-src " +
                                    hash_of("style") +
                                    "; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
  HttpResponse out{.body = std::string(chat_page_html)};
  out.with("Content-Type", "text/html; charset=utf-8");
  out.with("Content-Security-Policy", policy);
  out.with("X-Content-Type-Options", "nosniff");
  out.with("X-Frame-Options", "DENY");
  out.with("Referrer-Policy", "no-referrer");
  out.with("Cache-Control", "no-cache");
  return out;
}

}  // namespace easydel::server
