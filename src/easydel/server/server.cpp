#include "easydel/server/server.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/base/log_fields.h"
#include "easydel/base/names.h"
#include "easydel/server/api.h"
#include "easydel/server/conversation_answer.h"
#include "easydel/server/encode_queue.h"
#include "easydel/server/freed_memory.h"
#include "easydel/server/http_server.h"
#include "easydel/server/key_store.h"
#include "easydel/server/response_store.h"
#include "easydel/server/route_context.h"
#include "easydel/server/trace_export.h"

namespace easydel::server {
namespace {

volatile std::sig_atomic_t ending_signal = 0, hangup_signal = 0;

void note_signal(int signal) {
  if (signal == SIGHUP) {
    hangup_signal = 1;
    return;
  }
  if (ending_signal) ::_exit(128 + signal);
  ending_signal = signal;
}

// While it lives, signals are noted instead of ending the process.
class SignalWatch {
 public:
  SignalWatch() {
    ending_signal = 0;
    hangup_signal = 0;
    struct sigaction action = {};
    action.sa_handler = note_signal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    for (size_t i = 0; i < watched.size(); ++i) ::sigaction(watched[i], &action, &before_[i]);
  }
  ~SignalWatch() {
    for (size_t i = 0; i < watched.size(); ++i) ::sigaction(watched[i], &before_[i], nullptr);
  }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  static constexpr std::array watched{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, watched.size()> before_{};
};

// Tells systemd, if it has started the process ("Type=notify").
void notify_service_manager(const char* state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  if (!path || (path[0] != '/' && path[0] != '@') || std::strlen(path) >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path);
  if (path[0] == '@') address.sun_path[0] = '\0';  // an abstract socket
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  const auto bytes = socklen_t(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  if (::sendto(socket, state, std::strlen(state), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address), bytes) < 0)
    log::warning("serve: NOTIFY_SOCKET ", path, ": ", std::strerror(errno));
  ::close(socket);
}

log::Level level_of(LogLevel level) {
  return std::array{log::Level::debug, log::Level::info, log::Level::warning, log::Level::error}[size_t(level)];
}

std::unique_ptr<KeyStore> make_keys(const ServeConfig& config) {
  KeyStoreOptions options;
  if (config.api_keys_file)
    options.file = *config.api_keys_file;
  else if (config.storage_dir)
    options.file = std::filesystem::path(*config.storage_dir) / "keys.json";
  if (!config.require_api_key && !config.admin_key && options.file.empty()) return nullptr;
  options.admin_key = config.admin_key;
  options.max_audit_entries = config.enable_audit_logging ? size_t(config.max_audit_entries) : 0;
  options.wrong_keys_per_minute = config.wrong_keys_per_minute;
  return std::make_unique<KeyStore>(std::move(options));
}

}  // namespace

struct Server::Parts {
  explicit Parts(const ServeConfig& given)
      : config(given),
        keys(make_keys(config)),
        responses({.responses = size_t(config.max_stored_responses),
                   .conversations = size_t(config.max_stored_conversations)}),
        jobs({.max_requests = config.max_waiting_requests.value_or(0),
              .max_of_all_models = config.max_concurrent_generations.value_or(0),
              .timeout_seconds = config.request_timeout_seconds,
              .overload_message = config.overload_message,
              .log_prompts = config.log_prompts,
              .keys = keys.get()}),
        api(config, keys.get(), models),
        encodes({.max_requests = config.max_waiting_requests.value_or(0),
                 .timeout_seconds = config.request_timeout_seconds,
                 .overload_message = config.overload_message}) {
    if (config.otlp_endpoint) {
      traces = std::make_unique<TraceExporter>(*config.otlp_endpoint);
      api.set_ended_listener([this](const Call& call) { traces->add(call); });
    }
    const RouteContext context{config, models, jobs, encodes};
    add_chat_route(api, context);
    add_completion_route(api, context);
    add_model_routes(api, context);
    add_embedding_routes(api, context);
    add_adapter_routes(api, context);
    add_weights_route(api, context, models);
    add_message_routes(api, context);
    add_response_routes(api, context, responses);
  }

  void save_keys() {
    if (!keys || !config.enable_persistence) return;
    try {
      keys->save();
      if (saving_fails.exchange(false)) log::info("serve: the keys are saved again");
    } catch (const std::exception& error) {
      // It is tried again every second, until the disk has room or the folder is back.
      if (!saving_fails.exchange(true)) log::error("serve: the keys were not saved: ", error.what());
    }
  }
  // Saves what has changed, again and again until stop_saving().
  void start_saving() {
    if (!keys || !config.enable_persistence) return;
    saver = std::jthread([this](const std::stop_token& stop) {
      constexpr double longest_wait = 3600;  // far greater ones do not fit into the clock's type
      std::mutex mutex;
      std::condition_variable_any ended;
      std::unique_lock lock(mutex);
      while (!stop.stop_requested()) {
        const std::chrono::duration<double> seconds(std::min(config.auto_save_interval, longest_wait));
        ended.wait_for(lock, stop, seconds, [] { return false; });
        save_keys();
      }
    });
  }

  const ServeConfig config;
  std::function<ServeConfig()> read_config;  // null: it is not read anew
  std::unique_ptr<KeyStore> keys;            // null: nothing needs a key
  std::unique_ptr<TraceExporter> traces;     // null: none are sent
  ModelList models;
  ResponseStore responses;
  AnswerJobs jobs;
  Api api;
  std::unique_ptr<HttpServer> http, metrics;  // metrics: null without metrics_port
  EncodeQueue encodes;                        // its thread ends before what it answers to
  std::atomic<bool> saving_fails = false;
  std::jthread saver;  // ends before what it saves
};

Server::Server(const ServeConfig& config) : parts_(std::make_unique<Parts>(config)) {}

Server::~Server() {
  // Listeners of the engine may still write to connections, and hold what belongs to them.
  if (!parts_->http) return;
  parts_->jobs.cancel_all({.status = 503, .message = "The server has shut down.", .code = "draining"});
  parts_->encodes.cancel_all({.status = 503, .message = "The server has shut down.", .code = "draining"});
  if (parts_->metrics) parts_->metrics->stop();  // it asks the other one for its connections
  parts_->http->stop();
}

void Server::start() {
  Parts& p = *parts_;
  share_one_heap();
  if (p.keys && p.config.enable_persistence) try {
      if (p.config.storage_dir) files::make_directories(*p.config.storage_dir);
      p.keys->save_anyway();
    } catch (const UserError& error) {
      refuse(p.config.api_keys_file ? "api_keys_file" : "storage_dir", error.where + ": " + error.problem,
             "give a path that can be written, or set enable_persistence: false, with which keys are only read");
    }
  log::set_format(p.config.log_format == LogFormat::json ? log::Format::json : log::Format::text);
  if (p.config.log_level != LogLevel::info) log::set_level(level_of(p.config.log_level));
  if (p.keys && !p.config.admin_key && p.keys->list().empty())
    log::warning(
        "serve: requests need API keys, and there are none: every request is refused. Give admin_key, by which keys "
        "are "
        "made, or put some into api_keys_file and send SIGHUP");
  p.http = std::make_unique<HttpServer>(p.config, p.api.callbacks());
  p.api.set_connection_counts([&http = *p.http] { return http.counts(); });
  p.http->start();
  if (!p.keys && !is_loopback(p.config.host) && !p.config.host.starts_with("unix:"))
    log::warning(
        "serve: everybody who reaches ", p.http->address(),
        " can use this server, because it needs no API keys. Give admin_key and make keys, or host: 127.0.0.1");
  if (p.config.metrics_port) {
    ServeConfig config = p.config;
    config.port = *config.metrics_port;
    if (config.host.starts_with("unix:")) config.host = "127.0.0.1";
    p.metrics = std::make_unique<HttpServer>(config, p.api.metrics_callbacks());
    try {
      p.metrics->start();
    } catch (const UserError& error) {
      if (error.where != "port") throw;
      refuse("metrics_port", error.problem, error.remedy);
    }
    log::info("serve: metrics on ", p.metrics->address(), "/metrics");
  }
  p.start_saving();
}

void Server::reload_from(std::function<ServeConfig()> read) { parts_->read_config = std::move(read); }

std::string Server::metrics_address() const { return parts_->metrics ? parts_->metrics->address() : ""; }

std::string Server::address() const { return parts_->http->address(); }

void Server::add(ServedModel model) {
  Parts& p = *parts_;
  const std::string& named = p.config.tool_parser_name;
  if (named != "auto") {
    const std::optional<std::string>& other = model.config.tool_parser;
    if (other && *other != named)
      refuse("serve.tool_parser_name", str("is '", named, "', but esurge.tool_parser is '", *other, "'"),
             "give one of them");
    model.format.tools = named;
  }
  model.extra_stops = p.config.extra_stops;
  if (model.engine && !model.renderer)
    log::warning("serve: the model '", model.id,
                 "' has no chat template, so it answers no conversations; give one with model.chat_template");
  p.models.add(std::move(model));
}

void Server::set_ready() {
  Parts& p = *parts_;
  p.api.set_state(ServerState::ready);
  std::vector<std::string> models;
  for (const auto& model : p.models.all())
    models.push_back(str(model->id, " (context of ", model->max_model_len, " tokens, ", model->pages, " pages",
                         model->fingerprint.empty() ? "" : ", fingerprint " + model->fingerprint, ")"));
  log::info("serve: ready on ", address(), ": ", join(models, ", "),
            p.keys ? "; API keys are needed" : "; no API keys");
  notify_service_manager("READY=1");
}

bool Server::run_until_signal() {
  const SignalWatch watch;
  FreedMemory freed;
  while (!ending_signal) {
    if (hangup_signal) {
      hangup_signal = 0;
      reload();
    }
    freed.look(parts_->api.in_flight() > 0, Clock::now());
    // A signal interrupts the sleep.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  log::info("serve: shutting down; ", parts_->jobs.count() + parts_->encodes.count(), " requests may finish within ",
            parts_->config.shutdown_timeout_seconds, " s; a second signal ends at once");
  return drain(parts_->config.shutdown_timeout_seconds);
}

bool Server::drain(double seconds) {
  Parts& p = *parts_;
  p.api.set_state(ServerState::draining);
  notify_service_manager("STOPPING=1");
  const bool whole = p.http->drain(seconds);
  if (!whole) {
    constexpr double last_words_seconds = 2;
    p.jobs.cancel_all({.status = 503, .message = "The server is shutting down.", .code = "draining"});
    p.encodes.cancel_all({.status = 503, .message = "The server is shutting down.", .code = "draining"});
    p.http->drain(last_words_seconds);
  }
  if (p.metrics) p.metrics->stop();
  p.http->stop();
  p.save_keys();
  return whole;
}

void Server::reload() {
  const auto attempt = [](const char* what, const auto& renew) {
    try {
      renew();
      log::info("serve: read ", what, " anew");
    } catch (const std::exception& error) {
      log::error("serve: ", what, " was not read anew: ", error.what());
    }
  };
  if (parts_->read_config)
    attempt("the log level", [this] { log::set_level(level_of(parts_->read_config().log_level)); });
  attempt("the certificate", [this] {
    parts_->http->reload_certificate();
    if (parts_->metrics) parts_->metrics->reload_certificate();
  });
  if (parts_->keys) attempt("the keys", [this] { parts_->keys->reload(); });
}

}  // namespace easydel::server
