// The interface above HTTP: which route answers a request, who may ask, how errors look, what is logged and counted.
// Answers that need no model are here; the others are registered by those who can give them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/server/api_error.h"
#include "easydel/server/exchange.h"
#include "easydel/server/http_server.h"
#include "easydel/server/json_body.h"
#include "easydel/server/key_store.h"
#include "easydel/server/routes.h"
#include "easydel/server/serve_config.h"
#include "easydel/server/served_model.h"

namespace easydel::server {

enum class ServerState : uint8_t { loading, ready, paused, draining };

// What is logged of a request, besides what the server knows itself. A handler fills it in before it lets go.
struct RequestRecord {
  std::string model = {}, finish_reason = {};
  std::string prompt = {};  // with log_prompts
  int64_t prompt_tokens = 0, cached_tokens = 0, completion_tokens = 0;
  // What the engine computed: also tokens that no answer has, and those of equal answers once.
  int64_t generated_tokens = 0;
  int64_t unknown_fields = 0;  // of the body, which had no effect
  // Of the first request to the engine: when it was made, since the call began; how long it waited and how long its
  // first token took, since it was made.
  std::optional<double> engine_seconds = {}, queue_seconds = {}, first_token_seconds = {};
};

// One request for a route, which its key allows.
class Call {
 public:
  Call(std::shared_ptr<Exchange> exchange, RouteMatch match, Admission admission, std::vector<Header> added,
       std::function<void(const Call&)> ended);
  ~Call();  // writes the log line
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const HttpRequest& request() const { return exchange_->request(); }
  const Route& route() const { return *match_.route; }
  std::string parameter(std::string_view name) const { return match_.parameter(name); }
  const Admission& admission() const { return admission_; }
  const std::string& id() const { return exchange_->request_id(); }
  Exchange& exchange() { return *exchange_; }
  RequestRecord record;

  // The body as a document, whose memory counts as held while the call lives (Exchange::hold). UserError as read_value;
  // Refusal.
  Value body() const;
  Value body(std::string_view tokens_key, TokenLists& tokens) const;

  // These add the headers that every answer has (request id, rate limits, CORS).
  void respond(HttpResponse response);
  void respond_json(int status, std::string body);
  void refuse(const ApiError& error);
  void begin_events(std::vector<Header> headers = {});  // text/event-stream with pings

  int status() const { return status_; }
  double seconds() const { return seconds_since(began_); }

 private:
  void add_headers(HttpResponse& response);
  std::shared_ptr<Exchange> exchange_;
  RouteMatch match_;
  Admission admission_;
  std::vector<Header> added_;
  std::function<void(const Call&)> ended_;
  Clock::time_point began_ = Clock::now();
  std::atomic<int> status_ = 0;
};

// Runs `work`; what it throws becomes the answer: UserErrors 400, Refusals theirs, everything else a 500 whose text is
// in the log alone.
void answer_errors(Call& call, const std::function<void()>& work);

using CallHandler = std::function<void(std::shared_ptr<Call>)>;

class Api {
 public:
  // `keys` may be null: then nothing needs a key. Both must outlive the Api.
  Api(const ServeConfig& config, KeyStore* keys, const ModelList& models);

  // `handler` answers "POST /v1/chat/completions". Routes without one are 501. UserErrors become 400. Before the server
  // starts.
  void serve(std::string_view method_and_path, CallHandler handler);
  void set_state(ServerState state) { state_ = state; }
  ServerState state() const { return state_; }
  int64_t in_flight() const { return in_flight_; }  // requests that are being answered
  const ModelList& models() const { return models_; }
  // More text for /metrics, in Prometheus' format: that of the engine.
  void set_metrics_source(std::function<std::string()> source) { metrics_source_ = std::move(source); }

  // The same as a document, for clients that accept application/json.
  void set_metrics_document(std::function<Value()> source) { metrics_document_ = std::move(source); }

  // The connections of the server, for /metrics.
  void set_connection_counts(std::function<ConnectionCounts()> counts) { connection_counts_ = std::move(counts); }

  // Told of each call that has ended.
  void set_ended_listener(std::function<void(const Call&)> listener) { ended_listener_ = std::move(listener); }

  HttpServer::Callbacks callbacks();  // the Api must outlive the server
  // Of a listener that serves metrics and health alone.
  HttpServer::Callbacks metrics_callbacks();

 private:
  std::optional<HttpResponse> check_head(const HttpRequest& request, const std::string& id);
  std::optional<ApiError> refusal_of_head(const HttpRequest& request, const RouteMatch& match) const;
  void handle(std::shared_ptr<Exchange> exchange);
  std::vector<Header> cors_headers(const HttpRequest& request) const;
  std::string address_of(const HttpRequest& request) const;
  void ended(const Call& call);
  void count(std::string_view route, int status);
  void log_refused(const HttpRequest& request, const std::string& id, std::string_view route, int status);
  void add_own_routes();
  void add_admin_routes();
  std::string metrics_text() const;

  const ServeConfig config_;
  KeyStore* const keys_;
  const ModelList& models_;
  std::map<std::string, CallHandler, std::less<>> handlers_;
  std::atomic<ServerState> state_ = ServerState::loading;
  std::function<std::string()> metrics_source_;
  std::function<Value()> metrics_document_;
  std::function<ConnectionCounts()> connection_counts_;
  std::function<void(const Call&)> ended_listener_;
  std::atomic<int64_t> in_flight_ = 0;
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> answered_;     // by route and status
  std::map<std::string, int64_t, std::less<>> unknown_fields_;  // by route
};

// Whether only this machine reaches what listens there.
bool is_loopback(std::string_view host);

// What the client sends as its key; nothing: no key. Only headers count: Authorization: Bearer, and x-api-key.
std::optional<std::string> key_of(const HttpRequest& request);
// Whether a Host header is a name of this machine itself, so that no other site can have its name point here.
bool is_local_host(std::string_view host_header);

}  // namespace easydel::server
