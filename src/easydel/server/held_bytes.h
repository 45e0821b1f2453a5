// A bound on the memory that clients make the server hold: bodies of requests, what is read from them, and answers that
// they do not read. Limits of one connection alone would let a thousand of them fill the memory together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "easydel/server/api_error.h"

namespace easydel::server {

// Thread-safe. Bytes are counted as they are held, not as they are announced.
class HeldBytes : public std::enable_shared_from_this<HeldBytes> {
 public:
  struct Limits {
    size_t all = size_t(256) << 20, per_address = size_t(128) << 20;
  };
  // Beyond the limits a holder still gets so much, so that small requests are served whatever others hold. The memory
  // of all of them is then bounded by the number of connections.
  static constexpr size_t always = 32 << 10;

  enum class Answer : uint8_t { granted, all_are_held, address_holds_its_share, more_than_there_are };

  // What one holder has; given back when it is destroyed.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept { *this = std::move(other); }
    Share& operator=(Share&& other) noexcept;
    ~Share() { resize(0); }
    // Other than `granted`: the share stays as it was. Fewer bytes are always granted.
    Answer resize(size_t bytes);
    size_t bytes() const { return bytes_; }

   private:
    friend class HeldBytes;
    std::shared_ptr<HeldBytes> owner_;  // null: nothing is counted
    std::string address_;               // empty: it has no limit of its own
    size_t bytes_ = 0;
  };

  explicit HeldBytes(const Limits& limits) : limits_(limits) {}
  Share share(const std::string& address);
  size_t bytes() const;
  size_t bytes_of(const std::string& address) const;

 private:
  Answer change(const Share& share, size_t bytes);

  const Limits limits_;
  mutable std::mutex mutex_;
  size_t bytes_ = 0;
  std::map<std::string, size_t, std::less<>> by_address_;  // those that hold something
};

// What a client is told that does not get what it asks for; `answer` is not `granted`.
ApiError refusal_of(HeldBytes::Answer answer);

}  // namespace easydel::server
