// One client: reads its requests one after another, hands them to a handler and writes the answers in order. It knows
// no sockets; see transport.h. All of it runs on the socket thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "easydel/base/clock.h"
#include "easydel/server/exchange.h"
#include "easydel/server/held_bytes.h"
#include "easydel/server/request_parser.h"
#include "easydel/server/transport.h"

namespace easydel::server {

struct ConnectionLimits {
  RequestLimits request;
  double header_seconds = 10, body_seconds = 30, idle_seconds = 75, request_seconds = 3600, ping_seconds = 15;
  double body_bytes_per_second = 1024;  // average, once body_seconds are over
  size_t max_unsent_bytes = 1 << 20;
};

// Why a connection refused a request by itself, before a handler had it.
enum class RefusedFor : uint8_t { invalid, too_slow, memory, memory_of_address };

// What a connection needs of the server that owns it.
struct ConnectionHost {
  ConnectionLimits limits;
  std::shared_ptr<HeldBytes> held;
  std::function<Clock::time_point()> now;
  std::function<int64_t()> seconds_since_1970;
  std::function<void(std::function<void()>)> post;  // runs a function on the socket thread; from any thread
  // Looks at a head before its body is read: an answer refuses the request.
  std::function<std::optional<HttpResponse>(const HttpRequest&, const std::string& request_id)> check_head;
  std::function<void(std::shared_ptr<Exchange>)> handle;  // must not block
  std::function<bool()> is_draining;                      // connections close after their answer
  std::function<void(int status)> answered;
  std::function<void(RefusedFor)> refused;
  std::function<void(size_t bytes)> received, sent;  // of a connection's data, without TLS
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `has_share`: what it holds counts for its address, too.
  Connection(const ConnectionHost& host, std::unique_ptr<Transport> transport, std::string address, bool has_share);
  ~Connection();

  void start();
  // Answers with this and closes; instead of start().
  void refuse(const ApiError& error);
  // Ends what takes too long. Called several times a second.
  void sweep();
  // Closes now if nothing is in progress, otherwise after the answer.
  void drain();
  void abort();  // closes at once and tells the handler that the client has gone

  bool is_closed() const { return phase_ == Phase::closed; }
  const std::string& address() const { return address_; }

 private:
  // idle: between requests; head and body: one is being read; busy: a handler has it; linger: everything is written,
  // and what the client still sends is read and dropped, because closing at once could destroy the answer on its way.
  enum class Phase : uint8_t { idle, head, body, busy, linger, closed };

  void read();
  void took(std::string_view bytes);
  void process();
  void begin_body();
  void dispatch();
  void pump();  // takes what the handler has written
  void answer(HttpResponse response, bool keep_alive);
  void enter_idle();
  void flush();
  void wrote(size_t bytes, bool failed);
  void note_sent(size_t bytes);  // of in_flight_
  void close();
  void fail(const ApiError& error);
  void fail_for_memory(HeldBytes::Answer answer);
  void count_refusal(HeldBytes::Answer answer);
  size_t unsent_bytes() const { return outbox_.size() + in_flight_.size(); }
  HeldBytes::Answer hold_unsent(size_t bytes);
  void forget_body();
  void set_phase(Phase phase);
  std::string date() const;

  const ConnectionHost& host_;
  std::unique_ptr<Transport> transport_;
  std::string address_;
  bool has_share_;
  Phase phase_ = Phase::idle;
  Clock::time_point phase_began_, write_progress_, last_event_;
  RequestParser parser_;
  std::string inbox_;  // received, not parsed yet
  bool reading_ = false, writing_ = false;
  HeldBytes::Share new_share() const { return host_.held->share(has_share_ ? address_ : ""); }
  HeldBytes::Share held_body_, held_unsent_;
  std::string outbox_, in_flight_;                               // to write; being written
  size_t in_flight_sent_ = 0;                                    // the first bytes of in_flight_, which are written
  size_t outbox_stream_bytes_ = 0, in_flight_stream_bytes_ = 0;  // payload of a stream in them
  bool close_when_written_ = false, half_closed_ = false, head_sent_ = false, keep_alive_ = true;
  bool chunked_ = false;  // the stream's framing
  std::shared_ptr<ExchangeState> exchange_;
};

std::string new_request_id();  // "req-" and 24 random letters and digits
// The client's own X-Request-Id if it has 1 to 64 safe characters, otherwise a new one.
std::string request_id_of(const HttpRequest& request);

}  // namespace easydel::server
