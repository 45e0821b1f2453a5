// Connections between ranks: who is let in, what is said to those who are not, and how an end shows.
#include "easydel/esurge/rank_channel.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <future>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/sha256.h"
#include "easydel/esurge/message_bytes.h"

namespace easydel::esurge {
namespace {

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.headline();
  }
  return "no error";
}

sockaddr_in loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Admission admission(int64_t size = 2, double seconds = 5) { return {"secret", "story", size, seconds}; }

// Ranks 1 and up with these admissions, and what becomes of each, beside a first rank that waits for all of them.
struct Meeting {
  explicit Meeting(const Admission& first) {
    accepted = std::async(std::launch::async,
                          [this, first] { return error_of([&] { connections = listener.accept(first); }); });
  }
  std::string join(const Admission& own, int64_t rank) {
    return error_of([&] { joined.push_back(connect_to_first_rank("127.0.0.1", listener.port(), own, rank)); });
  }

  const log::Quiet quiet;
  RankListener listener{"127.0.0.1", 0};
  std::vector<RankConnection> connections, joined;
  std::future<std::string> accepted;
};

TEST(RankChannel, HmacIsThatOfTheStandard) {  // RFC 4231, test case 2
  EXPECT_EQ(files::hmac_sha256("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_TRUE(files::equal_secrets("abc", "abc"));
  EXPECT_FALSE(files::equal_secrets("abc", "abd"));
  EXPECT_FALSE(files::equal_secrets("abc", "ab"));
  EXPECT_NE(files::random_bytes(32), files::random_bytes(32));
}

TEST(RankChannel, ConnectsRanksInTheirOrder) {
  Meeting meeting(admission(3));
  EXPECT_EQ(meeting.join(admission(3), 2), "no error");
  EXPECT_EQ(meeting.join(admission(3), 1), "no error");
  ASSERT_EQ(meeting.accepted.get(), "no error");
  ASSERT_EQ(meeting.connections.size(), 2u);
  EXPECT_EQ(meeting.connections[0].peer(), "rank 1");
  const std::string large(3'000'000, 'x');
  std::future<std::string> read = std::async(std::launch::async, [&] { return meeting.joined[1].receive(5); });
  meeting.connections[0].send(large, 5);
  EXPECT_EQ(read.get(), large);
  meeting.joined[0].send("from two", 5);
  EXPECT_EQ(meeting.connections[1].receive(5), "from two");
  meeting.joined[0].send("", 5);
  EXPECT_EQ(meeting.connections[1].receive(5), "");
}

TEST(RankChannel, RefusesAWrongTokenAndLetsTheRightOneIn) {
  Meeting meeting(admission());
  Admission wrong = admission();
  wrong.token = "guess";
  EXPECT_EQ(meeting.join(wrong, 1), "esurge.distributed_auth_token: the first rank does not accept it");
  wrong.token = "";
  EXPECT_EQ(meeting.join(wrong, 1), "esurge.distributed_auth_token: the first rank does not accept it");
  EXPECT_EQ(meeting.join(admission(), 1), "no error");
  EXPECT_EQ(meeting.accepted.get(), "no error");
}

TEST(RankChannel, SaysWhichKeyDiffers) {
  Meeting meeting(admission(3));
  Admission other = admission(3);
  other.service = "tale";
  EXPECT_EQ(meeting.join(other, 1), "esurge.distributed_service_name: is 'tale' here and 'story' on the first rank");
  EXPECT_EQ(meeting.join(admission(4), 1), "esurge.distributed_world_size: is 4 here and 3 on the first rank");
  EXPECT_EQ(meeting.join(admission(3), 3), "esurge.distributed_rank: 3 is not between 1 and 2; 0 is the first rank");
  EXPECT_EQ(meeting.join(admission(3), 1), "no error");
  EXPECT_EQ(meeting.join(admission(3), 1), "esurge.distributed_rank: 1 is taken by another process");
  EXPECT_EQ(meeting.join(admission(3), 2), "no error");
  EXPECT_EQ(meeting.accepted.get(), "no error");
}

// Whoever listens at the first rank's address has to know the token as well: it cannot send back what it was sent.
TEST(RankChannel, ARankDoesNotTrustAStranger) {
  const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(listening, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(listening, 1), 0);
  ASSERT_EQ(::getsockname(listening, reinterpret_cast<sockaddr*>(&address), &length), 0);
  std::future<void> stranger = std::async(std::launch::async, [&] {
    const RankConnection connection(::accept(listening, nullptr, nullptr), "a rank");
    MessageWriter challenge("easydel ranks 1");
    challenge.text("12345678901234567890123456789012");
    connection.send(challenge.finish(), 5);
    const std::string bytes = connection.receive(5);
    MessageReader from(bytes, "easydel rank 1");
    from.number<int64_t>(), from.number<int64_t>(), from.text(), from.text();
    MessageWriter verdict("easydel verdict 1");
    verdict.text(""), verdict.text(""), verdict.text(from.text());
    connection.send(verdict.finish(), 5);
  });
  const int port = ntohs(address.sin_port);
  EXPECT_EQ(error_of([&] { connect_to_first_rank("127.0.0.1", port, admission(), 1); }),
            str("esurge.distributed_auth_token: what listens at 127.0.0.1:", port, " does not know it"));
  stranger.get();
  ::close(listening);
}

TEST(RankChannel, SaysWhoDidNotComeAndWhy) {
  const log::Quiet quiet;
  RankListener listener("127.0.0.1", 0);
  std::future<std::string> accepted =
      std::async(std::launch::async, [&] { return error_of([&] { listener.accept(admission(2, 0.5)); }); });
  Admission wrong = admission();
  wrong.token = "guess";
  EXPECT_THROW(connect_to_first_rank("127.0.0.1", listener.port(), wrong, 1), UserError);
  EXPECT_EQ(accepted.get(),
            "esurge.distributed_connect_timeout_s: rank 1 of 2 did not connect within 0.5 s; a connection had another "
            "distributed_auth_token");
}

TEST(RankChannel, WaitsNoLongerThanItsLimits) {
  const Clock::time_point begin = Clock::now();
  const RankListener listener("127.0.0.1", 0);
  EXPECT_EQ(error_of([&] { listener.accept(admission(2, 0.2)); }),
            "esurge.distributed_connect_timeout_s: rank 1 of 2 did not connect within 0.2 s");
  int port = 0;
  {
    const RankListener closed("127.0.0.1", 0);
    port = closed.port();
  }
  EXPECT_EQ(error_of([&] { connect_to_first_rank("127.0.0.1", port, admission(2, 0.2), 1); }),
            str("esurge.distributed_connect_timeout_s: rank 1 does not reach the first rank at 127.0.0.1:", port,
                " within 0.2 s (Connection refused)"));
  EXPECT_LT(seconds_since(begin), 3);
}

// Somebody who connects and says nothing keeps the port for a moment alone.
TEST(RankChannel, IsNotBlockedByAConnectionThatSaysNothing) {
  Meeting meeting(admission());
  const sockaddr_in address = loopback(meeting.listener.port());
  const int silent = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(::connect(silent, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(meeting.join(admission(), 1), "no error");
  EXPECT_EQ(meeting.accepted.get(), "no error");
  ::close(silent);
}

TEST(RankChannel, ShowsThatTheOtherEndHasEndedOrIsSilent) {
  Meeting meeting(admission());
  ASSERT_EQ(meeting.join(admission(), 1), "no error");
  ASSERT_EQ(meeting.accepted.get(), "no error");
  EXPECT_EQ(error_of([&] { meeting.connections[0].receive(0.1); }), "esurge: rank 1 did not answer within 0.1 s");
  meeting.connections[0].send(std::string(100, 'x'), 1);
  EXPECT_EQ(error_of([&] { meeting.joined[0].receive(1, 99); }), "esurge: the first rank sends a message of 100 bytes");
  meeting.joined.clear();
  EXPECT_EQ(error_of([&] { meeting.connections[0].receive(1); }), "esurge: rank 1 has ended");
}

TEST(RankChannel, SaysWhyItCannotListen) {
  const RankListener first("127.0.0.1", 0);
  EXPECT_EQ(error_of([&] { RankListener("127.0.0.1", first.port()); }),
            str("esurge.distributed_control_port: the first rank cannot listen at 127.0.0.1:", first.port(),
                ": Address already in use"));
  EXPECT_EQ(error_of([&] { RankListener("no address", 0); }).substr(0, 74),
            "esurge.distributed_control_bind_host: 'no address' is not an address: Name");
}

}  // namespace
}  // namespace easydel::esurge
