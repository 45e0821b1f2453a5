// Answers that need no model: health, versions, the list of models, counters.
#include <array>

#include "easydel/base/error.h"
#include "easydel/base/json_text.h"
#include "easydel/base/names.h"
#include "easydel/server/api.h"
#include "easydel/server/chat_page.h"
#include "easydel/server/openapi.h"

namespace easydel::server {
namespace {

std::string_view word_of(ServerState state) {
  switch (state) {
    case ServerState::loading:
      return "loading";
    case ServerState::ready:
      return "ready";
    case ServerState::paused:
      return "paused";
    case ServerState::draining:
      return "draining";
  }
  return "";
}

std::string model_json(const ServedModel& model) {
  return str(R"({"id": )", json_text(model.id), R"(, "object": "model", "created": )", model.created,
             R"(, "owned_by": "easydel", "max_model_len": )", model.max_model_len, R"(, "root": )",
             json_text(model.root), R"(, "parent": )", model.parent.empty() ? "null" : json_text(model.parent),
             R"(, "fingerprint": )", json_text(model.fingerprint), "}");
}

// A label's value in Prometheus' text format.
std::string label(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return "\"" + out + "\"";
}

std::string connection_metrics(const ConnectionCounts& counts) {
  const auto family = [](const char* name, const char* type, const char* help) {
    return str("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
  };
  std::string out = family("easydel_connections", "gauge", "Connections that are open.") +
                    str("easydel_connections ", counts.open, "\n");
  out += family("easydel_held_bytes", "gauge",
                "Memory of requests and of answers that were not read (max_held_bytes is the limit).") +
         str("easydel_held_bytes ", counts.held_bytes, "\n");
  out += family("easydel_received_bytes_total", "counter", "Bytes that clients have sent, without TLS.") +
         str("easydel_received_bytes_total ", counts.received_bytes, "\n");
  out += family("easydel_sent_bytes_total", "counter", "Bytes that clients were sent, without TLS.") +
         str("easydel_sent_bytes_total ", counts.sent_bytes, "\n");
  out += family("easydel_refused_total", "counter", "What was refused before a route had it.");
  const auto reason = [&out](const char* name, int64_t count) {
    out += str("easydel_refused_total{reason=\"", name, "\"} ", count, "\n");
  };
  reason("connections", counts.refused_total);
  reason("connections_of_address", counts.refused_address);
  constexpr std::array names = {"invalid", "too_slow", "held_bytes", "held_bytes_of_address"};  // by RefusedFor
  for (size_t i = 0; i < names.size(); ++i) reason(names[i], counts.refused_for[i]);
  return out;
}

}  // namespace

void Api::add_own_routes() {
  const auto health = [this](std::shared_ptr<Call> call) {
    const ServerState now = state();
    HttpResponse out =
        json_response(now == ServerState::ready ? 200 : 503, str(R"({"status": ")", word_of(now), "\"}"));
    if (now != ServerState::ready) out.with("Retry-After", "1");
    call->respond(std::move(out));
  };
  serve("GET /health", health);
  serve("GET /readiness", health);
  serve("GET /liveness", [](std::shared_ptr<Call> call) { call->respond_json(200, R"({"status": "alive"})"); });
  serve("GET /version",
        [](std::shared_ptr<Call> call) { call->respond_json(200, R"({"version": ")" EASYDEL_VERSION R"("})"); });
  serve("GET /v1/models", [this](std::shared_ptr<Call> call) {
    std::string list;
    for (const auto& model : models_.with_adapters()) list += (list.empty() ? "" : ", ") + model_json(*model);
    call->respond_json(200, R"({"object": "list", "data": [)" + list + "]}");
  });
  serve("GET /v1/models/{id}", [this](std::shared_ptr<Call> call) {
    call->respond_json(200, model_json(*models_.find(call->parameter("id"))));
  });
  serve("POST /v1/tools/execute", [](std::shared_ptr<Call> call) {
    call->refuse({.status = 501, .message = "This server runs no tools.", .code = "not_built"});
  });
  serve("GET /", [](std::shared_ptr<Call> call) { call->respond(chat_page()); });
  serve("GET /docs", [](std::shared_ptr<Call> call) { call->respond(docs_page()); });
  serve("GET /openapi.json", [](std::shared_ptr<Call> call) { call->respond_json(200, openapi_document()); });
  serve("GET /metrics", [this](std::shared_ptr<Call> call) {
    const std::string* const accepted = call->request().header("accept");
    if (metrics_document_ && accepted && list_has(*accepted, "application/json"))
      return call->respond_json(200, to_json(metrics_document_()));
    HttpResponse out{.body = metrics_text()};
    call->respond(out.with("Content-Type", "text/plain; version=0.0.4; charset=utf-8"));
  });
}

std::string Api::metrics_text() const {
  std::string out =
      "# HELP easydel_requests_total Requests by route and status.\n"
      "# TYPE easydel_requests_total counter\n";
  {
    std::lock_guard lock(mutex_);
    for (const auto& [key, count] : answered_)
      out += str("easydel_requests_total{route=", label(key.first), ",status=\"", key.second, "\"} ", count, "\n");
    out +=
        "# HELP easydel_unknown_fields_total Fields of requests that are unknown and had no effect.\n"
        "# TYPE easydel_unknown_fields_total counter\n";
    for (const auto& [route, fields] : unknown_fields_)
      out += str("easydel_unknown_fields_total{route=", label(route), "} ", fields, "\n");
  }
  out +=
      str("# HELP easydel_requests_in_flight Requests that are being answered, with this one.\n"
          "# TYPE easydel_requests_in_flight gauge\n"
          "easydel_requests_in_flight ",
          in_flight_.load(), "\n");
  if (connection_counts_) out += connection_metrics(connection_counts_());
  return metrics_source_ ? out + metrics_source_() : out;
}

}  // namespace easydel::server
