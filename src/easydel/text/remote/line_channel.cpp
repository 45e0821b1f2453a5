#include "easydel/text/remote/line_channel.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "easydel/base/deadline.h"
#include "easydel/base/files.h"

namespace easydel::text {
namespace {

constexpr std::string_view unix_prefix = "unix:", tcp_prefix = "tcp://127.0.0.1:";
constexpr std::array path_prefixes = {unix_prefix, std::string_view("ipc://")};

// An address as the system has it.
struct Endpoint {
  explicit Endpoint(const LineAddress& address) {
    if (address.path.empty()) {
      auto& in = reinterpret_cast<sockaddr_in&>(storage);
      in.sin_family = AF_INET;
      in.sin_port = htons(address.port);
      in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      size = sizeof in;
    } else {
      auto& un = reinterpret_cast<sockaddr_un&>(storage);
      un.sun_family = AF_UNIX;
      address.path.copy(un.sun_path, sizeof un.sun_path - 1);
      size = sizeof un;
    }
  }
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int open() const { return ::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

  sockaddr_storage storage = {};
  socklen_t size = 0;
};

[[noreturn]] void lose(const std::string& what) { throw ConnectionLost(what); }

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

std::string LineAddress::text() const { return path.empty() ? str(tcp_prefix, port) : std::string(unix_prefix) + path; }

LineAddress parse_line_address(std::string_view text, const Where& where, bool any_port) {
  LineAddress out;
  // ipc:// is ZeroMQ's word for it, which EasyDeL's endpoints have.
  const auto prefix = std::ranges::find_if(path_prefixes, [&](std::string_view one) { return text.starts_with(one); });
  if (prefix != path_prefixes.end()) {
    out.path = text.substr(prefix->size());
    if (out.path.empty() || out.path.size() >= sizeof(sockaddr_un::sun_path) ||
        out.path.find('\0') != std::string::npos)
      refuse(where, str("'", text, "' is not the path of a socket"),
             str("give unix:/path with at most ", sizeof(sockaddr_un::sun_path) - 1, " bytes of path"));
    return out;
  }
  const std::string_view digits = text.starts_with(tcp_prefix) ? text.substr(tcp_prefix.size()) : std::string_view();
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.port);
  if (error != std::errc{} || end != digits.data() + digits.size() || (out.port == 0 && !any_port))
    refuse(where, str("'", text, "' is not an address of this machine"),
           "give unix:/path, or tcp://127.0.0.1:PORT; texts are sent as they are, so they stay on this machine");
  return out;
}

LineConnection::LineConnection(int socket) : socket_(socket) {
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
}
LineConnection::~LineConnection() {
  if (socket_ >= 0) close(socket_);
}
LineConnection::LineConnection(LineConnection&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), read_(std::move(other.read_)) {}
LineConnection& LineConnection::operator=(LineConnection&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(read_, other.read_);
  return *this;
}

bool LineConnection::is_idle() const {
  char next;
  return read_.empty() && ::recv(socket_, &next, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && would_block();
}

void LineConnection::send(std::string_view line, std::optional<double> seconds) const {
  const Deadline deadline(seconds);
  const std::string bytes = std::string(line) + '\n';
  for (std::string_view left = bytes; !left.empty();) {
    const ssize_t sent = ::send(socket_, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      left.remove_prefix(size_t(sent));
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && !would_block()) lose("has ended");
    if (!deadline.wait(socket_, POLLOUT)) lose(str("does not read within ", *seconds, " s"));
  }
}

std::optional<std::string> LineConnection::receive(std::optional<double> seconds, size_t max_bytes) {
  const Deadline deadline(seconds);
  std::array<char, size_t{64} << 10> bytes;
  for (size_t searched = 0;;) {
    const size_t end = read_.find('\n', searched);
    if (std::min(end, read_.size()) > max_bytes) lose(str("sends a line of more than ", max_bytes, " bytes"));
    if (end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    searched = read_.size();
    const ssize_t got = ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (got > 0) {
      read_.append(bytes.data(), size_t(got));
    } else if (got == 0) {
      if (read_.empty()) return std::nullopt;
      lose("has ended within a line");
    } else if (errno != EINTR) {
      if (!would_block()) lose("has ended");
      if (!deadline.wait(socket_, POLLIN)) lose(str("did not answer within ", *seconds, " s"));
    }
  }
}

LineConnection connect_to(const LineAddress& address, double seconds) {
  const Endpoint endpoint(address);
  LineConnection out(endpoint.open());
  const auto fail = [](int error) { lose(str("cannot be reached: ", std::strerror(error))); };
  if (::connect(out.socket(), endpoint.data(), endpoint.size) == 0) return out;
  if (errno != EINPROGRESS) fail(errno);
  if (!Deadline(seconds).wait(out.socket(), POLLOUT)) fail(ETIMEDOUT);
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(out.socket(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) fail(error);
  return out;
}

LineListener::LineListener(const LineAddress& address, const Where& where) : address_(address) {
  const Endpoint endpoint(address);
  socket_ = endpoint.open();
  const auto fail = [&](const std::string& why, const std::string& remedy) {
    close(socket_);
    refuse(where, str("cannot listen at ", address.text(), ": ", why), remedy);
  };
  const int on = 1;
  // The socket's own mode, restricted by the umask, is that of the file that bind() creates.
  if (address.path.empty())
    setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  else if (fchmod(socket_, 0600) != 0)
    fail(std::strerror(errno), "");
  int error = ::bind(socket_, endpoint.data(), endpoint.size) == 0 ? 0 : errno;
  if (error == EADDRINUSE && !address.path.empty()) {
    const LineConnection probe(endpoint.open());
    const bool refused =
        ::connect(probe.socket(), endpoint.data(), endpoint.size) != 0 && errno == ECONNREFUSED;  // also by other files
    if (refused && !files::is_file(address.path) && !files::is_folder(address.path)) {
      files::remove_all(address.path);
      error = ::bind(socket_, endpoint.data(), endpoint.size) == 0 ? 0 : errno;
    }
  }
  if (error != 0) fail(std::strerror(error), "give another address");
  if (::listen(socket_, 64) != 0) fail(std::strerror(errno), "give another address");
  if (!address.path.empty()) return;
  sockaddr_in bound = {};
  socklen_t length = sizeof bound;
  getsockname(socket_, reinterpret_cast<sockaddr*>(&bound), &length);
  address_.port = ntohs(bound.sin_port);
}

LineListener::~LineListener() {
  close(socket_);
  if (!address_.path.empty()) files::remove_all(address_.path);
}

std::optional<LineConnection> LineListener::accept() const {
  const int one = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  if (one < 0) return std::nullopt;
  return LineConnection(one);
}

}  // namespace easydel::text
