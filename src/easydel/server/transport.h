// A connected socket, with or without TLS. All calls and callbacks are on the socket thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

namespace easydel::server {

class Transport {
 public:
  // Number of bytes; `failed`: the other side has closed, or the connection broke.
  using Done = std::function<void(size_t bytes, bool failed)>;

  virtual ~Transport() = default;
  // At most one read and one write at a time; the memory must live until `done`, which is called later, never here.
  virtual void read(std::span<char> into, Done done) = 0;
  virtual void write(std::string_view bytes, Done done) = 0;  // some of the bytes
  virtual void end_output() = 0;                              // nothing more will be written
  virtual void close() = 0;                                   // operations in progress fail
  // Whether the other side closed its output or the connection broke, although nothing is being read.
  virtual bool has_ended() const = 0;
};

}  // namespace easydel::server
