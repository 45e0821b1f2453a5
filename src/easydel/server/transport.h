// A connected socket, with or without TLS. All calls and callbacks are on the socket thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

namespace easydel::server {

class Transport {
 public:
  // What came, at most `max_read_bytes`, valid during the call alone. Empty: the other side has closed, or the
  // connection broke.
  using Received = std::function<void(std::string_view bytes)>;
  // Number of bytes; `failed`: the other side has closed, or the connection broke.
  using Done = std::function<void(size_t bytes, bool failed)>;
  static constexpr size_t max_read_bytes = 16384;

  virtual ~Transport() = default;
  // At most one read and one write at a time. The callbacks are called later, never here; the transport, and the memory
  // that is written, must live until then.
  virtual void read(Received received) = 0;
  virtual void write(std::string_view bytes, Done done) = 0;  // some of the bytes
  // Writes what can be written without waiting, and returns how much. Not while a write is in progress. 0 is no error:
  // write() tells.
  virtual size_t write_now(std::string_view bytes) {
    static_cast<void>(bytes);
    return 0;
  }
  virtual void end_output() = 0;  // nothing more will be written
  virtual void close() = 0;       // operations in progress fail
  // Whether the other side closed its output or the connection broke, although nothing is being read.
  virtual bool has_ended() const = 0;
};

}  // namespace easydel::server
