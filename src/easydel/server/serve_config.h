// The keys of the action `serve`: where the server listens, what it allows and how much of it.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"

namespace easydel::server {

enum class LogLevel : uint8_t { debug, info, warning, error };
constexpr auto choices(LogLevel) {
  using config::Choice;
  return std::array{Choice{LogLevel::debug, "debug"}.also("trace"), Choice{LogLevel::info, "info"},
                    Choice{LogLevel::warning, "warning"}, Choice{LogLevel::error, "error"}.also("critical")};
}
enum class LogFormat : uint8_t { text, json };
constexpr auto choices(LogFormat) {
  using config::Choice;
  return std::array{Choice{LogFormat::text, "text"}, Choice{LogFormat::json, "json"}};
}

enum class ContentSpecialTokens : uint8_t { tokens, text };
constexpr auto choices(ContentSpecialTokens) {
  using config::Choice;
  return std::array{Choice{ContentSpecialTokens::tokens, "tokens"}, Choice{ContentSpecialTokens::text, "text"}};
}

struct ServeConfig {
  std::string host = "0.0.0.0";
  int64_t port = 11556;
  int64_t workers = 1;
  LogLevel log_level = LogLevel::info;
  bool reload = false;
  std::optional<std::string> ssl_keyfile, ssl_certfile;
  std::string tool_parser_name = "auto";
  bool oai_like_processor = true;
  bool enable_function_calling = true;
  bool require_api_key = false;
  std::optional<std::string> admin_key;
  bool enable_cors = false;
  std::optional<std::vector<std::string>> cors_origins;
  // Ours: other models.
  Value models;  // by the name of each; elarge/other_models.h reads them
  // Ours: limits.
  int64_t max_header_bytes = 16384, max_header_fields = 64, max_target_bytes = 2048, max_body_bytes = 8 << 20;
  double header_timeout_seconds = 10, body_timeout_seconds = 30, min_body_bytes_per_second = 1024;
  double idle_timeout_seconds = 75, request_timeout_seconds = 3600;
  int64_t max_connections = 4096, max_connections_per_address = 1024, max_unsent_bytes = 1 << 20;
  int64_t max_held_bytes = 256 << 20, max_held_bytes_per_address = 128 << 20;
  double ping_seconds = 15, shutdown_timeout_seconds = 30;
  int64_t handler_threads = 2;
  std::string overload_message = "The server is busy. Try again later.";
  std::vector<std::string> trusted_proxies;
  std::optional<int64_t> max_waiting_requests, max_concurrent_generations;
  std::vector<std::string> extra_stops;
  bool strict_requests = false, allow_request_templates = false, shared_prefix_cache = false;
  bool enable_response_store = true, default_store_responses = true;
  int64_t max_stored_responses = 10000, max_stored_conversations = 1000;
  // Ours: keys, and what is kept on the disk.
  std::optional<std::string> api_keys_file, storage_dir;
  // Ours: adapters.
  std::optional<std::string> adapters_dir;
  // Ours: weights.
  std::optional<std::string> weights_dir;
  bool enable_persistence = true, enable_audit_logging = true;
  double auto_save_interval = 1;
  int64_t max_audit_entries = 10000, wrong_keys_per_minute = 10;
  // Ours: the log.
  LogFormat log_format = LogFormat::text;
  bool log_prompts = false;
  // Ours: what clients write.
  ContentSpecialTokens content_special_tokens = ContentSpecialTokens::tokens;
  // Ours: figures for others.
  std::optional<int64_t> metrics_port;
  bool vllm_metric_names = false;
  std::optional<std::string> otlp_endpoint;

  static constexpr auto doc = "Serve the model over an OpenAI-compatible HTTP API.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::host>("Address to listen on; 127.0.0.1 accepts connections of this machine only, unix:/path those of "
                        "this user through a Unix socket."),
        field<&C::port>("Port to listen on; 0: a free one, which is printed.", between(0, 65535)),
        field<&C::workers>("Number of server processes; only 1 is possible.", between(1, 1)),
        field<&C::log_level>("How much is logged while the server runs: debug, info, warning or error. Above info no "
                             "line is written for a request. SIGHUP reads it anew from the run's file, or from that of "
                             "--env-file."),
        field<&C::reload>("Reload on code changes. Not possible: the server and the engine are one process."),
        field<&C::ssl_keyfile>("Private key file for HTTPS."),
        field<&C::ssl_certfile>("Certificate file for HTTPS."),
        field<&C::tool_parser_name>(
            "Format in which the model writes tool calls; auto: what its chat template suggests."),
        field<&C::oai_like_processor>("Stream chunks in OpenAI's format."),
        field<&C::enable_function_calling>("Parse tool calls in answers and return them as tool_calls."),
        field<&C::require_api_key>("Refuse requests without a valid API key."),
        field<&C::admin_key>("API key for administrative requests."),
        field<&C::enable_cors>("Answer requests of web pages from other origins (CORS)."),
        field<&C::cors_origins>("Origins that are allowed."),
        field<&C::models>(
            "Other models that are served, by the names that requests give: {small: models/small}, or "
            "with sections model, loader, quantization and esurge of their own: {large: {model: "
            "{name_or_path: models/large}, esurge: {max_num_seqs: 8}}}. Other settings are the run's, and "
            "the memory for KV caches is divided evenly."),
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
        field<&C::max_held_bytes>(
            "Bytes that bodies of requests, what is read from them, and answers that clients do not read may take at a "
            "time. A request that would take more is refused with 503, a stream ends. Up to 32 KiB of a request are "
            "always taken.",
            at_least(65536)),
        field<&C::max_held_bytes_per_address>(
            "The same for one address, which is refused with 429. Raise it if all clients come through a proxy, or "
            "name the proxy in trusted_proxies.",
            at_least(65536)),
        field<&C::ping_seconds>("Seconds without an event after which a stream gets a comment, so that proxies do not "
                                "close it.",
                                above(0)),
        field<&C::shutdown_timeout_seconds>("Seconds in which requests may finish after SIGTERM.", at_least(0)),
        field<&C::handler_threads>("Threads that read and check requests and render templates.", between(1, 256)),
        field<&C::overload_message>("What a client is told that is refused because the server is busy."),
        field<&C::trusted_proxies>(
            "Addresses whose X-Forwarded-For counts, and which have no share of connections and of held bytes."),
        field<&C::max_waiting_requests>("Number of requests that may wait for the engine; more are refused with 503. "
                                        "null: 4 x esurge.max_num_seqs.",
                                        between(1, 1000000)),
        field<&C::max_concurrent_generations>(
            "Number of requests of all models together that may wait or be generated; more are refused with 503. null: "
            "what max_waiting_requests allows.",
            between(1, 1000000)),
        field<&C::extra_stops>("Strings that end every answer, in addition to those of a request and to "
                               "esurge.extra_stops."),
        field<&C::strict_requests>("Refuse requests with unknown fields instead of passing over them."),
        field<&C::allow_request_templates>("Take chat templates from requests. A template is a program; leave this off "
                                           "for clients that you do not trust."),
        field<&C::shared_prefix_cache>("Let requests with different API keys share cached prefixes. Faster, but the "
                                       "time to the first token then tells what others have asked."),
        field<&C::enable_response_store>("Keep responses of /v1/responses in memory, so that they can be read and gone "
                                         "on with by the key that made them."),
        field<&C::default_store_responses>("Whether a response is kept whose request does not say so."),
        field<&C::max_stored_responses>("Number of responses that are kept; the least recently used ones go.",
                                        between(1, 10000000)),
        field<&C::max_stored_conversations>("The same of named conversations.", between(1, 10000000)),
        field<&C::api_keys_file>("File with the API keys, which the server writes when keys change; null: keys.json "
                                 "in storage_dir, or none."),
        field<&C::storage_dir>("Folder for keys, their usage and the audit log; null: they are kept in memory."),
        field<&C::adapters_dir>("Folder below which the routes of adapters find those that they load; null: they load "
                                "none."),
        field<&C::weights_dir>("Folder below which /v1/admin/weights finds the weights that it changes to; null: it "
                               "changes none."),
        field<&C::enable_persistence>("Write what storage_dir and api_keys_file are for. Off, they are only read."),
        field<&C::enable_audit_logging>("Keep a log of what was done with API keys."),
        field<&C::auto_save_interval>("Seconds between two writes of usage and audit log, while something changes; "
                                      "as much is lost when the process is killed.",
                                      above(0)),
        field<&C::max_audit_entries>("Number of entries of the audit log; older ones are dropped.",
                                     between(1, 1000000)),
        field<&C::wrong_keys_per_minute>("Wrong API keys from one address in a minute, after which further wrong "
                                         "ones are refused with 429.",
                                         between(1, 1000000)),
        field<&C::log_format>("Form of log lines: text, or json, one object a line."),
        field<&C::metrics_port>("Port of a second listener that serves /metrics and /health alone, with the same keys; "
                                "0: a free one, which is logged; null: none.",
                                between(0, 65535)),
        field<&C::vllm_metric_names>("Add the engine's metrics under vLLM's names to /metrics, for its dashboards."),
        field<&C::otlp_endpoint>("URL of a collector that gets a trace of each request (OTLP over HTTP, JSON), such as "
                                 "http://127.0.0.1:4318; null: nothing is sent."),
        field<&C::content_special_tokens>(
            "What becomes of special tokens that clients spell in conversations, such as ends of turns: tokens, as in "
            "transformers, or text, so that nobody can write turns in another's name; templates then do not find "
            "them either."),
        field<&C::log_prompts>("Write each request's prompt into its log line, its first 64 KiB. Prompts may be "
                               "private; leave it off unless you look for a mistake."),
    };
  }
  void settle(config::Keys& keys);

  void check_parser_name(config::Keys& keys) const;
};

}  // namespace easydel::server
