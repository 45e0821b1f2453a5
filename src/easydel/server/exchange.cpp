#include "easydel/server/exchange.h"

#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/server/api_error.h"

namespace easydel::server {

void ExchangeState::mark_gone() {
  std::function<void()> notice;
  {
    std::lock_guard lock(mutex);
    gone = true;
    notice = std::exchange(gone_notice, nullptr);
  }
  if (notice) notice();
}

Exchange::~Exchange() {
  std::unique_lock lock(state_->mutex);
  if (state_->ended) return;
  if (!state_->gone) log::error("request ", state_->request_id, ": its handler ended without an answer");
  if (!state_->response)
    state_->response = error_response({.status = 500, .message = "The server has a defect."}, state_->request.path,
                                      state_->request_id);
  else
    state_->overflowed = true;  // a stream breaks off: its end is not marked, so that the client notices
  state_->ended = true;
  wake(lock);
}

// Wakes the connection unless it is awake already, so that many deltas cost one wake-up.
void Exchange::wake(std::unique_lock<std::mutex>& lock) {
  if (state_->woken || !state_->wake) return;
  state_->woken = true;
  const std::function<void()> call = state_->wake;
  lock.unlock();
  call();
}

void Exchange::answer(HttpResponse response, bool streamed, std::string ping) {
  std::unique_lock lock(state_->mutex);
  check(!state_->response, "a request is answered twice");
  state_->response = std::move(response);
  state_->streamed = streamed;
  state_->ended = !streamed;
  state_->ping = std::move(ping);
  wake(lock);
}

void Exchange::hold(size_t more_bytes) {
  const HeldBytes::Answer answer = state_->held.resize(state_->held.bytes() + more_bytes);
  if (answer != HeldBytes::Answer::granted) throw Refusal(refusal_of(answer));
}

void Exchange::respond(HttpResponse response) { answer(std::move(response), false, ""); }

void Exchange::begin(HttpResponse head, std::string ping) { answer(std::move(head), true, std::move(ping)); }

bool Exchange::write(std::string_view bytes) {
  std::unique_lock lock(state_->mutex);
  check(state_->streamed && !state_->ended, "Exchange::write: there is no stream");
  if (state_->gone || state_->overflowed) return false;
  if (state_->unsent_bytes + bytes.size() > state_->max_unsent_bytes) {
    state_->overflowed = true;
    wake(lock);
    return false;
  }
  state_->pending += bytes;
  state_->unsent_bytes += bytes.size();
  wake(lock);
  return true;
}

void Exchange::end() {
  std::unique_lock lock(state_->mutex);
  check(state_->streamed && !state_->ended, "Exchange::end: there is no stream");
  state_->ended = true;
  wake(lock);
}

bool Exchange::is_gone() const {
  std::lock_guard lock(state_->mutex);
  return state_->gone || state_->overflowed;
}

void Exchange::on_gone(std::function<void()> notice) {
  {
    std::lock_guard lock(state_->mutex);
    if (!state_->gone) {
      state_->gone_notice = std::move(notice);
      return;
    }
  }
  notice();
}

}  // namespace easydel::server
