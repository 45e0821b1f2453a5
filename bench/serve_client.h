// Clients of a server under measurement, with and without TLS.
#pragma once

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "easydel/base/error.h"

namespace easydel::bench {

// A connection that has sent a request.
class Client {
 public:
  Client(int64_t port, SSL_CTX* tls, const std::string& body) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(uint16_t(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    check(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "cannot connect");
    if (tls) {
      ssl_ = SSL_new(tls);
      SSL_set_fd(ssl_, socket_);
      check(SSL_connect(ssl_) == 1, "TLS failed");
    }
    const std::string request =
        str("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ",
            body.size(), "\r\n\r\n", body);
    const auto sent = ssl_ ? SSL_write(ssl_, request.data(), int(request.size()))
                           : int(::send(socket_, request.data(), request.size(), MSG_NOSIGNAL));
    check(sent == int(request.size()), "the request was not sent");
  }
  ~Client() {
    if (ssl_) SSL_free(ssl_);
    ::close(socket_);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  int socket() const { return socket_; }
  // Bytes that are there; empty: the connection has ended. Waits for the first.
  std::string read() {
    std::string out(1 << 16, '\0');
    const auto got =
        ssl_ ? SSL_read(ssl_, out.data(), int(out.size())) : int(::recv(socket_, out.data(), out.size(), 0));
    out.resize(size_t(std::max(got, 0)));
    return out;
  }
  bool has_more() const { return ssl_ && SSL_pending(ssl_) > 0; }

 private:
  int socket_;
  SSL* ssl_ = nullptr;
};

// Counts events of many streams on one thread.
class Readers {
 public:
  Readers(int64_t port, SSL_CTX* tls, int streams) : poll_(::epoll_create1(0)) {
    for (int i = 0; i < streams; ++i) {
      clients_.push_back(std::make_unique<Client>(
          port, tls, R"({"prompt": [5, 6, 7], "stream": true, "max_tokens": 100000, "ignore_eos": true})"));
      epoll_event event{.events = EPOLLIN, .data = {.u32 = uint32_t(i)}};
      ::epoll_ctl(poll_, EPOLL_CTL_ADD, clients_.back()->socket(), &event);
    }
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  ~Readers() {
    thread_ = {};
    ::close(poll_);
  }
  void wait_for(int64_t events) {
    std::unique_lock lock(mutex_);
    check(changed_.wait_for(lock, std::chrono::seconds(120), [&] { return events_ >= events; }), "events do not come");
  }
  int64_t bytes() const { return bytes_; }

 private:
  void run(const std::stop_token& stop) {
    std::vector<epoll_event> ready(256);
    std::vector<std::string> rest(clients_.size());
    const std::string mark = "data: ";
    while (!stop.stop_requested()) {
      const int count = ::epoll_wait(poll_, ready.data(), int(ready.size()), 20);
      int64_t found = 0;
      for (int i = 0; i < count; ++i) {
        const size_t at = ready[size_t(i)].data.u32;
        do {
          std::string& text = rest[at];
          const std::string got = clients_[at]->read();
          bytes_ += std::ssize(got);
          text += got;
          size_t from = 0;
          for (size_t next; (next = text.find(mark, from)) != std::string::npos; from = next + mark.size()) ++found;
          text.erase(0, std::max(from, text.size() - std::min(text.size(), mark.size() - 1)));
        } while (clients_[at]->has_more());
      }
      if (found == 0) continue;
      const std::lock_guard lock(mutex_);
      events_ += found;
      changed_.notify_all();
    }
  }
  int poll_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t events_ = 0;
  std::atomic<int64_t> bytes_ = 0;
  std::jthread thread_;
};

}  // namespace easydel::bench
