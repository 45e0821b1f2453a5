#include "easydel/server/held_bytes.h"

#include <utility>

namespace easydel::server {

HeldBytes::Share& HeldBytes::Share::operator=(Share&& other) noexcept {
  if (this == &other) return *this;
  resize(0);
  owner_ = std::move(other.owner_);
  address_ = std::move(other.address_);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

HeldBytes::Answer HeldBytes::Share::resize(size_t bytes) {
  if (!owner_ || bytes == bytes_) return Answer::granted;
  const Answer answer = owner_->change(*this, bytes);
  if (answer == Answer::granted) bytes_ = bytes;
  return answer;
}

HeldBytes::Share HeldBytes::share(const std::string& address) {
  Share out;
  out.owner_ = shared_from_this();
  out.address_ = address;
  return out;
}

HeldBytes::Answer HeldBytes::change(const Share& share, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto known = share.address_.empty() ? by_address_.end() : by_address_.find(share.address_);
  const size_t of_address = known == by_address_.end() ? 0 : known->second;
  if (bytes > share.bytes_ && bytes > always) {
    if (bytes > limits_.all || (!share.address_.empty() && bytes > limits_.per_address))
      return Answer::more_than_there_are;
    if (!share.address_.empty() && of_address - share.bytes_ + bytes > limits_.per_address)
      return Answer::address_holds_its_share;
    if (bytes_ - share.bytes_ + bytes > limits_.all) return Answer::all_are_held;
  }
  bytes_ = bytes_ - share.bytes_ + bytes;
  if (share.address_.empty()) return Answer::granted;
  const size_t now = of_address - share.bytes_ + bytes;
  if (now == 0)
    by_address_.erase(known);
  else if (known != by_address_.end())
    known->second = now;
  else
    by_address_.emplace(share.address_, now);
  return Answer::granted;
}

size_t HeldBytes::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

size_t HeldBytes::bytes_of(const std::string& address) const {
  const std::lock_guard lock(mutex_);
  const auto known = by_address_.find(address);
  return known == by_address_.end() ? 0 : known->second;
}

ApiError refusal_of(HeldBytes::Answer answer) {
  switch (answer) {
    case HeldBytes::Answer::address_holds_its_share:
      return {.status = 429,
              .message = "The requests and unread answers of this address take all the memory that it may have.",
              .code = "address_limit_exceeded",
              .retry_after_seconds = 1};
    case HeldBytes::Answer::more_than_there_are:
      return {.status = 413,
              .message = "The request or its answer takes more memory than this server gives to one client.",
              .code = "body_too_large"};
    default:
      return {.status = 503,
              .message = "Requests and unread answers take all the memory that this server has for them.",
              .code = "overloaded",
              .retry_after_seconds = 1};
  }
}

}  // namespace easydel::server
