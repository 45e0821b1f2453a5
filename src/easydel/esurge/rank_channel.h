// Connections between the first rank of an engine and the others, for the messages of steps. Whoever connects proves by
// HMAC-SHA256 that it knows the token (a challenge and its answer, both ways); what follows is neither encrypted nor
// signed, because the network is trusted. No torch. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace easydel::esurge {

// An end of a connection. Errors are UserErrors "esurge: rank 1 ...".
class RankConnection {
 public:
  // Takes the socket. `peer`: "rank 1", for errors.
  RankConnection(int socket, std::string peer);
  ~RankConnection();
  RankConnection(RankConnection&& other) noexcept;
  RankConnection& operator=(RankConnection&& other) noexcept;

  const std::string& peer() const { return peer_; }
  void set_peer(std::string peer) { peer_ = std::move(peer); }
  // UserError: the peer has ended, or does not read the message within `seconds`.
  void send(std::string_view message, double seconds) const;
  // The next message. UserError: the peer has ended, or nothing came within `seconds` (null: it waits), or it is larger
  // than `max_bytes`.
  std::string receive(std::optional<double> seconds, uint64_t max_bytes = uint64_t{1} << 30) const;
  // From any thread: both ends find that the other one has ended.
  void end() const;

 private:
  int socket_ = -1;
  std::string peer_;
};

// What both ends of a connection must agree on.
struct Admission {
  std::string token = {};    // empty: whoever connects is let in
  std::string service = {};  // name of the group of ranks
  int64_t size = 1;          // number of ranks
  double seconds = 15;       // for all ranks to connect
};

// On the first rank.
class RankListener {
 public:
  // port 0: a free one. UserError "esurge.distributed_control_port: ...".
  RankListener(const std::string& host, int port);
  ~RankListener();
  RankListener(const RankListener&) = delete;

  int port() const { return port_; }
  // The connections of ranks 1, 2, ..., when all are there. What does not prove the token is dropped with a line in the
  // log. UserError "esurge.distributed_connect_timeout_s: ...": they did not come in time.
  std::vector<RankConnection> accept(const Admission& admission) const;

 private:
  int socket_ = -1, port_ = 0;
};

// On another rank: the connection to the first one, which is tried until the time is up. UserErrors: nobody answers at
// the address, the first rank does not accept the token, the service's name, the size or the rank, or does not know the
// token itself.
RankConnection connect_to_first_rank(const std::string& host, int port, const Admission& admission, int64_t rank);

}  // namespace easydel::esurge
