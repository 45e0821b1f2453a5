// A thread's vector that is used again and again, so that encoding a text allocates little.
#pragma once

#include <cstddef>
#include <vector>

namespace easydel::text {

// One use of such a vector: empty at its beginning. If the text was so long that the vector takes more than
// `kept_bytes`, its memory is freed at the end; threads of a server would keep it otherwise.
template <class T>
class Scratch {
 public:
  static constexpr size_t kept_bytes = 1 << 20;

  explicit Scratch(std::vector<T>& own) : items(own) { items.clear(); }
  ~Scratch() {
    if (items.capacity() > kept_bytes / sizeof(T)) std::vector<T>().swap(items);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::vector<T>& items;
};

}  // namespace easydel::text
