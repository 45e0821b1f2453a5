// A client on a raw socket, and a server with a clock of the test's; for tests of exact bytes.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>

#include "easydel/server/http_server.h"
#include "easydel/server/serve_config.h"

namespace easydel::test {

// Waits are bounded so that a defect fails a test instead of stopping it; no test depends on how long they take.
constexpr int patience_milliseconds = 20000;

class RawClient {
 public:
  explicit RawClient(int64_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(uint16_t(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  explicit RawClient(int64_t port, std::string_view request) : RawClient(port) { send(request); }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(size_t(sent));
    }
  }
  void end_output() { ::shutdown(socket_, SHUT_WR); }
  void reset() {  // closes so that the server gets a reset
    const linger hard{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close();
  }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  // Reads until `end` has come; everything until then. At the end of the stream, what there is.
  std::string until(std::string_view end) {
    while (received_.find(end) == std::string::npos && more()) {
    }
    const size_t at = received_.find(end);
    const size_t count = at == std::string::npos ? received_.size() : at + end.size();
    std::string out = received_.substr(0, count);
    received_.erase(0, count);
    return out;
  }
  // Everything until the server closes.
  std::string all() {
    while (more()) {
    }
    return std::exchange(received_, {});
  }
  std::string exactly(size_t bytes) {
    while (received_.size() < bytes && more()) {
    }
    std::string out = received_.substr(0, bytes);
    received_.erase(0, out.size());
    if (received_.empty()) received_.shrink_to_fit();  // tests of the server's memory have both ends in one process
    return out;
  }
  // The sum of a chunked body. How deltas are joined into chunks is open.
  std::string chunks() {
    std::string sum;
    while (true) {
      const std::string size = until("\r\n");
      if (size.empty()) return sum + "(cut off)";
      const size_t bytes = std::stoul(size, nullptr, 16);
      sum += exactly(bytes);
      if (exactly(2) != "\r\n") return sum + "(broken)";
      if (bytes == 0) return sum;
    }
  }
  // One response with a Content-Length.
  std::string response() {
    std::string head = until("\r\n\r\n");
    const size_t at = head.find("Content-Length: ");
    const size_t bytes = at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
    return head + exactly(bytes);
  }
  bool is_at_end() { return received_.empty() && !more() && ended_; }

 private:
  bool more() {
    pollfd state{.fd = socket_, .events = POLLIN, .revents = 0};
    if (ended_) return false;
    if (::poll(&state, 1, patience_milliseconds) <= 0) {
      ADD_FAILURE() << "nothing came from the server";
      ended_ = true;
      return false;
    }
    char bytes[65536];
    const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
    if (count <= 0) ended_ = true;
    if (count > 0) received_.append(bytes, size_t(count));
    return count > 0;
  }
  int socket_ = -1;
  bool connected_ = false, ended_ = false;
  std::string received_;
};

// A clock that stands still until the test moves it.
class TestClock {
 public:
  void advance(double seconds) { nanoseconds_ += int64_t(seconds * 1e9); }
  server::ServerClock clock() {
    return {.now = [this] { return Clock::time_point(std::chrono::nanoseconds(nanoseconds_.load())); },
            .seconds_since_1970 = [] { return int64_t{784111777}; }};
  }

 private:
  std::atomic<int64_t> nanoseconds_ = int64_t{1'000'000'000'000};
};

inline constexpr std::string_view test_date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

// A flag that one thread sets and another waits for.
class Signal {
 public:
  void set() {
    std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(patience_milliseconds), [this] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

// Waits until `condition` holds.
template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < patience_milliseconds; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// A running server on a free port of the loopback.
struct RunningServer {
  explicit RunningServer(server::Handler handle, const std::function<void(server::ServeConfig&)>& change = {},
                         server::HttpServer::Callbacks callbacks = {}) {
    config.host = "127.0.0.1";
    config.port = 0;
    if (change) change(config);
    callbacks.handle = std::move(handle);
    http = std::make_unique<server::HttpServer>(config, std::move(callbacks), clock.clock());
    http->start();
  }
  int64_t port() const { return http->port(); }
  TestClock clock;
  server::ServeConfig config;
  std::unique_ptr<server::HttpServer> http;
};

inline server::HttpResponse text(std::string body) {
  server::HttpResponse out{.body = std::move(body)};
  return out.with("Content-Type", "text/plain");
}

// Answers with method, path and body.
inline void echo(std::shared_ptr<server::Exchange> exchange) {
  const server::HttpRequest& request = exchange->request();
  exchange->respond(text(request.method + " " + request.path + " " + request.body));
}

inline std::string ok(std::string_view body, std::string_view more = "") {
  return str("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n", test_date, "Content-Length: ", body.size(), "\r\n",
             more, "\r\n", body);
}

// The status line and the message of an error.
inline std::string shown(const std::string& response) {
  const std::string mark = "\"message\": \"";
  const size_t at = response.find(mark);
  const std::string message =
      at == std::string::npos
          ? ""
          : response.substr(at + mark.size(), response.find('"', at + mark.size()) - at - mark.size());
  return response.substr(0, response.find("\r\n")) + " " + message;
}

}  // namespace easydel::test
