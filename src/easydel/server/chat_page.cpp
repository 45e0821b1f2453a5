#include "easydel/server/chat_page.h"

#include <chat_page_html.h>
#include <openssl/sha.h>

#include <array>

#include "easydel/base/error.h"
#include "easydel/server/embedding_json.h"
#include "easydel/server/routes.h"

namespace easydel::server {
namespace {

// "'sha256-...'" of what is between <tag> and </tag> of a page.
std::string hash_of(std::string_view page, std::string_view tag) {
  const std::string open = "<" + std::string(tag) + ">", close = "</" + std::string(tag) + ">";
  const size_t begin = page.find(open), end = page.find(close);
  check(begin != std::string_view::npos && end != std::string_view::npos, "the page has no ", tag);
  const std::string_view content = page.substr(begin + open.size(), end - begin - open.size());
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(content.data()), content.size(), digest.data());
  return "'sha256-" + base64({reinterpret_cast<const char*>(digest.data()), digest.size()}) + "'";
}

HttpResponse page(std::string html, const std::string& policy) {
  HttpResponse out{.body = std::move(html)};
  out.with("Content-Type", "text/html; charset=utf-8");
  out.with("Content-Security-Policy",
           "default-src 'none'; " + policy + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  out.with("X-Content-Type-Options", "nosniff");
  out.with("X-Frame-Options", "DENY");
  out.with("Referrer-Policy", "no-referrer");
  out.with("Cache-Control", "no-cache");
  return out;
}

// The route table, which the OpenAPI document comes from.
std::string routes_html() {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>EasyDeL: routes</title>\n"
      "<style>body{font:16px sans-serif;margin:2em auto;max-width:60em;padding:0 1em;color-scheme:light dark}"
      "td,th{text-align:left;padding:.2em 1em .2em 0;vertical-align:top}code{white-space:nowrap}</style>\n"
      "</head>\n<body>\n<h1>Routes</h1>\n<p>Their bodies and answers are in <a "
      "href=\"/openapi.json\">openapi.json</a>, an "
      "OpenAPI 3.1 document. With keys on, a route needs a key with its scope.</p>\n<table>\n"
      "<tr><th>Route</th><th>Scope</th><th>What it does</th></tr>\n";
  for (const Route& route : routes())
    out +=
        str("<tr><td><code>", route.method, " ", route.path, "</code></td><td>",
            route.scope == Scope::none ? "" : config::word_of(route.scope), "</td><td>", route.summary, "</td></tr>\n");
  return out + "</table>\n</body>\n</html>\n";
}

}  // namespace

std::string_view chat_page_source() { return chat_page_html; }

HttpResponse chat_page() {
  static const std::string policy = "script-src " + hash_of(chat_page_html, "script") + "; style-src " +
                                    hash_of(chat_page_html, "style") + "; connect-src 'self'";
  return page(std::string(chat_page_html), policy);
}

HttpResponse docs_page() {
  static const std::string html = routes_html(), policy = "style-src " + hash_of(html, "style");
  return page(html, policy);
}

}  // namespace easydel::server
