// One request on its way through a handler, and the answer that goes back. Thread-safe: handlers run on other threads
// than the sockets.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "easydel/server/held_bytes.h"
#include "easydel/server/http_message.h"

namespace easydel::server {

// What a handler and its connection share.
struct ExchangeState {
  HttpRequest request;
  std::string request_id;
  size_t max_unsent_bytes = 1 << 20;
  HeldBytes::Share held;  // the body, and what the handler adds; as long as somebody has the exchange

  std::mutex mutex;
  // All below are guarded by the mutex.
  std::optional<HttpResponse> response;  // whole, or the head of a stream
  bool streamed = false, ended = false, gone = false, overflowed = false;
  std::string pending;         // of a stream: bytes that the connection has not taken yet
  std::string ping;            // of a stream: what is sent after some seconds without an event
  size_t unsent_bytes = 0;     // of a stream: pending, and taken but not written to the socket
  bool woken = false;          // the connection was told that there is something to take
  std::function<void()> wake;  // tells it; runs on the caller's thread
  std::function<void()> gone_notice;

  void mark_gone();  // runs the notice, once
};

// What a handler holds. It answers once: with respond(), or with begin(), any number of write() and end(). A handler
// that lets go of its last Exchange without an answer has a defect; the client then gets a 500, or a stream that breaks
// off.
class Exchange {
 public:
  explicit Exchange(std::shared_ptr<ExchangeState> state) : state_(std::move(state)) {}
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  const HttpRequest& request() const { return state_->request; }
  const std::string& request_id() const { return state_->request_id; }

  // Counts memory of the handler's for this request, until nobody has the exchange any more. On the thread of the
  // handler. Refusal: clients hold too much already.
  void hold(size_t more_bytes);

  void respond(HttpResponse response);
  // `ping` is sent whenever nothing was written for ServeConfig::ping_seconds; empty: nothing is.
  void begin(HttpResponse head, std::string ping = "");
  // False: nobody reads any more (the client has gone, or was closed because it reads too slowly). The work is useless.
  bool write(std::string_view bytes);
  void end();

  bool is_gone() const;
  // Runs `notice` once when the client has gone, on the socket thread or, if it has gone already, here.
  void on_gone(std::function<void()> notice);

 private:
  void answer(HttpResponse response, bool streamed, std::string ping);
  void wake(std::unique_lock<std::mutex>& lock);
  std::shared_ptr<ExchangeState> state_;
};

using Handler = std::function<void(std::shared_ptr<Exchange>)>;

}  // namespace easydel::server
