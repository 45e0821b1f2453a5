// The number of threads of the calling thread's OpenMP pool: torch's own operators use it, and kernels do unless
// UseExecutor (tensor/executor.h) has bound another executor.
#pragma once

namespace easydel::tensor {

int threads();
void set_threads(int count);

// Sets another number for as long as the guard lives.
class Threads {
 public:
  explicit Threads(int count) : before_(threads()) { set_threads(count); }
  ~Threads() { set_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

}  // namespace easydel::tensor
