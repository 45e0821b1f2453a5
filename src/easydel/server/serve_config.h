// The keys of the action `serve`: where the server listens, what it allows and how much of it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"

namespace easydel::server {

struct ServeConfig {
  std::string host = "0.0.0.0";
  int64_t port = 11556;
  int64_t workers = 1;
  std::string log_level = "info";
  bool reload = false;
  std::optional<std::string> ssl_keyfile, ssl_certfile;
  std::string tool_parser_name = "hermes";
  bool oai_like_processor = true;
  bool enable_function_calling = true;
  bool require_api_key = false;
  std::optional<std::string> admin_key;
  bool enable_cors = false;
  std::optional<std::vector<std::string>> cors_origins;
  // Ours: limits.
  int64_t max_header_bytes = 16384, max_header_fields = 64, max_target_bytes = 2048, max_body_bytes = 8 << 20;
  double header_timeout_seconds = 10, body_timeout_seconds = 30, min_body_bytes_per_second = 1024;
  double idle_timeout_seconds = 75, request_timeout_seconds = 3600;
  int64_t max_connections = 4096, max_connections_per_address = 1024, max_unsent_bytes = 1 << 20;
  double ping_seconds = 15, shutdown_timeout_seconds = 30;
  int64_t handler_threads = 2;
  std::string overload_message = "The server is busy. Try again later.";
  std::vector<std::string> trusted_proxies;

  static constexpr auto doc = "Serve the model over an OpenAI-compatible HTTP API.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::host>("Address to listen on; 127.0.0.1 accepts connections of this machine only, unix:/path those of "
                        "this user through a Unix socket."),
        field<&C::port>("Port to listen on; 0: a free one, which is printed.", between(0, 65535)),
        field<&C::workers>("Number of server processes; only 1 is possible.", between(1, 1)),
        field<&C::log_level>("How much is logged: debug, info, warning or error."),
        field<&C::reload>("Reload on code changes. Not possible: the server and the engine are one process."),
        field<&C::ssl_keyfile>("Private key file for HTTPS."),
        field<&C::ssl_certfile>("Certificate file for HTTPS."),
        field<&C::tool_parser_name>("Format in which the model writes tool calls."),
        field<&C::oai_like_processor>("Stream chunks in OpenAI's format."),
        field<&C::enable_function_calling>("Parse tool calls in answers and return them as tool_calls."),
        field<&C::require_api_key>("Refuse requests without a valid API key."),
        field<&C::admin_key>("API key for administrative requests."),
        field<&C::enable_cors>("Answer requests of web pages from other origins (CORS)."),
        field<&C::cors_origins>("Origins that are allowed."),
        field<&C::max_header_bytes>("Largest size of a request's first line and headers, in bytes; more is refused "
                                    "with 431.",
                                    between(1024, 1 << 20)),
        field<&C::max_header_fields>("Largest number of headers of a request; more is refused with 431.",
                                     between(8, 10000)),
        field<&C::max_target_bytes>("Longest path with query, in bytes; more is refused with 414.",
                                    between(64, 1 << 20)),
        field<&C::max_body_bytes>("Largest body of a request, in bytes; more is refused with 413.",
                                  between(1024, 1 << 30)),
        field<&C::header_timeout_seconds>("Seconds in which a client must have sent all headers; 408 otherwise.",
                                          above(0)),
        field<&C::body_timeout_seconds>("Seconds in which a client must have sent the body, unless it keeps up "
                                        "min_body_bytes_per_second; 408 otherwise.",
                                        above(0)),
        field<&C::min_body_bytes_per_second>("Average rate at which a longer body must arrive.", above(0)),
        field<&C::idle_timeout_seconds>("Seconds after which a connection without a request is closed, and one whose "
                                        "client does not read.",
                                        above(0)),
        field<&C::request_timeout_seconds>("Seconds after which a request that is not answered ends with 504.",
                                           above(0)),
        field<&C::max_connections>("Number of connections at a time; more are refused with 503.", between(1, 1000000)),
        field<&C::max_connections_per_address>("The same for one address. Raise it if all clients come through a "
                                               "proxy, or name the proxy in trusted_proxies.",
                                               between(1, 1000000)),
        field<&C::max_unsent_bytes>("Bytes of a stream that may wait for a slow reader; more closes its connection and "
                                    "aborts its request.",
                                    between(4096, 1 << 30)),
        field<&C::ping_seconds>("Seconds without an event after which a stream gets a comment, so that proxies do not "
                                "close it.",
                                above(0)),
        field<&C::shutdown_timeout_seconds>("Seconds in which requests may finish after SIGTERM.", at_least(0)),
        field<&C::handler_threads>("Threads that read and check requests and render templates.", between(1, 256)),
        field<&C::overload_message>("What a client is told that is refused because the server is busy."),
        field<&C::trusted_proxies>("Addresses whose X-Forwarded-For counts, and which have no share of connections."),
    };
  }
  void settle(config::Keys& keys);
};

}  // namespace easydel::server
