// Traces of requests: what is sent, whose trace it belongs to, and what happens where nobody takes it.
#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "easydel/base/log.h"
#include "easydel/server/trace_export.h"
#include "server/fake_engine.h"

namespace easydel::server {
namespace {

using test::FakeServer;

TEST(TraceParent, IsReadStrictly) {
  const std::string good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const auto parent = parse_trace_parent(good);
  ASSERT_TRUE(parent);
  EXPECT_EQ(parent->trace_id, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(parent->span_id, "b7ad6b7169203331");
  EXPECT_TRUE(parent->sampled);
  EXPECT_FALSE(parse_trace_parent(good.substr(0, 53) + "00")->sampled);
  EXPECT_TRUE(parse_trace_parent(good.substr(0, 53) + "0f")->sampled);
  for (const std::string& bad :
       {std::string(), good + "0", good.substr(1), "00-" + std::string(32, '0') + good.substr(35),
        good.substr(0, 36) + std::string(16, '0') + "-01", std::string(good).replace(5, 1, "G")})
    EXPECT_FALSE(parse_trace_parent(bad)) << bad;
}

// A collector of the test's own.
struct Collector {
  explicit Collector(int status = 200)
      : server(
            [this, status](std::shared_ptr<Exchange> exchange) {
              const std::lock_guard lock(mutex);
              const HttpRequest& request = exchange->request();
              paths.push_back(request.method + " " + request.path);
              bodies.push_back(request.body);
              exchange->respond({.status = status, .body = "{}"});
            },
            {}) {}
  std::string url() const { return str("http://127.0.0.1:", server.port()); }
  std::vector<Value> spans() {
    const std::lock_guard lock(mutex);
    std::vector<Value> out;
    for (const std::string& body : bodies) {
      const Value document = parse_json(body);
      const Value& scope = document.find("resourceSpans")->items[0].find("scopeSpans")->items[0];
      for (const Value& span : scope.find("spans")->items) out.push_back(span);
    }
    return out;
  }
  std::mutex mutex;
  std::vector<std::string> paths, bodies;
  test::RunningServer server;
};

int64_t time_of(const Value& span, const char* name) { return *parse_json(span.find(name)->scalar).as_int(); }

TEST(TraceExport, SendsASpanOfTheRequestAndThoseOfItsStages) {
  Collector collector;
  const std::string parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  {
    TraceExporter exporter(collector.url());
    FakeServer server;
    server.api.set_ended_listener([&](const Call& call) { exporter.add(call); });
    server.post("/v1/completions", R"({"prompt": "The", "max_tokens": 3, "temperature": 0})",
                "traceparent: " + parent + "\r\n");
    server.post("/v1/completions", R"({"prompt": 5})");
    server.post("/v1/completions", R"({"prompt": "a"})", "traceparent: " + parent.substr(0, 53) + "00\r\n");
    server.http = nullptr;
  }
  EXPECT_EQ(std::set(collector.paths.begin(), collector.paths.end()), (std::set<std::string>{"POST /v1/traces"}));
  std::map<std::string, std::vector<Value>> traces;
  for (const Value& span : collector.spans()) traces[span.find("traceId")->scalar].push_back(span);
  ASSERT_EQ(traces.size(), 2u);  // the third request is not sampled
  const std::vector<Value>& ours = traces["0af7651916cd43dd8448eb211c80319c"];
  ASSERT_EQ(ours.size(), 4u);
  EXPECT_EQ(ours[0].find("name")->scalar, "POST /v1/completions");
  EXPECT_EQ(ours[0].find("parentSpanId")->scalar, "b7ad6b7169203331");
  EXPECT_EQ(*ours[0].find("kind")->as_int(), 2);
  const std::string attributes = to_json(*ours[0].find("attributes"));
  for (const char* part : {R"("gen_ai.request.model", "value": {"stringValue": "tiny"})",
                           R"("gen_ai.usage.output_tokens", "value": {"intValue": "3"})",
                           R"("http.response.status_code", "value": {"intValue": "200"})"})
    EXPECT_NE(attributes.find(part), std::string::npos) << part << attributes;
  int64_t at = time_of(ours[0], "startTimeUnixNano");
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(ours[i].find("name")->scalar, (std::array{"", "queue", "prefill", "decode"})[i]);
    EXPECT_EQ(ours[i].find("parentSpanId")->scalar, ours[0].find("spanId")->scalar);
    EXPECT_LE(at, time_of(ours[i], "startTimeUnixNano"));
    at = time_of(ours[i], "endTimeUnixNano");
    EXPECT_LE(time_of(ours[i], "startTimeUnixNano"), at);
  }
  EXPECT_LE(at, time_of(ours[0], "endTimeUnixNano"));
  traces.erase("0af7651916cd43dd8448eb211c80319c");
  const std::vector<Value>& refused = traces.begin()->second;
  ASSERT_EQ(refused.size(), 1u);  // it never came to the engine
  EXPECT_FALSE(refused[0].find("parentSpanId"));
}

TEST(TraceExport, DropsWhatNobodyTakes) {
  Collector collector(500);
  log::set_sink([](log::Level, std::string_view) {});
  {
    TraceExporter refused(collector.url() + "/own/path"), unreachable("http://127.0.0.1:1/");
    refused.add_spans("{}");
    unreachable.add_spans("{}");
    EXPECT_TRUE(test::eventually([&] { return refused.dropped() == 1 && unreachable.dropped() == 1; }));
  }
  EXPECT_EQ(collector.paths, (std::vector<std::string>{"POST /own/path"}));
  // A collector that never answers delays nobody: what does not fit is dropped.
  test::Signal asked, go_on;
  {
    TraceExporter slow("http://127.0.0.1:1", [&](const std::string&) {
      asked.set();
      go_on.wait();
    });
    slow.add_spans("{}");
    EXPECT_TRUE(asked.wait());
    for (int i = 0; i < 5000; ++i) slow.add_spans("{}");
    EXPECT_EQ(slow.dropped(), 5000 - 4096);
    go_on.set();
  }
  log::set_sink(nullptr);
}

}  // namespace
}  // namespace easydel::server
