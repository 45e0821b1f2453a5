// Metrics under vLLM's names, and the second listener that serves them.
#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "easydel/server/server.h"
#include "server/fake_engine.h"

namespace easydel::server {
namespace {

using test::FakeServer;

TEST(Metrics, HaveVllmsNamesWhereTheyAreAskedFor) {
  FakeServer plain, named(test::random_answer, [](ServeConfig&config) { config.vllm_metric_names = true; });
  const std::string body = R"({"prompt": "The", "max_tokens": 3, "temperature": 0})";
  EXPECT_EQ(named.post("/v1/completions", body).status, 200);
  EXPECT_EQ(plain.get("/metrics").body.find("vllm:"), std::string::npos);
  const std::string text = named.get("/metrics").body;
  for (const char* line :
       {"# TYPE vllm:num_requests_running gauge\n", "vllm:num_requests_waiting{model_name=\"tiny\"} ",
        "# TYPE vllm:generation_tokens_total counter\n", "vllm:kv_cache_usage_perc{model_name=\"tiny\"} ",
        "# TYPE vllm:time_to_first_token_seconds histogram\n",
        "vllm:e2e_request_latency_seconds_bucket{model_name=\"tiny\",le=\"+Inf\"} ", "esurge_generated_tokens_total{"})
    EXPECT_NE(text.find(line), std::string::npos) << line;
}

ServeConfig on_loopback() {
  ServeConfig config;
  config.host = "127.0.0.1";
  config.port = 0;
  return config;
}

std::string status_of(const std::string& address, const std::string& path, const std::string& headers = "") {
  test::RawClient client(std::stoll(address.substr(address.rfind(':') + 1)));
  client.send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + headers + "\r\n");
  return client.all().substr(9, 3);
}

TEST(Metrics, CountWhatConnectionsRefuse) {
  Server server(on_loopback());
  server.start();
  const int64_t port = std::stoll(server.address().substr(server.address().rfind(':') + 1));
  test::RawClient half(port,
                       "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                       "Content-Length: 100\r\n\r\n{\"prompt\":");
  EXPECT_EQ(test::RawClient(port, "GET / HTTP/9.9\r\n\r\n").all().substr(9, 3), "505");
  const auto metrics = [port] {
    return test::RawClient(port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").all();
  };
  EXPECT_TRUE(test::eventually([&] { return metrics().find("easydel_held_bytes 10\n") != std::string::npos; }));
  const std::string text = metrics();
  for (const char* line : {"# TYPE easydel_refused_total counter\n", "easydel_refused_total{reason=\"invalid\"} 1\n",
                           "easydel_refused_total{reason=\"too_slow\"} 0\n",
                           "easydel_refused_total{reason=\"connections_of_address\"} 0\n",
                           "easydel_refused_total{reason=\"held_bytes_of_address\"} 0\n", "easydel_connections "})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

TEST(MetricsListener, ServesMetricsAndHealthAlone) {
  ServeConfig config = on_loopback();
  config.metrics_port = 0;
  config.admin_key = "the admin's own key";
  Server server(config);
  server.start();
  const std::string address = server.metrics_address(), main = server.address();
  ASSERT_FALSE(address.empty());
  EXPECT_NE(address, main);
  EXPECT_EQ(status_of(address, "/liveness"), "200");
  EXPECT_EQ(status_of(address, "/health"), "503");  // nothing is loaded
  EXPECT_EQ(status_of(address, "/metrics"), "401");
  const std::string key = "Authorization: Bearer the admin's own key\r\n";
  EXPECT_EQ(status_of(address, "/metrics", key), "200");
  for (const char* path : {"/", "/v1/models", "/v1/metrics", "/metrics/", "/v1/admin/keys", "/nothing"})
    EXPECT_EQ(status_of(address, path, key), "404") << path;
  EXPECT_EQ(status_of(main, "/v1/models", key), "200");
  EXPECT_TRUE(server.drain(5));
  test::RawClient gone(std::stoll(address.substr(address.rfind(':') + 1)));
  EXPECT_FALSE(gone.connected());
  // A port that another program has.
  Server first(on_loopback());
  first.start();
  config.metrics_port = std::stoll(first.address().substr(first.address().rfind(':') + 1));
  Server second(config);
  try {
    second.start();
    ADD_FAILURE() << "two listeners have one port";
  } catch (const UserError& error) {
    EXPECT_EQ(error.where, "metrics_port");
  }
  Server without(on_loopback());
  without.start();
  EXPECT_EQ(without.metrics_address(), "");
}

}  // namespace
}  // namespace easydel::server
