// Stands in for a header that the torch wheel lacks or that we keep out: see README.md.
#pragma once
#include <chrono>
namespace gloo {
class Context {
 public:
  void setTimeout(std::chrono::milliseconds);
};
}  // namespace gloo
