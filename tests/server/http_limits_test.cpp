// Limits of time, connections and bytes, on a clock of the test's.
#include <malloc.h>
#include <sys/resource.h>

#include <gtest/gtest.h>

#include "easydel/base/log.h"
#include "server/client.h"

namespace easydel::server {
namespace {

using test::echo;
using test::ok;
using test::RawClient;
using test::RunningServer;
using test::shown;
using test::Signal;

TEST(HttpLimits, ClosesAReaderThatStaysBehind) {
  Signal refused;
  RunningServer server(
      [&](std::shared_ptr<Exchange> exchange) {
        exchange->begin({});
        const std::string block(10000, 'x');
        while (exchange->write(block)) {
        }
        refused.set();
      },
      [](ServeConfig& config) { config.max_unsent_bytes = 100000; });
  RawClient client(server.port(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(refused.wait());
  EXPECT_EQ(client.all().find("0\r\n\r\n"), std::string::npos);
  EXPECT_TRUE(test::eventually([&] { return server.http->counts().open == 0; }));
}

size_t allocated_bytes() {
  const struct mallinfo2 all = ::mallinfo2();
  return all.uordblks + all.hblkhd;
}

TEST(HttpLimits, KeepsLittleOfAnIdleConnection) {
  RunningServer server(echo);
  constexpr size_t count = 200;
  std::vector<std::unique_ptr<RawClient>> clients;
  const size_t before = allocated_bytes();
  for (size_t i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    if (i % 2) continue;
    clients.back()->send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(clients.back()->response(), ok("GET / "));
  }
  EXPECT_TRUE(test::eventually([&] { return server.http->counts().open == int64_t(count); }));
  EXPECT_LT((allocated_bytes() - before) / count, 3000u);
}

TEST(HttpLimits, KeepsNoMemoryOfWhatIdleConnectionsHaveSentAndReceived) {
  RunningServer server([&](const std::shared_ptr<Exchange>& exchange) {
    HttpResponse out{.body = std::string(size_t(1) << 20, 'x')};
    exchange->respond(std::move(out));
  });
  const std::string body(size_t(1) << 20, 'y');
  const size_t before = allocated_bytes();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    clients.back()->send(str("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ", body.size(), "\r\n\r\n") + body);
    EXPECT_GT(clients.back()->response().size(), body.size());
  }
  EXPECT_TRUE(test::eventually([&] { return allocated_bytes() < before + (size_t(4) << 20); }))
      << allocated_bytes() - before;
  EXPECT_EQ(server.http->counts().open, 20);
}

TEST(HttpLimits, EndsWhatTakesTooLong) {
  RunningServer server(echo, [](ServeConfig& config) { config.min_body_bytes_per_second = 10; });
  const auto open = [&] { return server.http->counts().open; };
  const auto pass = [&](double seconds) {
    server.clock.advance(seconds);
    server.http->sweep();
  };
  {
    RawClient silent(server.port());
    ASSERT_TRUE(test::eventually([&] { return open() == 1; }));
    pass(9.9);
    EXPECT_EQ(open(), 1);
    pass(0.2);
    EXPECT_TRUE(silent.is_at_end());
  }
  {
    RawClient slow(server.port(), "GET / HTTP/1.1\r\n");
    ASSERT_TRUE(test::eventually([&] { return open() == 1; }));
    ASSERT_TRUE(test::eventually([&] { return pass(0), open() == 1; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // so that the server has read the line
    pass(10.1);
    EXPECT_EQ(shown(slow.all()), "HTTP/1.1 408 Request Timeout The headers did not arrive within 10 seconds.");
  }
  {
    // The body has 30 seconds, or as long as 10 bytes a second last.
    RawClient body(server.port(), "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n");
    body.until("\r\n\r\n");
    pass(31);
    EXPECT_EQ(shown(body.all()),
              "HTTP/1.1 408 Request Timeout The body arrived with less than 10 bytes a second for 30 seconds.");
  }
  {
    RawClient idle(server.port(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(idle.response(), ok("GET / "));
    pass(74.9);
    EXPECT_EQ(open(), 1);
    pass(0.2);
    EXPECT_TRUE(idle.is_at_end());
  }
  EXPECT_EQ(open(), 0);
}

TEST(HttpLimits, LetsALongBodyComeAtTheLeastRate) {
  std::shared_ptr<Exchange> kept;
  RunningServer server(echo, [](ServeConfig& config) { config.min_body_bytes_per_second = 10; });
  RawClient client(server.port(), "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n");
  client.until("\r\n\r\n");
  client.send(std::string(999, 'x'));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // so that the server has read it
  server.clock.advance(99);
  server.http->sweep();
  client.send("x");
  EXPECT_EQ(client.response(), ok("POST / " + std::string(1000, 'x')));
}

TEST(HttpLimits, EndsARequestThatIsNotAnswered) {
  Signal running, gone;
  std::shared_ptr<Exchange> kept;
  RunningServer server([&](std::shared_ptr<Exchange> exchange) {
    exchange->on_gone([&] { gone.set(); });
    kept = exchange;
    running.set();
  });
  RawClient client(server.port(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(running.wait());
  server.clock.advance(3601);
  server.http->sweep();
  EXPECT_EQ(shown(client.all()), "HTTP/1.1 504 Gateway Timeout The request was not answered within 3600 seconds.");
  EXPECT_TRUE(gone.wait());
}

TEST(HttpLimits, PingsAStreamWithoutEvents) {
  Signal running;
  std::shared_ptr<Exchange> kept;
  RunningServer server([&](std::shared_ptr<Exchange> exchange) {
    exchange->begin({}, ": ping\n\n");
    kept = exchange;
    running.set();
  });
  RawClient client(server.port(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(running.wait());
  client.until("\r\n\r\n");
  server.clock.advance(14.9);
  server.http->sweep();
  server.clock.advance(0.2);
  server.http->sweep();
  EXPECT_EQ(client.until("\n\n\r\n"), "8\r\n: ping\n\n\r\n");
  kept->write("end");
  kept->end();
  EXPECT_EQ(client.until("0\r\n\r\n"), "3\r\nend\r\n0\r\n\r\n");
}

TEST(HttpLimits, LimitsConnections) {
  for (const bool share : {false, true}) {
    RunningServer server(echo, [share](ServeConfig& config) {
      (share ? config.max_connections_per_address : config.max_connections) = 2;
    });
    RawClient first(server.port(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
        second(server.port(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(first.response(), ok("GET / "));
    EXPECT_EQ(second.response(), ok("GET / "));
    RawClient third(server.port());
    EXPECT_EQ(shown(third.all()), share ? "HTTP/1.1 503 Service Unavailable This address has too many connections."
                                        : "HTTP/1.1 503 Service Unavailable The server has too many connections.");
    EXPECT_EQ(server.http->counts().refused_total, share ? 0 : 1);
    EXPECT_EQ(server.http->counts().refused_address, share ? 1 : 0);
    first.close();
    ASSERT_TRUE(test::eventually([&] { return server.http->counts().open == 1; }));
    RawClient fourth(server.port(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(fourth.response(), ok("GET / "));
  }
  RunningServer trusting(echo, [](ServeConfig& config) {
    config.max_connections_per_address = 1;
    config.trusted_proxies = {"127.0.0.1"};
  });
  RawClient first(trusting.port(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
      second(trusting.port(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(first.response(), ok("GET / "));
  EXPECT_EQ(second.response(), ok("GET / "));
}

TEST(HttpLimits, WaitsWhenDescriptorsRunOut) {
  std::string logged;
  std::mutex mutex;
  log::set_sink([&](log::Level, std::string_view line) {
    std::lock_guard lock(mutex);
    logged += str(line, "\n");
  });
  RunningServer server(echo);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit low = before;
  low.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  std::vector<int> filler;
  for (int descriptor = dup(0); descriptor >= 0; descriptor = dup(0)) filler.push_back(descriptor);
  close(filler.back());
  filler.pop_back();
  RawClient client(server.port(), "GET /late HTTP/1.1\r\nHost: x\r\n\r\n");  // has the last descriptor
  EXPECT_TRUE(test::eventually([&] {
    std::lock_guard lock(mutex);
    return logged.find("no more file descriptors: new connections wait") != std::string::npos;
  }));
  for (const int descriptor : filler) close(descriptor);
  EXPECT_EQ(client.response(), ok("GET /late "));
  setrlimit(RLIMIT_NOFILE, &before);
  log::set_sink(nullptr);
}

}  // namespace
}  // namespace easydel::server
