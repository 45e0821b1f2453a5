#include "easydel/server/connection.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/sha256.h"

namespace easydel::server {
namespace {

constexpr double linger_seconds = 2;

bool is_safe_id(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
           c == '.';
  });
}

// Assigning an empty string would keep the memory.
void release(std::string& text) { std::string().swap(text); }

void append_chunk(std::string& to, std::string_view bytes) {
  std::array<char, 16> size{};
  const auto end = std::to_chars(size.data(), size.data() + size.size(), bytes.size(), 16).ptr;
  to.append(size.data(), end).append("\r\n").append(bytes).append("\r\n");
}

}  // namespace

std::string new_request_id() {
  static constexpr std::string_view letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string out = "req-";
  for (const unsigned char byte : files::random_bytes(24)) out += letters[byte % letters.size()];
  return out;
}

std::string request_id_of(const HttpRequest& request) {
  const std::string* own = request.header("x-request-id");
  return own && is_safe_id(*own) ? *own : new_request_id();
}

Connection::Connection(const ConnectionHost& host, std::unique_ptr<Transport> transport, std::string address,
                       bool has_share)
    : host_(host),
      transport_(std::move(transport)),
      address_(std::move(address)),
      has_share_(has_share),
      parser_(host.limits.request),
      held_body_(new_share()),
      held_unsent_(new_share()) {
  phase_began_ = write_progress_ = last_event_ = host_.now();
}

Connection::~Connection() = default;

void Connection::set_phase(Phase phase) {
  phase_ = phase;
  phase_began_ = host_.now();
}

std::string Connection::date() const { return http_date(host_.seconds_since_1970()); }

void Connection::start() {
  // A new connection has the time of a head to send its first request; only later ones may be idle.
  set_phase(Phase::head);
  read();
}

void Connection::refuse(const ApiError& error) {
  fail(error);
  read();
}

void Connection::read() {
  if (reading_ || half_closed_ || phase_ == Phase::closed) return;
  // While a request is in progress, later ones wait here. Then only sweep() notices that the client has gone.
  if (inbox_.size() >= host_.limits.request.header_bytes) return;
  reading_ = true;
  transport_->read([self = shared_from_this()](std::string_view bytes) { self->took(bytes); });
}

void Connection::took(std::string_view bytes) {
  reading_ = false;
  if (phase_ == Phase::closed) return;
  if (bytes.empty()) {
    half_closed_ = true;
    if (phase_ != Phase::busy) return close_when_written_ && !outbox_.empty() ? void() : abort();
    // The handler is told. If it has its answer already, the client may still read it.
    exchange_->mark_gone();
    pump();
    return;
  }
  host_.received(bytes.size());
  if (phase_ != Phase::linger && !close_when_written_) {
    inbox_.append(bytes);
    process();
  }
  read();
}

void Connection::process() {
  // A client that sends requests and reads no answers is not served further.
  while (!inbox_.empty() && !close_when_written_ && outbox_.size() <= host_.limits.max_unsent_bytes &&
         (phase_ == Phase::idle || phase_ == Phase::head || phase_ == Phase::body)) {
    const bool was_head = parser_.state() == RequestParser::State::head;
    inbox_.erase(0, parser_.feed(inbox_));
    if (const auto held = held_body_.resize(parser_.body_bytes_received()); held != HeldBytes::Answer::granted)
      return fail_for_memory(held);
    if (phase_ == Phase::idle && (parser_.began() || !was_head)) set_phase(Phase::head);
    switch (parser_.state()) {
      case RequestParser::State::head:
        break;
      case RequestParser::State::refused:
        host_.refused(RefusedFor::invalid);
        return fail(parser_.refusal());
      case RequestParser::State::body:
        if (was_head) begin_body();
        break;
      case RequestParser::State::done:
        dispatch();
        break;
    }
  }
  if (inbox_.empty()) inbox_.shrink_to_fit();
}

// The head is complete and a body follows: requests that will be refused anyway are refused before it is read.
void Connection::begin_body() {
  HttpRequest head = parser_.request();
  head.peer_address = address_;
  const std::string id = request_id_of(head);
  if (std::optional<HttpResponse> refusal = host_.check_head(head, id)) return answer(std::move(*refusal), false);
  set_phase(Phase::body);
  if (head.expects_continue && inbox_.empty()) {
    outbox_ += "HTTP/1.1 100 Continue\r\n\r\n";
    flush();
  }
}

void Connection::dispatch() {
  const bool had_body = parser_.request().has_body;
  auto state = std::make_shared<ExchangeState>();
  state->request = parser_.take();
  state->request.peer_address = address_;
  state->request_id = request_id_of(state->request);
  state->max_unsent_bytes = host_.limits.max_unsent_bytes;
  state->held = std::exchange(held_body_, new_share());
  keep_alive_ = state->request.keep_alive;
  set_phase(Phase::busy);
  last_event_ = host_.now();
  head_sent_ = false;
  exchange_ = state;
  const std::weak_ptr<Connection> weak = shared_from_this();
  state->wake = [weak, post = host_.post] {
    post([weak] {
      if (const auto self = weak.lock()) self->pump();
    });
  };
  auto exchange = std::make_shared<Exchange>(state);
  if (!had_body) {
    if (std::optional<HttpResponse> refusal = host_.check_head(state->request, state->request_id))
      return exchange->respond(std::move(*refusal));
  }
  host_.handle(std::move(exchange));
}

void Connection::pump() {
  if (!exchange_ || phase_ != Phase::busy) return;
  std::optional<HttpResponse> response;
  std::string bytes;
  bool streamed = false, ended = false, overflowed = false;
  {
    std::lock_guard lock(exchange_->mutex);
    exchange_->woken = false;
    streamed = exchange_->streamed;
    ended = exchange_->ended;
    overflowed = exchange_->overflowed;
    bytes = std::exchange(exchange_->pending, {});
    if (!head_sent_ && exchange_->response) {
      // Of the others the handler's side still has to see that there is an answer.
      if (streamed)
        response = *exchange_->response;
      else
        response = HttpResponse(std::move(*exchange_->response));
    }
  }
  if (overflowed && streamed) return abort();
  if (response && !streamed) return answer(std::move(*response), keep_alive_);
  if (half_closed_) {
    // A stream to a client that has gone: nothing more is sent, and the connection ends with the handler.
    if (streamed) return abort();
    return;
  }
  const bool head_alone = exchange_->request.method == "HEAD";
  if (response) {
    head_sent_ = true;
    chunked_ = exchange_->request.minor_version > 0;
    keep_alive_ = keep_alive_ && chunked_ && !host_.is_draining();
    outbox_ += head_of(*response, chunked_ ? BodyEnd::chunks : BodyEnd::close, 0, exchange_->request.minor_version,
                       keep_alive_, date());
    host_.answered(response->status);
  }
  if (!bytes.empty()) {
    last_event_ = host_.now();
    if (!head_alone && chunked_)
      append_chunk(outbox_, bytes);
    else if (!head_alone)
      outbox_ += bytes;
    outbox_stream_bytes_ += bytes.size();
  }
  if (!ended) return flush();
  if (chunked_ && !head_alone) outbox_ += "0\r\n\r\n";
  exchange_ = nullptr;
  // The head may have promised more before the server began to drain.
  close_when_written_ = !keep_alive_ || host_.is_draining();
  enter_idle();
  flush();
}

// Sends a whole answer to the request in progress, or to one that was refused while it was read.
void Connection::answer(HttpResponse response, bool keep_alive) {
  // The head of a refused request is still in the parser.
  const HttpRequest& request = exchange_ ? exchange_->request : parser_.request();
  const bool head_alone = request.method == "HEAD";
  const HeldBytes::Answer held = hold_unsent(unsent_bytes() + response.body.size());
  if (held != HeldBytes::Answer::granted) {
    count_refusal(held);
    const std::string id = exchange_ ? exchange_->request_id : request_id_of(request);
    response = error_response(refusal_of(held), request.path, id);
    keep_alive = false;
  }
  keep_alive = keep_alive && !host_.is_draining() && !half_closed_;
  outbox_ += head_of(response, BodyEnd::length, response.body.size(), request.minor_version, keep_alive, date());
  if (!head_alone && !is_status_without_body(response.status)) outbox_ += response.body;
  host_.answered(response.status);
  exchange_ = nullptr;
  close_when_written_ = !keep_alive;
  if (close_when_written_) forget_body();
  enter_idle();
  flush();
}

void Connection::enter_idle() {
  if (phase_ == Phase::closed) return;
  set_phase(Phase::idle);
  if (close_when_written_) return;
  // Pipelined requests are parsed after the stack has unwound: ten thousand in one packet must not nest.
  if (!inbox_.empty())
    host_.post([self = shared_from_this()] {
      if (self->phase_ != Phase::closed) self->process();
      self->read();
    });
  else
    read();
}

void Connection::flush() {
  if (phase_ == Phase::closed) return;
  // Many connections whose clients do not read would fill the memory together.
  if (const auto held = hold_unsent(unsent_bytes()); held != HeldBytes::Answer::granted) {
    count_refusal(held);
    return abort();
  }
  if (writing_) return;
  if (in_flight_.empty()) {
    in_flight_ = std::exchange(outbox_, {});
    in_flight_sent_ = 0;
    in_flight_stream_bytes_ = std::exchange(outbox_stream_bytes_, 0);
    // Events and most answers fit into the socket's buffer.
    if (!in_flight_.empty()) note_sent(transport_->write_now(in_flight_));
  }
  if (in_flight_.empty()) {
    if (!close_when_written_ || phase_ == Phase::linger) return;
    if (half_closed_) return close();
    set_phase(Phase::linger);
    inbox_.clear();
    transport_->end_output();
    return read();
  }
  writing_ = true;
  write_progress_ = host_.now();
  transport_->write(std::string_view(in_flight_).substr(in_flight_sent_),
                    [self = shared_from_this()](size_t bytes, bool failed) { self->wrote(bytes, failed); });
}

void Connection::wrote(size_t bytes, bool failed) {
  writing_ = false;
  if (phase_ == Phase::closed) return release(in_flight_);
  if (failed) return abort();
  note_sent(bytes);
  flush();
  if (phase_ != Phase::idle || inbox_.empty()) return;
  process();
  read();
}

void Connection::note_sent(size_t bytes) {
  host_.sent(bytes);
  in_flight_sent_ += bytes;
  if (in_flight_sent_ < in_flight_.size()) return;
  release(in_flight_);  // an idle connection keeps no answer of megabytes
  in_flight_sent_ = 0;
  hold_unsent(unsent_bytes());
  const size_t sent = std::exchange(in_flight_stream_bytes_, 0);
  if (sent == 0 || !exchange_) return;
  const std::lock_guard lock(exchange_->mutex);
  exchange_->unsent_bytes -= std::min(exchange_->unsent_bytes, sent);
}

void Connection::fail(const ApiError& error) {
  HttpRequest request = parser_.request();
  answer(error_response(error, request.path, request_id_of(request)), false);
}

void Connection::fail_for_memory(HeldBytes::Answer answer) {
  count_refusal(answer);
  fail(refusal_of(answer));
}

void Connection::count_refusal(HeldBytes::Answer answer) {
  const bool of_address = answer == HeldBytes::Answer::address_holds_its_share;
  host_.refused(of_address ? RefusedFor::memory_of_address : RefusedFor::memory);
}

// A few bytes are there at every moment of a stream, and are not counted.
HeldBytes::Answer Connection::hold_unsent(size_t bytes) {
  return held_unsent_.resize(bytes > HeldBytes::always ? bytes : 0);
}

// Of a request that was refused while it was read.
void Connection::forget_body() {
  parser_.forget_body();
  held_body_.resize(0);
}

void Connection::abort() {
  const std::shared_ptr<ExchangeState> exchange = exchange_;
  close();
  if (exchange) exchange->mark_gone();
}

void Connection::close() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  forget_body();
  release(inbox_);
  release(outbox_);
  if (!writing_) release(in_flight_);
  held_unsent_.resize(0);
  transport_->close();
}

void Connection::drain() {
  if (phase_ == Phase::idle && exchange_ == nullptr) {
    close_when_written_ = true;
    flush();
  }
}

void Connection::sweep() {
  const ConnectionLimits& limits = host_.limits;
  const Clock::time_point now = host_.now();
  const auto seconds = [now](Clock::time_point since) { return std::chrono::duration<double>(now - since).count(); };
  const double elapsed = seconds(phase_began_);
  if (phase_ == Phase::closed) return;
  if (writing_ && seconds(write_progress_) > limits.idle_seconds) return abort();
  if (close_when_written_ && phase_ != Phase::linger) return;
  switch (phase_) {
    case Phase::closed:
      return;
    case Phase::idle:
      if (elapsed > limits.idle_seconds) close();
      return;
    case Phase::linger:
      if (elapsed > linger_seconds) close();
      return;
    case Phase::head:
      if (elapsed <= limits.header_seconds) return;
      if (!parser_.began()) return close();
      host_.refused(RefusedFor::too_slow);
      return fail({.status = 408,
                   .message = str("The headers did not arrive within ", limits.header_seconds, " seconds."),
                   .code = "timeout"});
    case Phase::body: {
      const double bytes = double(parser_.body_bytes_received());
      if (elapsed <= std::max(limits.body_seconds, bytes / limits.body_bytes_per_second)) return;
      host_.refused(RefusedFor::too_slow);
      return fail({.status = 408,
                   .message = str("The body arrived with less than ", limits.body_bytes_per_second,
                                  " bytes a second for ", limits.body_seconds, " seconds."),
                   .code = "timeout"});
    }
    case Phase::busy:
      break;
  }
  // Reading tells when the client has gone, except while requests that it sent ahead fill the inbox.
  if (!reading_ && !half_closed_ && transport_->has_ended()) {
    half_closed_ = true;
    exchange_->mark_gone();
    return pump();
  }
  if (elapsed > limits.request_seconds) {
    const std::shared_ptr<ExchangeState> exchange = exchange_;
    if (head_sent_) return abort();
    answer(error_response({.status = 504,
                           .message = str("The request was not answered within ", limits.request_seconds, " seconds."),
                           .code = "deadline"},
                          exchange->request.path, exchange->request_id),
           false);
    return exchange->mark_gone();
  }
  std::string ping;
  if (head_sent_ && chunked_ && seconds(last_event_) > limits.ping_seconds) {
    std::lock_guard lock(exchange_->mutex);
    ping = exchange_->ping;
  }
  if (ping.empty()) return;
  last_event_ = now;
  append_chunk(outbox_, ping);
  flush();
}

}  // namespace easydel::server
