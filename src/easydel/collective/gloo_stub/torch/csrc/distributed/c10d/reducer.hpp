// Stands in for a header that the torch wheel lacks or that we keep out: see README.md.
#pragma once
namespace c10d {
class Timer {
 public:
  enum class Event;
};
class Reducer {
 public:
  bool ddp_graph_static() const;
  long num_iterations_;
};
}  // namespace c10d
