// Exact bytes on real sockets of the loopback; time limits on a clock of the test's.
#include "easydel/server/http_server.h"

#include <sys/stat.h>
#include <sys/un.h>

#include <gtest/gtest.h>

#include "easydel/base/log.h"
#include "server/client.h"
#include "support/data.h"

namespace easydel::server {
namespace {

using test::echo;
using test::ok;
using test::RawClient;
using test::RunningServer;
using test::shown;
using test::Signal;
using test::text;

TEST(HttpServer, AnswersRequestsInTheirOrder) {
  RunningServer server(echo);
  RawClient client(server.port(),
                   "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
                   "POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
                   "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n1\r\nf\r\n0\r\n\r\n"
                   "HEAD /d HTTP/1.1\r\nHost: x\r\n\r\n"
                   "GET /e HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string head =
      str("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n", test::test_date, "Content-Length: 8\r\n\r\n");
  EXPECT_EQ(client.all(),
            ok("GET /a ") + ok("POST /b abc") + ok("POST /c def") + head + ok("GET /e ", "Connection: close\r\n"));
}

TEST(HttpServer, AnswersHttp10) {
  RunningServer server(echo);
  RawClient once(server.port(), "GET /a HTTP/1.0\r\n\r\n");
  EXPECT_EQ(once.all(), ok("GET /a ", "Connection: close\r\n"));
  RawClient kept(server.port(), "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(kept.response(), ok("GET /a ", "Connection: keep-alive\r\n"));
  kept.send("GET /b HTTP/1.0\r\n\r\n");
  EXPECT_EQ(kept.all(), ok("GET /b ", "Connection: close\r\n"));
}

TEST(HttpServer, AnswersAThousandPipelinedRequests) {
  RunningServer server(echo);
  RawClient client(server.port());
  std::string requests, expected;
  for (int i = 0; i < 1000; ++i) {
    requests += str("GET /", i, " HTTP/1.1\r\nHost: x\r\n", i == 999 ? "Connection: close\r\n" : "", "\r\n");
    expected += ok(str("GET /", i, " "), i == 999 ? "Connection: close\r\n" : "");
  }
  std::thread sender([&] { client.send(requests); });
  EXPECT_EQ(client.all(), expected);
  sender.join();
}

TEST(HttpServer, AsksForABodyThatWaits) {
  RunningServer server(echo);
  RawClient client(server.port(), "POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ab");
  EXPECT_EQ(client.response(), ok("POST /a ab"));
}

TEST(HttpServer, RefusesBeforeTheBodyIsRead) {
  HttpServer::Callbacks callbacks;
  callbacks.check_head = [](const HttpRequest& request, const std::string& id) -> std::optional<HttpResponse> {
    if (request.path == "/no") return error_response({.status = 404, .message = "There is no /no."}, request.path, id);
    return std::nullopt;
  };
  RunningServer server(echo, {}, callbacks);
  RawClient client(
      server.port(),
      "POST /no HTTP/1.1\r\nHost: x\r\nX-Request-Id: me-1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  const std::string body =
      R"({"error": {"message": "There is no /no.", "type": "not_found_error", "param": null, "code": null}})";
  EXPECT_EQ(client.all(), str("HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nX-Request-Id: me-1\r\n",
                              test::test_date, "Content-Length: ", body.size(), "\r\nConnection: close\r\n\r\n", body));
  RawClient kept(server.port(), "GET /no HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(shown(kept.response()), "HTTP/1.1 404 Not Found There is no /no.");
  kept.send("GET /yes HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(kept.response(), ok("GET /yes "));
}

TEST(HttpServer, RefusesAndCloses) {
  RunningServer server(echo);
  RawClient smuggler(server.port(),
                     "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                     "GET /admin HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(shown(smuggler.all()),
            "HTTP/1.1 400 Bad Request The request has both Content-Length and Transfer-Encoding.");
  RawClient tls(server.port(), "\x16\x03\x01\x02");
  EXPECT_EQ(shown(tls.all()), "HTTP/1.1 400 Bad Request This is not an HTTP request.");
  RawClient large(server.port(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\nabc");
  EXPECT_EQ(shown(large.all()), "HTTP/1.1 413 Content Too Large The body is longer than 8388608 bytes.");
}

TEST(HttpServer, StreamsInChunks) {
  RunningServer server([](std::shared_ptr<Exchange> exchange) {
    HttpResponse head;
    exchange->begin(head.with("Content-Type", "text/event-stream"));
    EXPECT_TRUE(exchange->write("data: one\n\n"));
    exchange->write("data: " + std::string(20, 'x') + "\n\n");
    exchange->end();
  });
  const std::string head = str("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n", test::test_date);
  RawClient old(server.port(), "GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.all(), head + "Connection: close\r\n\r\ndata: one\n\ndata: xxxxxxxxxxxxxxxxxxxx\n\n");
  RawClient alone(server.port(), "HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(alone.all(), head + "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n");
  RawClient client(server.port(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.until("\r\n\r\n"), head + "Transfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(client.chunks(), "data: one\n\ndata: xxxxxxxxxxxxxxxxxxxx\n\n");
}

TEST(HttpServer, TellsTheHandlerThatTheClientHasGone) {
  for (const bool reset : {false, true})
    for (const bool streamed : {false, true}) {
      Signal running, gone;
      std::shared_ptr<Exchange> kept;
      RunningServer server([&](std::shared_ptr<Exchange> exchange) {
        if (streamed) exchange->begin({}), exchange->write("x");
        exchange->on_gone([&] { gone.set(); });
        kept = exchange;
        running.set();
      });
      RawClient client(server.port(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
      ASSERT_TRUE(running.wait());
      if (reset)
        client.reset();
      else
        client.end_output();
      EXPECT_TRUE(gone.wait()) << reset << streamed;
      EXPECT_TRUE(kept->is_gone());
      EXPECT_TRUE(!streamed || !kept->write("more"));
      Signal told;
      kept->on_gone([&] { told.set(); });
      EXPECT_TRUE(told.wait());
      server.http->stop();
    }
}

TEST(HttpServer, NoticesThatAClientHasGoneWhoseRequestsFillTheInbox) {
  Signal running, gone;
  std::shared_ptr<Exchange> kept;
  RunningServer server([&](std::shared_ptr<Exchange> exchange) {
    exchange->on_gone([&] { gone.set(); });
    kept = exchange;
    running.set();
  });
  RawClient client(server.port());
  std::string requests;
  for (int i = 0; i < 2000; ++i) requests += "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  client.send(requests);
  ASSERT_TRUE(running.wait());
  client.close();
  EXPECT_TRUE(gone.wait());
  server.http->stop();
}

TEST(HttpServer, AHandlerWithoutAnAnswerIsA500) {
  log::set_sink([](log::Level, std::string_view) {});
  RunningServer server([](std::shared_ptr<Exchange> exchange) {
    if (exchange->request().path == "/throws") throw Bug("secret.cpp:12: broken");
  });
  RawClient client(server.port());
  for (const char* path : {"/forgets", "/throws"}) {
    client.send(str("GET ", path, " HTTP/1.1\r\nHost: x\r\nX-Request-Id: r1\r\n\r\n"));
    const std::string response = client.response();
    EXPECT_EQ(shown(response), "HTTP/1.1 500 Internal Server Error The server has a defect.");
    EXPECT_EQ(response.find("secret"), std::string::npos);
  }
  log::set_sink(nullptr);
}

TEST(HttpServer, DrainsWithoutBreakingAnAnswer) {
  Signal running;
  std::shared_ptr<Exchange> kept;
  RunningServer server([&](std::shared_ptr<Exchange> exchange) {
    if (exchange->request().path == "/quick") return exchange->respond(text("q"));
    exchange->begin({});
    kept = exchange;
    running.set();
  });
  RawClient idle(server.port(), "GET /quick HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(idle.response(), ok("q"));
  RawClient busy(server.port(), "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(running.wait());
  busy.until("\r\n\r\n");
  EXPECT_FALSE(server.http->drain(0));
  EXPECT_TRUE(idle.is_at_end());
  idle.close();
  EXPECT_FALSE(RawClient(server.port()).connected());
  kept->write("rest");
  kept->end();
  EXPECT_EQ(busy.until("0\r\n\r\n"), "4\r\nrest\r\n0\r\n\r\n");
  EXPECT_TRUE(busy.is_at_end());  // its head was sent before the server began to drain
  busy.close();
  EXPECT_TRUE(server.http->drain(20));
}

TEST(HttpServer, ListensOnAUnixSocketOfItsOwner) {
  test::TemporaryFolder folder;
  const std::string path = (folder / "s").string();
  const auto connected = [&] {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const std::string request = "GET /u HTTP/1.0\r\n\r\n";
    EXPECT_EQ(::send(socket, request.data(), request.size(), 0), ssize_t(request.size()));
    char bytes[4096];
    std::string out;
    for (ssize_t count; (count = ::recv(socket, bytes, sizeof bytes, 0)) > 0;) out.append(bytes, size_t(count));
    ::close(socket);
    return out;
  };
  const auto set = [&](ServeConfig& config) { config.host = "unix:" + path; };
  {
    RunningServer server(echo, set);
    EXPECT_EQ(server.http->address(), "unix:" + path);
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    EXPECT_EQ(connected(), ok("GET /u ", "Connection: close\r\n"));
    EXPECT_EQ(test::refusal([&] { RunningServer second(echo, set); }),
              "host: cannot listen on unix:" + path + ": Address already in use\n    give another path");
    EXPECT_EQ(connected(), ok("GET /u ", "Connection: close\r\n"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  // One that a killed process left is replaced.
  const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(left, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(left);
  RunningServer server(echo, set);
  EXPECT_EQ(connected(), ok("GET /u ", "Connection: close\r\n"));
}

TEST(HttpServer, RefusesAddressesThatItCannotListenOn) {
  RunningServer first(echo);
  EXPECT_GT(first.port(), 0);
  EXPECT_EQ(first.http->address(), str("http://127.0.0.1:", first.port()));
  EXPECT_EQ(test::refusal([&] { RunningServer second(echo, [&](ServeConfig& c) { c.port = first.port(); }); }),
            str("port: ", first.port(), " is in use on 127.0.0.1\n    stop the other program, or give another port"));
  EXPECT_EQ(test::refusal([&] { RunningServer second(echo, [&](ServeConfig& c) { c.host = "192.0.2.1"; }); }),
            "host: cannot listen on 192.0.2.1, port 0: Cannot assign requested address");
  EXPECT_EQ(test::refusal([&] { RunningServer second(echo, [&](ServeConfig& c) { c.host = "unix:"; }); }),
            "host: 'unix:' is not the path of a socket\n    give a path of 1 to 107 bytes");
  const std::string unknown =
      test::refusal([&] { RunningServer second(echo, [&](ServeConfig& c) { c.host = "no such host"; }); });
  EXPECT_TRUE(unknown.starts_with("host: 'no such host' is not an address of this machine: ")) << unknown;
}

}  // namespace
}  // namespace easydel::server
