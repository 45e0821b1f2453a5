// Lines of text between two processes on this machine, over a Unix socket or a port of the loopback interface. No
// torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "easydel/base/error.h"

namespace easydel::text {

// "unix:/path" (or "ipc:///path") or "tcp://127.0.0.1:1234".
struct LineAddress {
  std::string path = {};  // of a Unix socket; empty: a port of 127.0.0.1
  uint16_t port = 0;

  std::string text() const;
};

// UserError "WHERE: ...": the text is not an address. Port 0 is one if `any_port`: the system chooses.
LineAddress parse_line_address(std::string_view text, const Where& where, bool any_port = false);

// What happened to a connection; the text says it: "has ended", "did not answer within 5 s".
struct ConnectionLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An end of a connection; moves its socket. One thread at a time.
class LineConnection {
 public:
  explicit LineConnection(int socket);
  ~LineConnection();
  LineConnection(LineConnection&& other) noexcept;
  LineConnection& operator=(LineConnection&& other) noexcept;

  int socket() const { return socket_; }
  bool is_idle() const;  // open, and nothing came that was not read
  // `line`: without its end. ConnectionLost: the other end has gone, or does not read the line within `seconds`.
  void send(std::string_view line, std::optional<double> seconds) const;
  // The next line without its end; nothing: the other end has closed the connection after a whole line. ConnectionLost:
  // it broke within a line, nothing came within `seconds` (null: it waits), or the line has more than `max_bytes`.
  std::optional<std::string> receive(std::optional<double> seconds, size_t max_bytes = max_line_bytes);

  static constexpr size_t max_line_bytes = size_t{64} << 20;

 private:
  int socket_ = -1;
  std::string read_;  // what came after the last line
};

// ConnectionLost: nobody listens there, or does not take the connection within `seconds`.
LineConnection connect_to(const LineAddress& address, double seconds);

class LineListener {
 public:
  // A Unix socket is for its user alone (mode 0600); one that is left over from a process that was killed is replaced.
  // UserError "WHERE: ...": the address is in use, or cannot be listened on.
  LineListener(const LineAddress& address, const Where& where);
  ~LineListener();  // removes the file of a Unix socket
  LineListener(const LineListener&) = delete;
  LineListener& operator=(const LineListener&) = delete;

  const LineAddress& address() const { return address_; }  // with the port that the system chose
  int socket() const { return socket_; }                   // readable if a connection waits
  std::optional<LineConnection> accept() const;            // nothing: it has gone again

 private:
  LineAddress address_;
  int socket_ = -1;
};

}  // namespace easydel::text
