// Text that is still arriving, and coroutines that read it. A parser is written as if the whole text were available,
// and suspends when it needs more. So parsing a text at once and character by character runs the same code.
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace easydel::text {

// One reader at a time. Not thread-safe; not movable, because suspended readers point to it.
class Incoming {
 public:
  Incoming() = default;
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  // Both run the reader until it needs more text. `more` must consist of whole UTF-8 characters; the text may be split
  // anywhere between them.
  void feed(std::string_view more);
  void end();

  // co_await need(n): true once n bytes are ahead, false if the text ends before.
  auto need(size_t bytes) {
    struct Awaiter {
      Incoming& in;
      size_t bytes;
      bool await_ready() const { return in.remaining().size() >= bytes || in.ended_; }
      void await_suspend(std::coroutine_handle<> reader) const { in.reader_ = reader, in.needed_ = bytes; }
      bool await_resume() const { return in.remaining().size() >= bytes; }
    };
    return Awaiter{*this, bytes};
  }
  // co_await peek(n): the byte n places ahead, or -1 if the text ends before.
  auto peek(size_t place = 0) {
    struct Awaiter {
      Incoming& in;
      size_t place;
      bool await_ready() const { return in.remaining().size() > place || in.ended_; }
      void await_suspend(std::coroutine_handle<> reader) const { in.reader_ = reader, in.needed_ = place + 1; }
      int await_resume() const {
        return in.remaining().size() > place ? static_cast<unsigned char>(in.remaining()[place]) : -1;
      }
    };
    return Awaiter{*this, place};
  }
  std::string_view remaining() const { return std::string_view(text_).substr(at_); }
  void take(size_t bytes) { at_ += bytes; }

  // Keeps what is taken after mark(), for a reader that may find out later that it misinterpreted the text.
  void mark() { mark_ = at_; }
  void forget_mark() { mark_ = std::string::npos; }
  std::string since_mark() const { return text_.substr(mark_, at_ - mark_); }

 private:
  std::string text_;
  size_t at_ = 0, mark_ = std::string::npos, needed_ = 0;
  bool ended_ = false;
  std::coroutine_handle<> reader_;
};

namespace detail {
struct TaskPromise {
  std::coroutine_handle<> caller;
  std::exception_ptr error;
  std::suspend_never initial_suspend() const noexcept { return {}; }
  auto final_suspend() noexcept {
    struct Awaiter {
      bool await_ready() const noexcept { return false; }
      void await_resume() const noexcept {}
      void await_suspend(std::coroutine_handle<>) const noexcept {
        if (caller) caller.resume();
      }
      std::coroutine_handle<> caller;
    };
    Awaiter out;
    out.caller = caller;
    return out;
  }
  void unhandled_exception() { error = std::current_exception(); }
};
}  // namespace detail

// A reader of Incoming: starts immediately and runs until it must wait; co_await it for its result.
//
// g++ 12 miscompiles co_await inside && and ||, and in loop conditions that contain more than it: assign the result to
// a variable first.
template <class T = void>
class [[nodiscard]] Task {
 public:
  struct promise_type : detail::TaskPromise {
    T value{};
    Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    void return_value(T v) { value = std::move(v); }
  };

  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const { return handle_.done(); }
  void await_suspend(std::coroutine_handle<> caller) const { handle_.promise().caller = caller; }
  T await_resume() const {
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    return std::move(handle_.promise().value);
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

template <>
struct Task<void>::promise_type : detail::TaskPromise {
  Task get_return_object() { return Task(std::coroutine_handle<promise_type>::from_promise(*this)); }
  void return_void() {}
};
template <>
inline void Task<void>::await_resume() const {
  if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
}

}  // namespace easydel::text
