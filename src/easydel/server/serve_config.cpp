#include "easydel/server/serve_config.h"

#include <algorithm>
#include <string_view>

#include "easydel/base/names.h"
#include "easydel/text/output/output_parser.h"

namespace easydel::server {
namespace {

bool is_web_address(std::string_view text) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (text.starts_with(scheme))
      return text.size() > scheme.size() && text[scheme.size()] != '/' && text.find_first_of(" \t\r\n") == text.npos;
  return false;
}

}  // namespace

void ServeConfig::check_parser_name(config::Keys& keys) const {
  if (tool_parser_name.empty() || tool_parser_name == "auto" || tool_parser_name == "none") return;
  try {
    text::OutputParser parser(text::OutputFormat{tool_parser_name, ""});
  } catch (const UserError&) {
    const std::vector<std::string> names = text::tool_parser_names();
    const std::string near = nearest(tool_parser_name, names);
    keys.refuse("tool_parser_name", str("'", tool_parser_name, "' is not a format of tool calls"),
                near.empty() ? "known: auto, " + join(names, ", ") : "did you mean '" + near + "'?");
  }
}

void ServeConfig::settle(config::Keys& keys) {
  if (reload)
    keys.refuse("reload", "is not possible: the server and the engine are one process", "restart the server instead");
  for (const auto& [key, text] : {std::pair{"host", &host}, std::pair{"tool_parser_name", &tool_parser_name}})
    if (text->empty()) keys.refuse(key, "is empty", "leave the key out to use its default");
  check_parser_name(keys);
  if (ssl_certfile.has_value() != ssl_keyfile.has_value())
    keys.refuse(ssl_certfile ? "ssl_certfile" : "ssl_keyfile",
                ssl_certfile ? "is given without ssl_keyfile" : "is given without ssl_certfile",
                "HTTPS needs a certificate and its key");
  constexpr size_t min_admin_key = 16;
  if (admin_key && admin_key->size() < min_admin_key)
    keys.refuse("admin_key", str("has fewer than ", min_admin_key, " characters"),
                "make one that cannot be guessed, such as: openssl rand -hex 24");
  if (std::ranges::find(extra_stops, "") != extra_stops.end())
    keys.refuse("extra_stops", "has an empty string, which would end every answer", "take it out");
  if (cors_origins && !enable_cors)
    keys.refuse("cors_origins", "is given without enable_cors", "set enable_cors: true, or leave the origins out");
  if (max_connections_per_address > max_connections && keys.given("max_connections_per_address"))
    keys.refuse("max_connections_per_address", "is more than max_connections",
                "one address cannot have more connections than the server");
  if (max_held_bytes_per_address > max_held_bytes && keys.given("max_held_bytes_per_address"))
    keys.refuse("max_held_bytes_per_address", "is more than max_held_bytes",
                "one address cannot hold more than all of them");
  if (max_body_bytes > std::min(max_held_bytes_per_address, max_held_bytes)) {
    const char* const limit =
        max_held_bytes_per_address <= max_held_bytes ? "max_held_bytes_per_address" : "max_held_bytes";
    const char* const remedy = "a body of that size could never be taken; raise the one or lower the other";
    if (keys.given(limit))
      keys.refuse(limit, "is less than max_body_bytes", remedy);
    else
      keys.refuse("max_body_bytes", str("is more than ", limit), remedy);
  }
  if (metrics_port && *metrics_port != 0 && *metrics_port == port)
    keys.refuse("metrics_port", "is the port of the server",
                "give another one, or leave it out: /metrics is there too");
  if (models.find(""))
    keys.refuse("models", "has a model without a name", "give each model the name that requests use");
  if (otlp_endpoint && !is_web_address(*otlp_endpoint))
    keys.refuse("otlp_endpoint", "'" + *otlp_endpoint + "' is not a URL of http or https", "http://127.0.0.1:4318");
  if (max_target_bytes >= max_header_bytes)
    keys.refuse("max_target_bytes", "is not less than max_header_bytes",
                "the target is part of the first line, which counts as headers");
}

}  // namespace easydel::server
