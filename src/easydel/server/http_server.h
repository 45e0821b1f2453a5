// Listens on a TCP port or a Unix socket, with or without TLS, and serves each client by a Connection. One thread has
// all sockets; handlers run in a bounded pool of threads.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/base/clock.h"
#include "easydel/server/connection.h"
#include "easydel/server/exchange.h"

namespace easydel::server {

struct ServeConfig;

struct ServerClock {
  std::function<Clock::time_point()> now = Clock::now;
  std::function<int64_t()> seconds_since_1970;  // empty: the system's
};

// How many connections there are and were. Counted by the socket thread.
struct ConnectionCounts {
  int64_t open = 0, accepted = 0, refused_total = 0, refused_address = 0;
  std::array<int64_t, 4> refused_for = {};  // requests, by RefusedFor
  int64_t held_bytes = 0;                   // of bodies, of what was read from them, and of unsent answers
  int64_t in_progress = 0;                  // requests that a handler has
  int64_t received_bytes = 0, sent_bytes = 0;
};

class HttpServer {
 public:
  struct Callbacks {
    // On the socket thread, before a body is read: an answer refuses the request. May be empty.
    std::function<std::optional<HttpResponse>(const HttpRequest&, const std::string& request_id)> check_head;
    // On a thread of the pool. An exception becomes a 500.
    Handler handle;
    // On the socket thread, with each answer's status. May be empty.
    std::function<void(int status)> answered;
  };

  HttpServer(const ServeConfig& config, Callbacks callbacks, ServerClock clock = {});
  ~HttpServer();  // stop()
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Listens from here on. UserError: the address cannot be used, or certificate and key cannot.
  void start();
  int64_t port() const;         // the one in use; 0: a Unix socket
  std::string address() const;  // "http://127.0.0.1:8000", "https://...", "unix:/path"
  // Accepts nothing more and closes idle connections; requests in progress finish. True: all did within `seconds`.
  bool drain(double seconds);
  void stop();                // closes everything
  void reload_certificate();  // for connections from now on; UserError: the old one stays
  void sweep();               // ends what takes too long by now; the server does so four times a second
  ConnectionCounts counts() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace easydel::server
