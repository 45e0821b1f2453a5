// Routes, permissions and errors through a running server.
#include "easydel/server/api.h"

#include <gtest/gtest.h>

#include <set>

#include "easydel/base/document.h"
#include "easydel/base/log.h"
#include "easydel/server/openapi.h"
#include "server/client.h"
#include "support/data.h"

namespace easydel::server {
namespace {

using test::RawClient;

struct Answer {
  int status = 0;
  std::string head, body;
  Value json() const { return parse_json(body); }
  std::string error(const char* field) const {
    const Value document = json();
    const Value* const value = document.find("error");
    return value && value->find(field) ? value->find(field)->scalar : "";
  }
};

// A server with an Api whose chat route answers "served", and a log that is kept.
struct ApiServer {
  explicit ApiServer(KeyStore* keys = nullptr, const std::function<void(ServeConfig&)>& change = {})
      : config(changed(change)),
        models({{.id = "tiny", .created = 5, .max_model_len = 64, .root = "dir"}}),
        api(config, keys, models) {
    log::set_sink([this](log::Level, std::string_view line) {
      std::lock_guard lock(mutex);
      logged += str(line, "\n");
    });
    api.set_state(ServerState::ready);
    for (const Route& route : routes())
      if (route.scope == Scope::generate && route.path != "/v1/tools/execute")
        api.serve(str(route.method, " ", route.path),
                  [](std::shared_ptr<Call> call) { call->respond_json(200, "{\"answer\": \"served\"}"); });
    api.serve("POST /tokenize",
              [](std::shared_ptr<Call>) { refuse("messages[2].content", "is not text", "give text"); });
    api.serve("POST /detokenize", [](std::shared_ptr<Call>) { throw Bug("secret.cpp:1: broken"); });
    http = std::make_unique<HttpServer>(config, api.callbacks());
    http->start();
  }
  ~ApiServer() {
    http = nullptr;
    log::set_sink(nullptr);
  }
  static ServeConfig changed(const std::function<void(ServeConfig&)>& change) {
    ServeConfig config;
    config.host = "127.0.0.1";
    config.port = 0;
    if (change) change(config);
    return config;
  }
  Answer ask(const std::string& method, const std::string& path, const std::string& headers = "",
             const std::string& body = "", const std::string& host = "localhost") {
    RawClient client(http->port());
    client.send(method + " " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + headers +
                (body.empty() ? "" : str("Content-Length: ", body.size(), "\r\n")) + "\r\n" + body);
    const std::string all = client.all();
    const size_t end = all.find("\r\n\r\n");
    if (end == std::string::npos) return {};
    return {std::stoi(all.substr(9, 3)), all.substr(0, end + 2), all.substr(end + 4)};
  }
  Answer post(const std::string& path, const std::string& headers = "", const std::string& body = "{}") {
    return ask("POST", path, "Content-Type: application/json\r\n" + headers, body);
  }
  std::mutex mutex;
  std::string logged;
  ServeConfig config;
  ModelList models;
  Api api;
  std::unique_ptr<HttpServer> http;
};

TEST(Api, AnswersWithoutAModel) {
  ApiServer server;
  EXPECT_EQ(server.ask("GET", "/health").body, R"({"status": "ready"})");
  EXPECT_EQ(server.ask("GET", "/version").body, R"({"version": ")" EASYDEL_VERSION R"("})");
  EXPECT_EQ(server.ask("GET", "/v1/models").body,
            R"({"object": "list", "data": [{"id": "tiny", "object": "model", "created": 5, "owned_by": "easydel", )"
            R"("max_model_len": 64, "root": "dir", "parent": null, "fingerprint": ""}]})");
  EXPECT_EQ(server.ask("GET", "/models/tiny").status, 200);
  const Answer missing = server.ask("GET", "/v1/models/big%0");
  EXPECT_EQ(missing.status, 400);
  const Answer other = server.ask("GET", "/v1/models/big");
  EXPECT_EQ(other.status, 404);
  EXPECT_EQ(other.error("message"), "Model 'big' not found. Available: tiny");
  EXPECT_EQ(other.error("code"), "model_not_found");
  for (const auto& [state, word] :
       {std::pair{ServerState::loading, "loading"}, std::pair{ServerState::paused, "paused"},
        std::pair{ServerState::draining, "draining"}}) {
    server.api.set_state(state);
    EXPECT_EQ(server.ask("GET", "/readiness").status, 503);
    EXPECT_EQ(server.ask("GET", "/health").body, str(R"({"status": ")", word, "\"}"));
    EXPECT_EQ(server.ask("GET", "/liveness").status, 200);
  }
}

TEST(Api, AnswersEveryRouteAndMethodWithoutA500) {
  ApiServer server;
  for (const Route& route : routes())
    for (const char* method : {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "NONSENSE"}) {
      const Answer answer = server.ask(method, std::string(route.path), "Content-Type: application/json\r\n", "{}");
      const bool served = match_route(method, route.path).route != nullptr;
      const bool admin = route.scope == Scope::admin;
      const bool defect = std::string_view(method) == "POST" && route.path == "/detokenize";
      const int refused = std::string_view(method) == "OPTIONS" ? 204 : 405;
      const int expected = admin && served ? 404 : served ? answer.status : refused;
      EXPECT_EQ(answer.status, expected) << method << " " << route.path;
      EXPECT_TRUE(defect || answer.status != 500) << method << " " << route.path;
      EXPECT_EQ(answer.head.find("\r\nAllow: ") != std::string::npos, answer.status == 405 || answer.status == 204);
      EXPECT_NE(answer.head.find("\r\nX-Request-Id: "), std::string::npos) << method << " " << route.path;
    }
}

TEST(Api, RefusesInOneForm) {
  ApiServer server;
  const Answer unknown = server.ask("GET", "/nothing", "X-Request-Id: abc\r\n");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.body,
            R"({"error": {"message": "There is no such route.", "type": "not_found_error", "param": null, )"
            R"("code": "route_not_found"}})");
  EXPECT_NE(unknown.head.find("\r\nX-Request-Id: abc\r\n"), std::string::npos);
  const Answer method = server.ask("GET", "/v1/chat/completions");
  EXPECT_EQ(method.error("message"), "This route serves POST, OPTIONS.");
  EXPECT_NE(method.head.find("\r\nAllow: POST, OPTIONS\r\n"), std::string::npos);
  EXPECT_EQ(server.ask("POST", "/v1/chat/completions", "", "{}").error("message"),
            "The Content-Type has to be application/json.");
  EXPECT_EQ(server.ask("POST", "/v1/chat/completions", "Content-Type: text/plain\r\n", "{}").status, 415);
  EXPECT_EQ(server.post("/v1/chat/completions", "Content-Encoding: gzip\r\n").error("message"),
            "Compressed bodies are not supported.");
  EXPECT_EQ(
      server.ask("POST", "/v1/chat/completions", "Content-Type: Application/JSON; charset=utf-8\r\n", "{}").status,
      200);
  EXPECT_EQ(server.post("/v1/tools/execute").status, 501);
  EXPECT_EQ(server.post("/v1/embeddings").error("message"), "/v1/embeddings is not supported yet.");
  const Answer wrong = server.post("/tokenize");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(wrong.error("param"), "messages[2].content");
  const Answer defect = server.post("/detokenize");
  EXPECT_EQ(defect.status, 500);
  EXPECT_EQ(defect.body.find("secret"), std::string::npos);
  EXPECT_NE(server.logged.find("secret.cpp:1: broken"), std::string::npos);
  const Answer anthropic = server.ask("GET", "/v1/messages", "X-Request-Id: abc\r\n");
  EXPECT_EQ(anthropic.body, R"({"type": "error", "error": {"type": "invalid_request_error", "message": )"
                            R"("This route serves POST, OPTIONS."}, "request_id": "abc"})");
}

TEST(Api, AnswersOnlyLocalNamesWithoutKeys) {
  ApiServer server;
  for (const char* host : {"localhost", "LOCALHOST:8080", "127.0.0.1:1", "[::1]:1", "a.localhost"})
    EXPECT_EQ(server.ask("GET", "/health", "", "", host).status, 200) << host;
  for (const char* host : {"evil.example", "127.evil.example", "127.0.0.1.evil.example", "localhost.evil.example"})
    EXPECT_EQ(server.ask("GET", "/health", "", "", host).error("code"), "host_not_allowed") << host;
}

TEST(Api, AllowsOtherOriginsOnlyWhereItIsTold) {
  const std::string origin = "Origin: https://a.example\r\n", allowed = "\r\nAccess-Control-Allow-Origin: ";
  ApiServer closed;
  EXPECT_EQ(closed.ask("GET", "/health", origin).head.find(allowed), std::string::npos);
  ApiServer open(nullptr, [](ServeConfig& config) {
    config.enable_cors = true;
    config.cors_origins = {"https://a.example"};
  });
  EXPECT_NE(open.ask("GET", "/health", origin).head.find(allowed + "https://a.example\r\n"), std::string::npos);
  const Answer other = open.ask("GET", "/health", "Origin: https://b.example\r\n");
  EXPECT_EQ(other.head.find(allowed), std::string::npos);
  EXPECT_NE(other.head.find("\r\nVary: Origin\r\n"), std::string::npos);
  const Answer preflight =
      open.ask("OPTIONS", "/v1/chat/completions", origin + "Access-Control-Request-Method: POST\r\n");
  EXPECT_EQ(preflight.status, 204);
  for (const char* line : {"\r\nAllow: POST, OPTIONS\r\n", "\r\nAccess-Control-Allow-Methods: POST, OPTIONS\r\n",
                           "\r\nAccess-Control-Max-Age: 600\r\n"})
    EXPECT_NE(preflight.head.find(line), std::string::npos) << line;
  EXPECT_NE(open.ask("GET", "/nothing", origin).head.find(allowed), std::string::npos);
}

// Every route with every state of a key.
TEST(Api, NeedsAKeyForEveryRouteButThePublicOnes) {
  int64_t now = 1000;
  KeyStore keys(
      {.admin_key = "admin-secret", .wrong_keys_per_minute = 1 << 30, .seconds_since_1970 = [&] { return now; }});
  const auto create = [&](Role role) { return keys.create({.name = "k", .role = role}, "admin"); };
  std::map<Role, std::string> secrets;
  for (const Role role : {Role::admin, Role::user, Role::readonly, Role::service}) secrets[role] = create(role).secret;
  const KeyStore::Created suspended = create(Role::admin), expired = create(Role::admin),
                          elsewhere = create(Role::admin);
  keys.set_suspended(suspended.key.key_id, true, "admin");
  keys.change(expired.key.key_id, parse_json(R"({"expires_at": 10})"), "admin");
  keys.change(elsewhere.key.key_id, parse_json(R"({"permissions": {"allowed_ip_addresses": ["10.0.0.1"]}})"), "admin");
  ApiServer server(&keys);
  const std::set<std::string_view> open = {"/health", "/liveness", "/readiness", "/docs", "/"};
  for (const Route& route : routes()) {
    EXPECT_EQ(route.scope == Scope::none, open.contains(route.path)) << route.path;
    const auto status = [&](const std::string& secret, const char* header = "Authorization: Bearer ") {
      const std::string headers = secret.empty() ? "" : header + secret + "\r\n";
      return server
          .ask(std::string(route.method), std::string(route.path), "Content-Type: application/json\r\n" + headers, "{}")
          .status;
    };
    const std::string name = str(route.method, " ", route.path);
    if (route.scope == Scope::none) {
      EXPECT_NE(status(""), 401) << name;
      continue;
    }
    EXPECT_EQ(status(""), 401) << name;
    EXPECT_EQ(status("wrong"), 401) << name;
    EXPECT_EQ(status(expired.secret), 401) << name;
    EXPECT_EQ(status(suspended.secret), 403) << name;
    EXPECT_EQ(status(elsewhere.secret), 403) << name;
    const int by_admin = status("admin-secret");
    EXPECT_TRUE(by_admin != 401 && by_admin != 403) << name << by_admin;
    for (const auto& [role, secret] : secrets) {
      const int got = status(secret, "X-Api-Key: ");
      const bool refused = got == 401 || got == 403;
      EXPECT_EQ(refused, !allows(role, route.scope)) << name << " " << config::word_of(role) << " " << got;
    }
  }
  // Without a key no body is read: the answer comes although the announced body does not.
  RawClient client(server.http->port(),
                   "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                   "Content-Length: 1000\r\n\r\n");
  EXPECT_TRUE(client.all().starts_with("HTTP/1.1 401 "));
  // A key counts from headers alone.
  const std::string secret = secrets[Role::user];
  EXPECT_EQ(server.ask("GET", "/v1/models?api_key=" + secret + "&key=" + secret).status, 401);
  EXPECT_EQ(server.ask("GET", "/v1/models", "Cookie: api_key=" + secret + "\r\n").status, 401);
  EXPECT_EQ(server.post("/v1/completions", "", R"({"api_key": ")" + secret + "\"}").status, 401);
  EXPECT_EQ(server.ask("GET", "/v1/models", "authorization: bEARER  " + secret + " \r\n").status, 200);
}

TEST(Api, ManagesKeys) {
  KeyStore keys({.admin_key = "admin-secret"});
  ApiServer server(&keys);
  const std::string admin = "Authorization: Bearer admin-secret\r\n";
  const Answer created =
      server.post("/v1/admin/keys", admin, R"({"name": "n", "rate_limits": {"requests_per_minute": 2}})");
  ASSERT_EQ(created.status, 200) << created.body;
  const std::string secret = created.json().find("api_key")->scalar, id = created.json().find("key_id")->scalar;
  EXPECT_EQ(created.body.find("hashed_key"), std::string::npos);
  const std::string own = "X-Api-Key: " + secret + "\r\n";
  const Answer first = server.ask("GET", "/v1/models", own);
  EXPECT_EQ(first.status, 200);
  EXPECT_NE(first.head.find("\r\nx-ratelimit-remaining-requests: 1\r\n"), std::string::npos);
  EXPECT_EQ(server.ask("GET", "/v1/models", own).status, 200);
  const Answer limited = server.ask("GET", "/v1/models", own);
  EXPECT_EQ(limited.status, 429);
  EXPECT_NE(limited.head.find("\r\nRetry-After: "), std::string::npos);
  const std::string path = "/v1/admin/keys/" + id;
  EXPECT_EQ(server
                .ask("PATCH", path, admin + "Content-Type: application/json\r\n",
                     R"({"rate_limits": {"requests_per_minute": null}})")
                .status,
            200);
  EXPECT_EQ(server.ask("GET", "/v1/models", own).status, 200);
  EXPECT_EQ(server.ask("POST", path + "/suspend", admin).json().find("status")->scalar, "suspended");
  EXPECT_EQ(server.ask("GET", "/v1/models", own).status, 403);
  EXPECT_EQ(server.ask("POST", path + "/reactivate", admin).status, 200);
  const std::string rotated = server.ask("POST", path + "/rotate", admin).json().find("api_key")->scalar;
  EXPECT_EQ(server.ask("GET", "/v1/models", own).status, 401);
  EXPECT_EQ(server.ask("GET", "/v1/models", "X-Api-Key: " + rotated + "\r\n").status, 200);
  EXPECT_EQ(server.ask("GET", "/v1/admin/keys/stats", admin).json().find("active_keys")->as_int(), 1);
  EXPECT_EQ(server.ask("DELETE", path + "/revoke", admin).json().find("status")->scalar, "revoked");
  EXPECT_EQ(server.ask("POST", path + "/rotate", admin).status, 400);
  EXPECT_EQ(server.ask("DELETE", path, admin).status, 200);
  EXPECT_EQ(server.ask("GET", path, admin).error("code"), "key_not_found");
  EXPECT_EQ(server.ask("GET", "/v1/admin/audit-logs", admin).json().find("logs")->items.size(), 8u);
  const Answer bad = server.post("/v1/admin/keys", admin, R"({"role": "king", "tagz": 1})");
  EXPECT_EQ(bad.status, 400);
  EXPECT_EQ(bad.error("param"), "role");
  EXPECT_EQ(std::ranges::count(bad.error("message"), '\n'), 2) << bad.error("message");
  EXPECT_EQ(server.post("/v1/admin/keys", admin, "{").error("code"), "invalid_json");
}

TEST(Api, LogsAndCountsRequests) {
  ApiServer server;
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  server.post("/v1/chat/completions", "X-Request-Id: r1\r\n");
  server.ask("GET", "/liveness", "traceparent: " + trace + "\r\n");
  server.ask("GET", "/liveness", "traceparent: 00-forged line\r\n");
  server.ask("GET", "/x%0d%0ay\"", "X-Request-Id: r2\r\n");
  const Answer metrics = server.ask("GET", "/metrics");
  EXPECT_NE(metrics.head.find("Content-Type: text/plain; version=0.0.4"), std::string::npos);
  EXPECT_NE(metrics.body.find("easydel_requests_total{route=\"/v1/chat/completions\",status=\"200\"} 1\n"),
            std::string::npos)
      << metrics.body;
  EXPECT_NE(metrics.body.find("easydel_requests_total{route=\"(unknown)\",status=\"404\"} 1\n"), std::string::npos);
  EXPECT_NE(metrics.body.find("easydel_requests_in_flight 1\n"), std::string::npos);
  std::lock_guard lock(server.mutex);
  EXPECT_NE(server.logged.find("request id=r1 key=\"\" route=\"POST /v1/chat/completions\" status=200 seconds="),
            std::string::npos)
      << server.logged;
  EXPECT_NE(server.logged.find(" traceparent=" + trace + "\n"), std::string::npos) << server.logged;
  EXPECT_EQ(server.logged.find("forged"), std::string::npos);
  EXPECT_NE(server.logged.find("request id=r2 route=\"GET (unknown)\" status=404 address=127.0.0.1\n"),
            std::string::npos)
      << server.logged;
}

TEST(OpenApi, DescribesEveryRoute) {
  const Value document = parse_json(openapi_document());
  EXPECT_EQ(document.find("openapi")->scalar, "3.1.0");
  for (const Route& route : routes()) {
    const Value* const path = document.find("paths")->find(route.path);
    ASSERT_NE(path, nullptr) << route.path;
    std::string method;
    for (const char c : route.method) method += char(c + 32);
    const Value* const operation = path->find(method);
    ASSERT_NE(operation, nullptr) << route.path;
    EXPECT_EQ(operation->find("requestBody") != nullptr, route.json_body) << route.path;
    EXPECT_EQ(operation->find("security") != nullptr, route.scope != Scope::none) << route.path;
  }
}

// A change of the interface is seen in the stored copy, which is renewed on purpose: `curl URL/openapi.json`, indented,
// with VERSION for the version.
TEST(OpenApi, IsTheStoredCopy) {
  const std::string document = test::replaced(to_json(parse_json(openapi_document()), 1),
                                              "\"version\": \"" EASYDEL_VERSION "\"", "\"version\": \"VERSION\"");
  EXPECT_EQ(document + "\n", test::read_file(test::test_data("server/openapi.json")));
}

}  // namespace
}  // namespace easydel::server
