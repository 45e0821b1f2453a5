// How many threads torch and the kernels that share its team work with.
#pragma once

namespace easydel::tensor {

int threads();
void set_threads(int count);

// Another number while one of these lives.
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
