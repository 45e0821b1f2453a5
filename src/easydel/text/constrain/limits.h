// What compiling a constraint may cost, and the errors that name the limit which was passed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace easydel::text::constrain {

constexpr size_t max_source_bytes = 64 << 10;  // of a schema, a pattern or a grammar
constexpr int max_schema_depth = 64;           // schemas inside schemas
constexpr int max_group_depth = 200;           // groups inside groups of a pattern or a grammar
constexpr size_t max_states = 400'000;         // of all automata that one compilation makes
constexpr size_t max_choices = 256;
constexpr size_t max_choice_bytes = 4096;
constexpr int64_t max_repetitions = 10'000;     // of one repetition
constexpr int max_blanks = 8;                   // white space in a row, in JSON
constexpr int max_digits = 64;                  // of a JSON number
constexpr size_t max_learned_bytes = 32 << 20;  // of one constraint's states
constexpr double max_seconds = 2;               // of compiling, and of one mask

// The budget of one compilation, or of one mask. Used by one thread; `cancel` may be set by another.
class Work {
 public:
  explicit Work(const std::atomic<bool>* cancel = nullptr) : cancel_(cancel), begin_(thread_seconds()) {}

  // UserError: the time is over, or the work was cancelled.
  void spend(size_t steps = 1) {
    steps_ += steps;
    if (steps_ >= next_) [[unlikely]]
      look();
  }
  // UserError: too many states.
  void add_states(size_t count = 1) {
    states_ += count;
    if (states_ > max_states) [[unlikely]]
      refuse_states();
    spend(count);
  }

  static double thread_seconds();  // CPU time of this thread: a busy machine does not shorten the budget

 private:
  void look();
  [[noreturn]] static void refuse_states();

  const std::atomic<bool>* cancel_;
  double begin_;
  size_t steps_ = 0, next_ = 1 << 16, states_ = 0;
};

}  // namespace easydel::text::constrain
