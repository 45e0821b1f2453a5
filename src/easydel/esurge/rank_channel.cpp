#include "easydel/esurge/rank_channel.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "easydel/base/deadline.h"
#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/sha256.h"
#include "easydel/esurge/message_bytes.h"

namespace easydel::esurge {
namespace {

constexpr std::string_view challenge_kind = "easydel ranks 1", answer_kind = "easydel rank 1",
                           verdict_kind = "easydel verdict 1";
constexpr size_t nonce_bytes = 32;
// Of messages before the token is proven, and the seconds that one of them may take, so that a stranger who connects
// and says nothing does not keep the others out.
constexpr uint64_t max_unproven_bytes = 4096;
constexpr double max_unproven_seconds = 2;

struct Addresses {
  Addresses(const std::string& host, int port, bool listens) {
    addrinfo wanted = {};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_NUMERICSERV | (listens ? AI_PASSIVE : 0);
    error = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &wanted, &first);
  }
  ~Addresses() {
    if (first) freeaddrinfo(first);
  }
  Addresses(const Addresses&) = delete;
  addrinfo* first = nullptr;
  int error = 0;
};

void prepare(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
}

std::string place(const std::string& host, int port) { return str(host, ":", port); }

// What a rank says of itself, and who says it: the code of the other end is another one.
std::string code(const Admission& own, std::string_view end, const std::string& challenge, const std::string& answer,
                 int64_t rank, int64_t size, const std::string& service) {
  MessageWriter all(end);
  all.text(challenge);
  all.text(answer);
  all.number(rank);
  all.number(size);
  all.text(service);
  return files::hmac_sha256(own.token, all.finish());
}

// "": let in. Otherwise the key that is wrong, and the problem.
struct Verdict {
  std::string key, problem;
};

Verdict verdict_on(const Admission& admission, int64_t rank, int64_t size, const std::string& service,
                   const std::vector<std::optional<RankConnection>>& found) {
  if (service != admission.service)
    return {"distributed_service_name", str("is '", service, "' here and '", admission.service, "' on the first rank")};
  if (size != admission.size)
    return {"distributed_world_size", str("is ", size, " here and ", admission.size, " on the first rank")};
  if (rank < 1 || rank >= size)
    return {"distributed_rank", str(rank, " is not between 1 and ", size - 1, "; 0 is the first rank")};
  if (found[size_t(rank)]) return {"distributed_rank", str(rank, " is taken by another process")};
  return {};
}

}  // namespace

RankConnection::RankConnection(int socket, std::string peer) : socket_(socket), peer_(std::move(peer)) {
  prepare(socket_);
}
RankConnection::~RankConnection() {
  if (socket_ >= 0) close(socket_);
}
RankConnection::RankConnection(RankConnection&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), peer_(std::move(other.peer_)) {}
RankConnection& RankConnection::operator=(RankConnection&& other) noexcept {
  std::swap(socket_, other.socket_);
  peer_ = std::move(other.peer_);
  return *this;
}

void RankConnection::end() const { ::shutdown(socket_, SHUT_RDWR); }

void RankConnection::send(std::string_view message, double seconds) const {
  const Deadline deadline(seconds);
  const uint64_t size = message.size();
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  bytes += message;
  for (std::string_view left = bytes; !left.empty();) {
    const ssize_t sent = ::send(socket_, left.data(), left.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      left.remove_prefix(size_t(sent));
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) refuse("esurge", peer_ + " has ended");
    if (!deadline.wait(socket_, POLLOUT)) refuse("esurge", str(peer_, " does not read within ", seconds, " s"));
  }
}

std::string RankConnection::receive(std::optional<double> seconds, uint64_t max_bytes) const {
  const Deadline deadline(seconds);
  const auto read = [&](char* to, size_t count) {
    for (size_t at = 0; at < count;) {
      const ssize_t got = ::recv(socket_, to + at, count - at, 0);
      if (got > 0) {
        at += size_t(got);
        continue;
      }
      if (got < 0 && errno == EINTR) continue;
      if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) refuse("esurge", peer_ + " has ended");
      if (!deadline.wait(socket_, POLLIN)) refuse("esurge", str(peer_, " did not answer within ", *seconds, " s"));
    }
  };
  uint64_t size = 0;
  read(reinterpret_cast<char*>(&size), sizeof size);
  if (size > max_bytes) refuse("esurge", str(peer_, " sends a message of ", size, " bytes"));
  std::string message(size, '\0');
  read(message.data(), message.size());
  return message;
}

RankListener::RankListener(const std::string& host, int port) {
  const std::string key = "esurge.distributed_control_port";
  const Addresses addresses(host, port, true);
  if (addresses.error != 0)
    refuse("esurge.distributed_control_bind_host",
           str("'", host, "' is not an address: ", gai_strerror(addresses.error)),
           "give an address of this machine, or 0.0.0.0 for all of them");
  std::string problem;
  for (const addrinfo* each = addresses.first; each && socket_ < 0; each = each->ai_next) {
    const int one = ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol);
    const int on = 1;
    if (one >= 0) setsockopt(one, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (one >= 0 && ::bind(one, each->ai_addr, each->ai_addrlen) == 0 && ::listen(one, 64) == 0) {
      socket_ = one;
      break;
    }
    problem = std::strerror(errno);
    if (one >= 0) close(one);
  }
  if (socket_ < 0)
    refuse(key, str("the first rank cannot listen at ", place(host, port), ": ", problem),
           "give a free port, and by distributed_control_bind_host an address of this machine");
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) | O_NONBLOCK);
  sockaddr_storage bound = {};
  socklen_t length = sizeof bound;
  getsockname(socket_, reinterpret_cast<sockaddr*>(&bound), &length);
  port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                            : reinterpret_cast<sockaddr_in&>(bound).sin_port);
}

RankListener::~RankListener() {
  if (socket_ >= 0) close(socket_);
}

namespace {

// Lets one connection in, if it may: puts it into `found`. Returns what to say of it otherwise.
std::string admit(RankConnection connection, const Admission& admission, double seconds,
                  std::vector<std::optional<RankConnection>>& found) {
  const double patience = std::min(seconds, max_unproven_seconds);
  const std::string challenge = files::random_bytes(nonce_bytes);
  MessageWriter asked(challenge_kind);
  asked.text(challenge);
  connection.send(asked.finish(), patience);
  const std::string bytes = connection.receive(patience, max_unproven_bytes);
  MessageReader from(bytes, answer_kind);
  const auto rank = from.number<int64_t>(), size = from.number<int64_t>();
  const std::string service(from.text()), answer(from.text()), proof(from.text());
  from.finish();
  const bool knows = files::equal_secrets(proof, code(admission, "other rank", challenge, answer, rank, size, service));
  const Verdict verdict = knows ? verdict_on(admission, rank, size, service, found)
                                : Verdict{"distributed_auth_token", "the first rank does not accept it"};
  MessageWriter told(verdict_kind);
  told.text(verdict.key);
  told.text(verdict.problem);
  told.text(knows ? code(admission, "first rank", challenge, answer, rank, size, service) : "");
  connection.send(told.finish(), patience);
  if (!knows) return "had another distributed_auth_token";
  if (!verdict.key.empty()) return str("is refused: ", verdict.key, " ", verdict.problem);
  connection.set_peer(str("rank ", rank));
  found[size_t(rank)] = std::move(connection);
  return "";
}

}  // namespace

std::vector<RankConnection> RankListener::accept(const Admission& admission) const {
  const Deadline deadline(admission.seconds);
  std::vector<std::optional<RankConnection>> found(size_t(admission.size));
  std::string last;  // why somebody was not let in
  int64_t missing = admission.size - 1;
  while (missing > 0) {
    if (!deadline.wait(socket_, POLLIN)) {
      const auto rank = std::ranges::find_if(found.begin() + 1, found.end(), [](const auto& one) { return !one; });
      refuse("esurge.distributed_connect_timeout_s",
             str("rank ", rank - found.begin(), " of ", admission.size, " did not connect within ", admission.seconds,
                 " s", last.empty() ? "" : "; a connection " + last),
             "start all ranks with the same token, and at the address of the first one");
    }
    const int socket = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    std::string problem;
    try {
      problem = admit(RankConnection(socket, "the connection"), admission, deadline.left(), found);
    } catch (const UserError& error) {
      problem = str("failed: ", error.problem);
    }
    if (problem.empty())
      --missing;
    else
      last = problem, log::warning("esurge: a connection to the port of the ranks ", problem);
  }
  std::vector<RankConnection> out;
  for (size_t rank = 1; rank < found.size(); ++rank) out.push_back(std::move(*found[rank]));
  return out;
}

namespace {

// -1: nobody is there (yet).
int try_to_connect(const Addresses& addresses, const Deadline& deadline, std::string& problem) {
  for (const addrinfo* each = addresses.first; each; each = each->ai_next) {
    const int one = ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, each->ai_protocol);
    if (one < 0) continue;
    int error = 0;
    socklen_t length = sizeof error;
    if (::connect(one, each->ai_addr, each->ai_addrlen) != 0) {
      error = errno;
      if (error == EINPROGRESS) {
        error = deadline.wait(one, POLLOUT) ? 0 : ETIMEDOUT;
        if (error == 0) getsockopt(one, SOL_SOCKET, SO_ERROR, &error, &length);
      }
    }
    if (error == 0) return one;
    problem = std::strerror(error);
    close(one);
  }
  return -1;
}

}  // namespace

RankConnection connect_to_first_rank(const std::string& host, int port, const Admission& admission, int64_t rank) {
  const Deadline deadline(admission.seconds);
  const std::string where = place(host, port);
  std::string problem;
  int socket = -1;
  while (socket < 0) {
    const Addresses addresses(host, port, false);
    if (addresses.error == 0)
      socket = try_to_connect(addresses, deadline, problem);
    else
      problem = gai_strerror(addresses.error);
    if (socket >= 0) break;
    if (deadline.left() == 0)
      refuse("esurge.distributed_connect_timeout_s",
             str("rank ", rank, " does not reach the first rank at ", where, " within ", admission.seconds, " s (",
                 problem, ")"),
             "start the first rank; distributed_advertise_addr and distributed_control_port must be its address and "
             "port");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  RankConnection connection(socket, "the first rank");
  const std::string asked = connection.receive(deadline.left(), max_unproven_bytes);
  MessageReader challenge_from(asked, challenge_kind);
  const std::string challenge(challenge_from.text()), answer = files::random_bytes(nonce_bytes);
  MessageWriter own(answer_kind);
  own.number(rank);
  own.number(admission.size);
  own.text(admission.service);
  own.text(answer);
  own.text(code(admission, "other rank", challenge, answer, rank, admission.size, admission.service));
  connection.send(own.finish(), deadline.left());
  const std::string told = connection.receive(deadline.left(), max_unproven_bytes);
  MessageReader from(told, verdict_kind);
  const std::string key(from.text()), wrong(from.text()), proof(from.text());
  if (!key.empty()) refuse("esurge." + key, wrong, "give every rank the same configuration, and a rank of its own");
  if (!files::equal_secrets(proof,
                            code(admission, "first rank", challenge, answer, rank, admission.size, admission.service)))
    refuse("esurge.distributed_auth_token", str("what listens at ", where, " does not know it"),
           "see that distributed_advertise_addr and distributed_control_port are those of the first rank");
  return connection;
}

}  // namespace easydel::esurge
