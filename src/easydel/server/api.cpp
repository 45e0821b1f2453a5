#include "easydel/server/api.h"

#include <algorithm>
#include <array>

#include "easydel/base/error.h"
#include "easydel/base/json_text.h"
#include "easydel/base/log_fields.h"
#include "easydel/server/request_parser.h"
#include "easydel/server/trace_export.h"

namespace easydel::server {
namespace {

constexpr std::string_view unknown_route = "(unknown)";

}  // namespace

bool is_loopback(std::string_view host) { return host.starts_with("127.") || host == "::1" || host == "localhost"; }

std::optional<std::string> key_of(const HttpRequest& request) {
  constexpr std::string_view scheme = "bearer ";
  if (const std::string* value = request.header("authorization")) {
    const std::string_view text = *value;
    if (text.size() > scheme.size() && equals_ignoring_case(text.substr(0, scheme.size()), scheme))
      return std::string(trimmed(text.substr(scheme.size())));
  }
  const std::string* const key = request.header("x-api-key");
  return key && !key->empty() ? std::optional(*key) : std::nullopt;
}

bool is_local_host(std::string_view host_header) {
  const std::optional<std::string> host = host_name(host_header);
  if (!host) return false;
  if (*host == "localhost" || host->ends_with(".localhost") || *host == "[::1]") return true;
  // All four numbers: "127.evil.example" is a name.
  return host->starts_with("127.") && std::ranges::count(*host, '.') == 3 &&
         host->find_first_not_of("0123456789.") == std::string::npos;
}

Call::Call(std::shared_ptr<Exchange> exchange, RouteMatch match, Admission admission, std::vector<Header> added,
           std::function<void(const Call&)> ended)
    : exchange_(std::move(exchange)),
      match_(std::move(match)),
      admission_(std::move(admission)),
      added_(std::move(added)),
      ended_(std::move(ended)) {}

Call::~Call() { ended_(*this); }

Value Call::body() const {
  Value out = read_value(request().body);
  exchange_->hold(memory_of(out));
  return out;
}

Value Call::body(std::string_view tokens_key, TokenLists& tokens) const {
  Value out = read_value(request().body, tokens_key, tokens);
  exchange_->hold(memory_of(out) + memory_of(tokens));
  return out;
}

void Call::add_headers(HttpResponse& response) {
  status_ = response.status;
  const auto is_there = [&](std::string_view name) {
    return std::ranges::any_of(response.headers, [&](const Header& h) { return equals_ignoring_case(h.name, name); });
  };
  if (!is_there("X-Request-Id")) response.with("X-Request-Id", id());
  for (const Header& header : added_) response.headers.push_back(header);
}

void Call::respond(HttpResponse response) {
  add_headers(response);
  exchange_->respond(std::move(response));
}

void Call::respond_json(int status, std::string body) { respond(json_response(status, std::move(body))); }

void Call::refuse(const ApiError& error) { respond(error_response(error, request().path, id())); }

void Call::begin_events(std::vector<Header> headers) {
  HttpResponse head{.headers = std::move(headers)};
  head.with("Content-Type", "text/event-stream; charset=utf-8");
  head.with("Cache-Control", "no-cache").with("X-Accel-Buffering", "no");
  add_headers(head);
  exchange_->begin(std::move(head), ": ping\n\n");
}

void answer_errors(Call& call, const std::function<void()>& work) {
  try {
    work();
  } catch (const UserError& error) {
    call.refuse(error_of(error));
  } catch (const Refusal& refusal) {
    call.refuse(refusal.error());
  } catch (const std::exception& error) {
    log::error("request ", call.id(), ": ", error.what());
    call.refuse({.status = 500, .message = "The server has a defect."});
  }
}

Api::Api(const ServeConfig& config, KeyStore* keys, const ModelList& models)
    : config_(config), keys_(keys), models_(models) {
  add_own_routes();
  if (keys_) add_admin_routes();
}

void Api::serve(std::string_view method_and_path, CallHandler handler) {
  check(std::ranges::any_of(routes(),
                            [&](const Route& route) { return str(route.method, " ", route.path) == method_and_path; }),
        "Api::serve: '", method_and_path, "' is not a route");
  handlers_[std::string(method_and_path)] = std::move(handler);
}

HttpServer::Callbacks Api::callbacks() {
  return {.check_head = [this](const HttpRequest& request, const std::string& id) { return check_head(request, id); },
          .handle = [this](std::shared_ptr<Exchange> exchange) { handle(std::move(exchange)); },
          .answered = {}};
}

HttpServer::Callbacks Api::metrics_callbacks() {
  HttpServer::Callbacks out = callbacks();
  out.check_head = [this](const HttpRequest& request, const std::string& id) -> std::optional<HttpResponse> {
    constexpr std::array served = {"/metrics", "/health", "/liveness", "/readiness"};
    if (std::ranges::find(served, request.path) != served.end()) return check_head(request, id);
    log_refused(request, id, unknown_route, 404);
    return error_response({.status = 404, .message = "There is no such route.", .code = "route_not_found"},
                          request.path, id);
  };
  return out;
}

std::string Api::address_of(const HttpRequest& request) const {
  const std::string* const forwarded = request.header("x-forwarded-for");
  if (!forwarded || std::ranges::find(config_.trusted_proxies, request.peer_address) == config_.trusted_proxies.end())
    return request.peer_address;
  // The last address is the one that the trusted proxy saw; those before it are what the client says.
  return std::string(trimmed(forwarded->substr(forwarded->rfind(',') + 1)));
}

std::vector<Header> Api::cors_headers(const HttpRequest& request) const {
  const std::string* const origin = request.header("origin");
  if (!config_.enable_cors || !origin) return {};
  const std::vector<std::string> origins = config_.cors_origins.value_or(std::vector<std::string>{"*"});
  if (std::ranges::find(origins, "*") != origins.end()) return {{"Access-Control-Allow-Origin", "*"}};
  if (std::ranges::find(origins, *origin) == origins.end()) return {{"Vary", "Origin"}};
  return {{"Access-Control-Allow-Origin", *origin}, {"Vary", "Origin"}};
}

// What the head alone decides, in the order in which an answer tells least to those who may not ask.
std::optional<ApiError> Api::refusal_of_head(const HttpRequest& request, const RouteMatch& match) const {
  const std::string* const host = request.header("host");
  if (!keys_ && is_loopback(config_.host) && host && !is_local_host(*host))
    return ApiError{.status = 403,
                    .message = "This server answers only requests to a name of its own machine, such as localhost.",
                    .code = "host_not_allowed"};
  const bool hidden = match.route && match.route->scope == Scope::admin && (!keys_ || !keys_->has_admin());
  if (match.allowed.empty() || hidden)
    return ApiError{.status = 404, .message = "There is no such route.", .code = "route_not_found"};
  if (!match.route)
    return ApiError{.status = 405, .message = "This route serves " + match.allow() + ".", .code = "method_not_allowed"};
  if (!match.route->json_body) return std::nullopt;
  const std::string* const type = request.header("content-type");
  if (!type || !equals_ignoring_case(trimmed(type->substr(0, type->find(';'))), "application/json"))
    return ApiError{
        .status = 415, .message = "The Content-Type has to be application/json.", .code = "unsupported_media_type"};
  const std::string* const coding = request.header("content-encoding");
  if (coding && !equals_ignoring_case(*coding, "identity"))
    return ApiError{.status = 415, .message = "Compressed bodies are not supported.", .code = "unsupported_media_type"};
  return std::nullopt;
}

std::optional<HttpResponse> Api::check_head(const HttpRequest& request, const std::string& id) {
  const RouteMatch match = match_route(request.method, request.path);
  std::optional<ApiError> error = refusal_of_head(request, match);
  // Nobody may send a large body without a key. The request is counted when its body is there.
  if (!error && keys_ && match.route->scope != Scope::none && request.has_body) {
    const std::optional<std::string> secret = key_of(request);
    error = keys_->admit(secret ? &*secret : nullptr, address_of(request), *match.route, false).error;
  }
  const std::string route = match.route ? std::string(match.route->path) : std::string(unknown_route);
  if (error && request.method == "OPTIONS" && error->status == 405) {
    HttpResponse out{.status = 204};
    out.with("Allow", match.allow()).with("X-Request-Id", id);
    for (Header& header : cors_headers(request)) out.headers.push_back(std::move(header));
    if (config_.enable_cors && request.header("access-control-request-method"))
      out.with("Access-Control-Allow-Methods", match.allow())
          .with("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Api-Key, X-Request-Id")
          .with("Access-Control-Max-Age", "600");
    return out;
  }
  if (!error) return std::nullopt;
  HttpResponse out = error_response(*error, request.path, id);
  if (error->status == 405) out.with("Allow", match.allow());
  for (Header& header : cors_headers(request)) out.headers.push_back(std::move(header));
  log_refused(request, id, route, error->status);
  return out;
}

void Api::handle(std::shared_ptr<Exchange> exchange) {
  const HttpRequest& request = exchange->request();
  RouteMatch match = match_route(request.method, request.path);
  check(match.route, "a request without a route passed the check of its head");
  const Route& route = *match.route;
  std::vector<Header> added = cors_headers(request);
  Admission admission;
  if (keys_ && route.scope != Scope::none) {
    const std::optional<std::string> secret = key_of(request);
    admission = keys_->admit(secret ? &*secret : nullptr, address_of(request), route);
    const auto add = [&added](const char* name, const std::optional<int64_t>& value, const char* unit = "") {
      if (value) added.push_back({name, str(*value, unit)});
    };
    add("x-ratelimit-limit-requests", admission.rates.limit_requests);
    add("x-ratelimit-remaining-requests", admission.rates.remaining_requests);
    add("x-ratelimit-reset-requests", admission.rates.reset_requests_seconds, "s");
    add("x-ratelimit-limit-tokens", admission.rates.limit_tokens);
    add("x-ratelimit-remaining-tokens", admission.rates.remaining_tokens);
    add("x-ratelimit-reset-tokens", admission.rates.reset_tokens_seconds, "s");
  }
  const std::optional<ApiError> refused = admission.error;
  ++in_flight_;
  const auto call = std::make_shared<Call>(std::move(exchange), std::move(match), std::move(admission),
                                           std::move(added), [this](const Call& ended_call) { ended(ended_call); });
  if (refused) return call->refuse(*refused);
  const auto handler = handlers_.find(str(route.method, " ", route.path));
  if (handler == handlers_.end())
    return call->refuse({.status = 501, .message = str(route.path, " is not supported yet."), .code = "not_built"});
  answer_errors(*call, [&] { handler->second(call); });
}

void Api::count(std::string_view route, int status) {
  std::lock_guard lock(mutex_);
  ++answered_[{std::string(route), status}];
}

void Api::log_refused(const HttpRequest& request, const std::string& id, std::string_view route, int status) {
  count(route, status);
  const std::array fields = {log::Field{"id", id}, log::Field{"route", str(request.method, " ", route)},
                             log::Field{"status", int64_t(status)}, log::Field{"address", address_of(request)}};
  log::write(log::Level::info, "request", fields);
}

void Api::ended(const Call& call) {
  constexpr int client_gone = 499;  // nobody was there to be answered
  const int status = call.status() == 0 ? client_gone : call.status();
  --in_flight_;
  count(call.route().path, status);
  std::vector<log::Field> fields = {{"id", call.id()},
                                    {"key", call.admission().key_id},
                                    {"route", str(call.route().method, " ", call.route().path)},
                                    {"status", int64_t(status)},
                                    {"seconds", call.seconds()}};
  if (const std::string* const parent = call.request().header("traceparent"); parent && parse_trace_parent(*parent))
    fields.push_back({"traceparent", *parent});
  const RequestRecord& record = call.record;
  if (record.unknown_fields > 0) {
    fields.push_back({"unknown_fields", record.unknown_fields});
    std::lock_guard lock(mutex_);
    unknown_fields_[std::string(call.route().path)] += record.unknown_fields;
  }
  if (!record.model.empty()) {
    fields.push_back({"model", record.model});
    fields.push_back({"prompt_tokens", record.prompt_tokens});
    fields.push_back({"cached_tokens", record.cached_tokens});
    fields.push_back({"completion_tokens", record.completion_tokens});
    fields.push_back({"generated_tokens", record.generated_tokens});
    if (record.first_token_seconds) fields.push_back({"first_token_seconds", *record.first_token_seconds});
    fields.push_back({"finish_reason", record.finish_reason});
    if (!record.prompt.empty()) fields.push_back({"prompt", record.prompt});
  }
  log::write(log::Level::info, "request", fields);
  if (ended_listener_) ended_listener_(call);
}

}  // namespace easydel::server
