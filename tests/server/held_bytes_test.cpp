// The bound on what clients make the server hold: bodies, what is read from them, and answers that nobody reads.
#include "easydel/server/held_bytes.h"

#include <thread>

#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "easydel/server/json_body.h"
#include "easydel/server/request_parser.h"
#include "server/client.h"
#include "server/fake_engine.h"

namespace easydel::server {
namespace {

using test::echo;
using test::FakeServer;
using test::ok;
using test::RawClient;
using test::RunningServer;
using test::shown;
using Answer = HeldBytes::Answer;

constexpr size_t kib = 1 << 10, mib = 1 << 20;
constexpr std::string_view address_is_full =
    "HTTP/1.1 429 Too Many Requests The requests and unread answers of this address take all the memory that it may "
    "have.";
constexpr std::string_view all_is_full =
    "HTTP/1.1 503 Service Unavailable Requests and unread answers take all the memory that this server has for them.";

TEST(HeldBytes, GrantsUpToItsLimits) {
  const auto held = std::make_shared<HeldBytes>(HeldBytes::Limits{.all = 300 * kib, .per_address = 200 * kib});
  HeldBytes::Share a = held->share("a"), second = held->share("a"), b = held->share("b"), trusted = held->share("");
  EXPECT_EQ(a.resize(150 * kib), Answer::granted);
  EXPECT_EQ(second.resize(50 * kib + 1), Answer::address_holds_its_share);
  EXPECT_EQ(second.bytes(), 0u);
  EXPECT_EQ(second.resize(50 * kib), Answer::granted);
  EXPECT_EQ(a.resize(150 * kib + 1), Answer::address_holds_its_share);
  EXPECT_EQ(a.bytes(), 150 * kib);
  EXPECT_EQ(b.resize(100 * kib + 1), Answer::all_are_held);
  EXPECT_EQ(b.resize(100 * kib), Answer::granted);
  EXPECT_EQ(trusted.resize(33 * kib), Answer::all_are_held);
  EXPECT_EQ(held->bytes(), 300 * kib);
  EXPECT_EQ(held->bytes_of("a"), 200 * kib);
  // Little is always granted, and fewer bytes are.
  EXPECT_EQ(trusted.resize(HeldBytes::always), Answer::granted);
  EXPECT_EQ(trusted.resize(HeldBytes::always + 1), Answer::all_are_held);
  EXPECT_EQ(a.resize(140 * kib), Answer::granted);
  EXPECT_EQ(held->bytes(), 290 * kib + HeldBytes::always);
  // What could never be granted is told apart.
  EXPECT_EQ(b.resize(200 * kib + 1), Answer::more_than_there_are);
  EXPECT_EQ(trusted.resize(200 * kib + 1), Answer::all_are_held);
  EXPECT_EQ(trusted.resize(300 * kib + 1), Answer::more_than_there_are);
}

TEST(HeldBytes, GivesBackWhatAShareHad) {
  const auto held = std::make_shared<HeldBytes>(HeldBytes::Limits{});
  {
    HeldBytes::Share one = held->share("a");
    one.resize(5 * mib);
    HeldBytes::Share other = std::move(one);
    EXPECT_EQ(one.bytes(), 0u);
    EXPECT_EQ(other.bytes(), 5 * mib);
    EXPECT_EQ(held->bytes(), 5 * mib);
    other = held->share("b");
    EXPECT_EQ(held->bytes_of("a"), 0u);
    other.resize(2 * mib);
    EXPECT_EQ(held->bytes_of("b"), 2 * mib);
  }
  EXPECT_EQ(held->bytes(), 0u);
  HeldBytes::Share uncounted;
  EXPECT_EQ(uncounted.resize(size_t(1) << 40), Answer::granted);
}

TEST(HeldBytes, CountsWhatThreadsHoldTogether) {
  const auto held = std::make_shared<HeldBytes>(HeldBytes::Limits{.all = mib, .per_address = mib});
  std::atomic<int64_t> most = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        for (int round = 0; round < 2000; ++round) {
          HeldBytes::Share share = held->share(std::to_string(i % 2));
          if (share.resize(400 * kib) != Answer::granted) continue;
          const auto now = int64_t(held->bytes());
          for (int64_t seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
          }
        }
      });
  }
  EXPECT_EQ(held->bytes(), 0u);
  EXPECT_LE(most, int64_t(mib));
  EXPECT_GE(most, int64_t(400 * kib));
}

// A body of `bytes`, of which the first `sent` follow.
std::string begun(size_t bytes, size_t sent) {
  return str("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ", bytes, "\r\n\r\n") + std::string(sent, 'x');
}

void set_limits(ServeConfig& config, size_t all, size_t per_address) {
  config.max_held_bytes = int64_t(all);
  config.max_held_bytes_per_address = int64_t(per_address);
}

bool holds(const RunningServer& server, size_t bytes) {
  return test::eventually([&] { return server.http->counts().held_bytes == int64_t(bytes); });
}

void answer_size(std::shared_ptr<Exchange> exchange) {
  exchange->respond(test::text(std::to_string(exchange->request().body.size())));
}

TEST(HeldBodies, AreBoundedForAnAddressAndInAll) {
  for (const bool of_address : {true, false}) {
    RunningServer server(answer_size, [&](ServeConfig& config) {
      set_limits(config, (of_address ? 2 : 1) * mib, mib);
      if (!of_address) config.trusted_proxies = {"127.0.0.1"};  // which has no share
    });
    RawClient first(server.port(), begun(mib, 900 * kib));
    ASSERT_TRUE(holds(server, 900 * kib));
    RawClient second(server.port(), begun(mib, 124 * kib));
    ASSERT_TRUE(holds(server, mib));
    // One byte more is refused while its body is read, and what was read of it is given back.
    second.send("x");
    const std::string refusal = second.all();
    EXPECT_EQ(shown(refusal), of_address ? address_is_full : all_is_full);
    EXPECT_NE(refusal.find("Retry-After: 1\r\n"), std::string::npos);
    EXPECT_NE(refusal.find("Connection: close\r\n"), std::string::npos);
    ASSERT_TRUE(holds(server, 900 * kib));
    const std::array<int64_t, 4> refused = server.http->counts().refused_for;
    EXPECT_EQ(refused[size_t(RefusedFor::memory_of_address)], of_address ? 1 : 0);
    EXPECT_EQ(refused[size_t(RefusedFor::memory)], of_address ? 0 : 1);
    // Small requests are served all the while, and the first one when it is complete.
    RawClient small(server.port(), begun(100, 100));
    EXPECT_EQ(small.response(), ok("100"));
    ASSERT_TRUE(holds(server, 900 * kib));  // the small one may have its answer, and its bytes a moment longer
    first.send(std::string(124 * kib, 'x'));
    EXPECT_EQ(first.response(), ok(std::to_string(mib)));
    EXPECT_TRUE(holds(server, 0));
  }
}

TEST(HeldBodies, CountAsTheyCome) {
  RunningServer server(echo);
  RawClient announced(server.port(), begun(8 * mib, 1));
  ASSERT_TRUE(holds(server, 1));
  announced.send(std::string(50000, 'x'));
  ASSERT_TRUE(holds(server, 50001));
  RawClient chunked(server.port(), "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n100\r\nabc");
  ASSERT_TRUE(holds(server, 50004));
  announced.reset();
  ASSERT_TRUE(holds(server, 3));
  chunked.close();
  ASSERT_TRUE(holds(server, 0));
  RequestParser parser(RequestLimits{});
  const std::string head = begun(8 * mib, 0);
  ASSERT_EQ(parser.feed(head), head.size());
  parser.feed(std::string(100, 'x'));
  EXPECT_LT(parser.request().body.capacity(), 1000u);
  const std::string most(8 * mib - 101, 'x');
  for (std::string_view rest = most; !rest.empty(); rest.remove_prefix(std::min<size_t>(rest.size(), 16384)))
    parser.feed(rest.substr(0, 16384));
  EXPECT_EQ(parser.body_bytes_received(), 8 * mib - 1);
  // One byte is left; there is room for it and for what simdjson reads beyond it, and for no more.
  EXPECT_GE(parser.request().body.capacity(), 8 * mib + json_padding);
  EXPECT_LT(parser.request().body.capacity(), 8 * mib + 4 * kib);
  parser.forget_body();
  EXPECT_LT(parser.request().body.capacity(), 100u);
}

TEST(HeldBodies, CountUntilNobodyHasTheRequest) {
  std::shared_ptr<Exchange> kept;
  test::Signal running;
  RunningServer server([&](std::shared_ptr<Exchange> exchange) {
    kept = std::move(exchange);
    running.set();
  });
  RawClient client(server.port(), begun(200 * kib, 200 * kib));
  ASSERT_TRUE(running.wait());
  EXPECT_EQ(server.http->counts().held_bytes, int64_t(200 * kib));
  kept->hold(300 * kib);
  EXPECT_EQ(server.http->counts().held_bytes, int64_t(500 * kib));
  client.reset();
  EXPECT_TRUE(test::eventually([&] { return kept->is_gone(); }));
  EXPECT_EQ(server.http->counts().held_bytes, int64_t(500 * kib));
  kept = nullptr;
  EXPECT_TRUE(holds(server, 0));
}

TEST(HeldBodies, AreGivenBackWhenTheyAreRefused) {
  RunningServer server(echo, [](ServeConfig& config) { config.max_body_bytes = 1000; });
  RawClient client(server.port(), "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n384\r\n" +
                                      std::string(900, 'x') + "\r\nfff\r\n");
  EXPECT_EQ(shown(client.response()), "HTTP/1.1 413 Content Too Large The body is longer than 1000 bytes.");
  // Its connection still waits for the client to see the answer.
  EXPECT_EQ(server.http->counts().held_bytes, 0);
  EXPECT_EQ(server.http->counts().refused_for[size_t(RefusedFor::invalid)], 1);
}

TEST(HeldAnswers, AreBoundedWhereNobodyReads) {
  // More than sockets of the loopback take.
  const std::string large(size_t(24) * mib, 'y');
  RunningServer server(
      [&](const std::shared_ptr<Exchange>& exchange) {
        exchange->respond(test::text(exchange->request().path == "/large" ? large : "small"));
      },
      [](ServeConfig& config) { set_limits(config, 64 * mib, 40 * mib); });
  const std::string request = "GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
  RawClient first(server.port(), request);
  ASSERT_TRUE(test::eventually([&] { return server.http->counts().held_bytes > int64_t(large.size()); }));
  RawClient second(server.port(), request);
  EXPECT_EQ(shown(second.all()), address_is_full);
  RawClient small(server.port(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(small.response(), ok("small"));
  EXPECT_EQ(first.response(), ok(large));
  EXPECT_TRUE(holds(server, 0));
  RawClient again(server.port(), request);
  EXPECT_EQ(again.response(), ok(large));
}

TEST(HeldAnswers, OfRequestsThatWereSentAheadAreBounded) {
  const std::string answer(300 * kib, 'y');
  RunningServer server([&](const std::shared_ptr<Exchange>& exchange) { exchange->respond(test::text(answer)); },
                       [](ServeConfig& config) {
                         set_limits(config, 8 * mib, 8 * mib);
                         config.max_unsent_bytes = 1 << 30;
                       });
  std::string requests;
  for (int i = 0; i < 200; ++i) requests += "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  RawClient client(server.port(), requests);
  ASSERT_TRUE(test::eventually([&] { return server.http->counts().refused_for[size_t(RefusedFor::memory)] > 0; }));
  EXPECT_LE(server.http->counts().held_bytes, int64_t(8 * mib));
  // What fitted was answered whole, then the refusal, then the end.
  const std::string got = client.all();
  EXPECT_TRUE(got.starts_with(ok(answer)));
  EXPECT_NE(got.find("HTTP/1.1 413 Content Too Large\r\n"), std::string::npos);
  EXPECT_LT(got.size(), 100 * answer.size());
  EXPECT_TRUE(holds(server, 0));
}

// What a value takes is at least what its parts take, and grows with each.
TEST(HeldValues, CountTheirMemory) {
  const Value small = parse_json(R"({"a": 1})");
  EXPECT_GE(memory_of(small), 2 * sizeof(Value));
  EXPECT_LT(memory_of(small), 1000u);
  std::string list = "[0";
  for (int i = 1; i < 1000; ++i) list += ",0";
  const Value many = parse_json("{\"a\": " + list + "]}");
  EXPECT_GE(memory_of(many), 1000 * sizeof(Value));
  EXPECT_LT(memory_of(many), 2100 * sizeof(Value));
  const Value text = parse_json("{\"a\": \"" + std::string(100000, 'x') + "\"}");
  EXPECT_GE(memory_of(text), 100000u);
  EXPECT_LT(memory_of(text), 201000u);
  EXPECT_GE(memory_of(TokenLists{.lists = {std::vector<int32_t>(1000)}}), 4000u);
}

std::string many(size_t count, const std::string& item) {
  std::string out = "[" + item;
  for (size_t i = 1; i < count; ++i) out += "," + item;
  return out + "]";
}

TEST(HeldValues, AreBoundedOnEveryRoute) {
  FakeServer server(test::random_answer, [](ServeConfig& config) { set_limits(config, 2 * mib, 2 * mib); });
  const std::string values = R"({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3, "metadata": {"a": )";
  const std::string too_large = "The request or its answer takes more memory than this server gives to one client.";
  EXPECT_EQ(server.post("/v1/chat/completions", values + many(1000, "0") + "}}").status, 200);
  for (const auto& [path, body] : std::vector<std::pair<std::string, std::string>>{
           {"/v1/chat/completions", values + many(40000, "0") + "}}"},
           {"/v1/messages", values + many(40000, "0") + "}}"},
           {"/v1/responses", R"({"input": "hi", "metadata": )" + many(40000, "0") + "}"},
           {"/apply-template", R"({"messages": )" + many(40000, "0") + "}"},
           {"/v1/completions", R"({"prompt": )" + many(1000, "[5]") + R"(, "max_tokens": 1})"},
           {"/tokenize", R"({"return_token_strs": true, "prompt": ")" + std::string(40000, 'a') + "\"}"},
           {"/detokenize", R"({"tokens": )" + many(400000, "5") + "}"}}) {
    // The request before may have its answer, and its memory a moment longer.
    ASSERT_TRUE(test::eventually([&] { return server.http->counts().held_bytes == 0; }));
    const test::Reply reply = server.post(path, body);
    EXPECT_EQ(reply.status, 413) << path;
    EXPECT_EQ(reply.error("message"), too_large) << path;
  }
  ASSERT_TRUE(test::eventually([&] { return server.http->counts().held_bytes == 0; }));
  EXPECT_EQ(server.post("/tokenize", R"({"prompt": ")" + std::string(40000, 'a') + "\"}").status, 200);
  EXPECT_TRUE(test::eventually([&] { return server.http->counts().held_bytes == 0; }));
}

TEST(HeldValues, OfAHistoryAreBounded) {
  FakeServer server(test::random_answer, [](ServeConfig& config) { set_limits(config, 2 * mib, 2 * mib); });
  const std::string turn = R"({"conversation": "c", "max_output_tokens": 3, "input": ")" + std::string(200 * kib, 'a');
  int status = 200;
  int turns = 0;
  for (; status == 200 && turns < 20; ++turns) {
    status = server.post("/v1/responses", turn + "\"}").status;
    ASSERT_TRUE(test::eventually([&] { return server.http->counts().held_bytes == 0; }));
  }
  EXPECT_EQ(status, 413);
  EXPECT_GT(turns, 3);
  EXPECT_EQ(server.post("/v1/responses", R"({"max_output_tokens": 3, "input": "a"})").status, 200);
}

}  // namespace
}  // namespace easydel::server
