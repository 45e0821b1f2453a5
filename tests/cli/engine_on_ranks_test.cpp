// The engine on two ranks by the program: serve, generate and probe engine answer as one rank does.
#include <csignal>
#include <future>
#include <sstream>

#include <gtest/gtest.h>

#include "cli/serve_process.h"
#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/esurge/rank_channel.h"
#include "server/client.h"
#include "support/data.h"

namespace easydel {
namespace {

using test::body_of;
using test::posted;
using test::RawClient;
using test::ServeProcess;
using test::story_model;

const test::RunOptions one_thread = {.environment = {{"OMP_NUM_THREADS", "1"}, {"OMP_WAIT_POLICY", "PASSIVE"}}};

std::vector<std::string> generate(std::vector<std::string> words) {
  words.insert(words.end(), {"generate", story_model(), "-p", "Once upon a time", "-n", "16", "-t", "0", "--no-echo",
                             "--dtype", "fp32", "--engine", "esurge"});
  return words;
}

TEST(EngineOnRanks, GeneratesTheTextOfOneRank) {
  const test::Ran one = test::run_program(generate({}), one_thread);
  ASSERT_EQ(one.status, 0) << one.err;
  for (const char* dims : {"[1, 1, 1, 2, 1]", "[2, 1, 1, 1, 1]"}) {
    std::vector<std::string> words = generate({"--nproc", "2"});
    words.insert(words.end(), {"--set", std::string("esurge.sharding_axis_dims=") + dims});
    const test::Ran two = test::run_program(words, one_thread);
    EXPECT_EQ(two.status, 0) << two.err;
    EXPECT_EQ(two.out, one.out);
  }
}

TEST(EngineOnRanks, ServesAndEndsBySignal) {
  const test::Ran one = test::run_program(generate({}), one_thread);
  ServeProcess server({"--nproc", "2", "serve", story_model(), "--port", "0", "--dtype", "fp32"});
  const int64_t port = server.port();
  ASSERT_TRUE(server.is_ready()) << server.log();
  RawClient client(port, posted("/v1/completions", R"({"prompt": "Once upon a time", "temperature": 0})"));
  EXPECT_EQ(parse_json(body_of(client.response())).find("choices")->items[0].find("text")->scalar + "\n", one.out);
  RawClient stream(
      port, posted("/v1/completions", R"({"prompt": "Once", "max_tokens": 200, "ignore_eos": true, "stream": true})"));
  stream.until("\r\n\r\n");
  server.signal(SIGTERM);
  EXPECT_TRUE(stream.chunks().ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(server.wait(), 0) << server.log();
}

TEST(EngineOnRanks, ARankThatIsKilledEndsTheAnswersOfTheServer) {
  ServeProcess server({"--nproc", "2", "serve", story_model(), "--port", "0", "--dtype", "fp32"});
  const int64_t port = server.port();
  ASSERT_TRUE(server.is_ready()) << server.log();
  const std::vector<pid_t> ranks = server.children();
  ASSERT_EQ(ranks.size(), 2u);
  RawClient stream(
      port, posted("/v1/completions", R"({"prompt": "Once", "max_tokens": 400, "ignore_eos": true, "stream": true})"));
  stream.until("\r\n\r\n");
  ::kill(ranks[1], SIGKILL);
  const std::string rest = stream.chunks();
  EXPECT_NE(rest.find("\"error\""), std::string::npos) << rest;
  EXPECT_FALSE(rest.ends_with("(cut off)")) << rest;
  EXPECT_EQ(server.wait(), 128 + SIGKILL);
  EXPECT_NE(server.log().find("rank 1 of 2 was killed by signal 9"), std::string::npos) << server.log();
}

TEST(EngineOnRanks, ProbesAsOneRank) {
  test::TemporaryFolder folder;
  test::write_file(folder / "lines.jsonl",
                   R"({"prompt": "Once upon a time", "sampling": {"temperature": 0, "max_tokens": 9}})"
                   "\n"
                   R"({"prompt": "Tom and", "sampling": {"seed": 4, "max_tokens": 12}, "arrive": 2})"
                   "\n");
  const auto probe = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"probe", "engine", story_model(), "--set", "loader.dtype=fp32", "--jsonl",
                               (folder / "lines.jsonl").string()});
    const auto ran = test::run_program(words, one_thread);
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::vector<std::string> texts;
    std::istringstream lines(ran.out);
    for (std::string line; std::getline(lines, line);) {
      const Value answer = parse_json(line), *outputs = answer.find("outputs");
      EXPECT_TRUE(outputs) << line;
      if (outputs) texts.push_back(to_json(*outputs->items[0].find("token_ids")));
    }
    EXPECT_EQ(texts.size(), 2u);
    return texts;
  };
  EXPECT_EQ(probe({"--nproc", "2"}), probe({}));
}

int free_port() { return esurge::RankListener("127.0.0.1", 0).port(); }

// One of two processes that no launcher started.
test::Ran host(int port, int rank, const std::string& token) {
  std::vector<std::string> words = generate({});
  for (const std::string& key :
       {str("distributed_mode=true"), str("distributed_world_size=2"), str("distributed_rank=", rank),
        str("distributed_control_port=", port), str("distributed_control_bind_host=127.0.0.1"),
        str("distributed_advertise_addr=127.0.0.1"), str("distributed_connect_timeout_s=", token == "two" ? 6 : 20),
        "distributed_auth_token=" + token})
    words.insert(words.end(), {"--set", "esurge." + key});
  return test::run_program(words, one_thread);
}

TEST(EngineOnRanks, FindsTheOtherHostWithoutALauncher) {
  const test::Ran alone = test::run_program(generate({}), one_thread);
  const int port = free_port();
  std::future<test::Ran> other = std::async(std::launch::async, [&] { return host(port, 1, "one"); });
  const test::Ran first = host(port, 0, "one");
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(first.out, alone.out);
  const test::Ran second = other.get();
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(second.out, "");
}

TEST(EngineOnRanks, DoesNotLetAHostInThatDoesNotKnowTheToken) {
  const int port = free_port();
  std::future<test::Ran> other = std::async(std::launch::async, [&] { return host(port, 1, "another"); });
  const test::Ran first = host(port, 0, "two"), second = other.get();
  EXPECT_EQ(first.status, 2);
  EXPECT_NE(first.err.find("esurge.distributed_connect_timeout_s: rank 1 of 2 did not connect within 6 s; a connection "
                           "had another distributed_auth_token\n"
                           "    start all ranks with the same token, and at the address of the first one\n"),
            std::string::npos)
      << first.err;
  EXPECT_EQ(second.status, 2);
  EXPECT_NE(second.err.find("esurge.distributed_auth_token: the first rank does not accept it\n"
                            "    give every rank the same configuration, and a rank of its own\n"),
            std::string::npos)
      << second.err;
}

TEST(EngineOnRanks, RefusesLayoutsThatAreNotBuilt) {
  const auto error = [&](const std::vector<std::string>& keys) {
    std::vector<std::string> words = generate({"--nproc", "2"});
    for (const std::string& key : keys) words.insert(words.end(), {"--set", key});
    const test::Ran ran = test::run_program(words, one_thread);
    EXPECT_EQ(ran.status, 2);
    // Both ranks say it, the second one through the launcher, which ends the first one if that is later.
    std::string said = ran.err;
    for (size_t at; (at = said.find("[rank 1] ")) != std::string::npos;) said.erase(at, 9);
    return said;
  };
  const auto contains = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  contains(error({"esurge.sharding_axis_dims=[1, 2, 1, 1, 1]"}),
           "esurge.sharding_axis_dims: axis fsdp has 2 ranks, which is not built yet for the engine\n"
           "    set fsdp to 1; dp and tp are built\n");
  contains(error({"esurge.sharding_axis_dims=[1, 1, 1, 4, 1]"}),
           "esurge.sharding_axis_dims: cannot reshape array of size 2 into shape (1,1,1,4,1)\n");
  contains(
      error({"esurge.auto_shard_model=false"}),
      "sharding.axis_dims: axis fsdp has 2 ranks, which is not built yet for the engine\n"
      "    set fsdp to 1; dp and tp are built, or set esurge.auto_shard_model: true, which gives the engine a layout "
      "of its own\n");
  contains(error({"esurge.data_parallelism_axis=pp"}), "esurge.data_parallelism_axis: the mesh has no axis 'pp'");
  contains(error({"esurge.data_parallelism_axis=tp"}),
           "esurge.data_parallelism_axis: distributing requests over tp is not built yet\n    use dp\n");
}

}  // namespace
}  // namespace easydel
