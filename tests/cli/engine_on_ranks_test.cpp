// The engine on two ranks by the program: serve, generate and probe engine answer as one rank does.
#include <cmath>
#include <csignal>
#include <future>
#include <sstream>

#include <gtest/gtest.h>

#include "cli/serve_process.h"
#include "cli/story_adapter.h"
#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/esurge/rank_channel.h"
#include "server/client.h"
#include "support/changed_weights.h"
#include "support/data.h"

namespace easydel {
namespace {

using test::body_of;
using test::posted;
using test::RawClient;
using test::ServeProcess;
using test::story_model;

const test::RunOptions one_thread = {.environment = {{"OMP_NUM_THREADS", "1"}, {"OMP_WAIT_POLICY", "PASSIVE"}}};

std::vector<std::string> generate(std::vector<std::string> words, const std::string& model = story_model()) {
  words.insert(words.end(), {"generate", model, "-p", "Once upon a time", "-n", "16", "-t", "0", "--no-echo", "--dtype",
                             "fp32", "--engine", "esurge"});
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

std::string with_key(const std::string& path, const std::string& body) {
  const std::string plain = posted(path, body), mark = "\r\nContent-Type";
  return test::replaced(plain, mark, "\r\nAuthorization: Bearer an-admin-key-for-tests" + mark);
}

const std::string changed = "model.layers.1.mlp.up_proj.weight";

// The text of one process.
std::string text_of(const std::string& model, const std::string& adapter = "") {
  std::vector<std::string> words = generate({}, model);
  if (!adapter.empty()) words.insert(words.end(), {"--adapter", adapter});
  const test::Ran ran = test::run_program(words, one_thread);
  EXPECT_EQ(ran.status, 0) << ran.err;
  return ran.out;
}

// A server's text for the same; its whole response if it is an error.
std::string completed(int64_t port, const std::string& model) {
  RawClient client(port, with_key("/v1/completions",
                                  R"({"prompt": "Once upon a time", "temperature": 0, "model": ")" + model + "\"}"));
  const std::string response = client.response();
  const Value answer = parse_json(body_of(response));
  return answer.find("choices") ? answer.find("choices")->items[0].find("text")->scalar + "\n" : response;
}

void expect_posted(int64_t port, const std::string& path, const std::string& body, int status = 200) {
  const std::string response = RawClient(port, with_key(path, body)).response();
  EXPECT_TRUE(response.starts_with(str("HTTP/1.1 ", status))) << response;
}

// While it runs two ranks load adapters and other weights, and keep the prefix cache for the next server.
TEST(EngineOnRanks, ServesAdaptersAndNewWeightsAndKeepsThePrefixCache) {
  test::TemporaryFolder folder;
  test::write_story_adapter(folder / "adapters/loud", 0.8f);
  test::fs::create_directories(folder / "weights/empty");
  test::copy_with_changed_weights(story_model(), folder / "weights/other", changed);
  test::copy_with_changed_weights(story_model(), folder / "weights/same", "");
  const std::string plain = text_of(story_model()), loud = text_of(story_model(), (folder / "adapters/loud").string()),
                    other = text_of((folder / "weights/other").string());
  ASSERT_NE(plain, loud);
  ASSERT_NE(plain, other);
  for (const bool again : {false, true}) {
    SCOPED_TRACE(again);
    ServeProcess server({"--nproc", "2", "serve", story_model(), "--port", "0", "--dtype", "fp32", "--adapters-dir",
                         (folder / "adapters").string(), "--weights-dir", (folder / "weights").string(), "--admin-key",
                         "an-admin-key-for-tests", "--set", "esurge.prefix_cache_path=" + (folder / "cache").string(),
                         "--set", "esurge.page_size=4"});
    const int64_t port = server.port();
    ASSERT_TRUE(server.is_ready()) << server.log();
    EXPECT_EQ(server.log().find("pages of the prefix cache") != std::string::npos, again) << server.log();
    EXPECT_EQ(completed(port, "stories260K-chat"), plain);
    expect_posted(port, "/v1/load_lora_adapter", R"({"lora_name": "one", "lora_path": "loud"})");
    EXPECT_EQ(completed(port, "one"), loud);
    expect_posted(port, "/v1/admin/weights", R"({"path": "empty"})", 400);
    EXPECT_EQ(completed(port, "stories260K-chat"), plain);
    expect_posted(port, "/v1/unload_lora_adapter", R"({"lora_name": "one"})");
    expect_posted(port, "/v1/admin/weights", R"({"path": "other"})");
    EXPECT_EQ(completed(port, "stories260K-chat"), other);
    expect_posted(port, "/v1/admin/weights", R"({"path": "same"})");
    EXPECT_EQ(completed(port, "stories260K-chat"), plain);
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0) << server.log();
    EXPECT_TRUE(test::fs::exists(folder / "cache/rank-1/manifest.json"));
  }
}

// Each model has an engine of its own on the ranks, with adapters and weights of its own.
TEST(EngineOnRanks, ServesSeveralModels) {
  test::TemporaryFolder folder;
  test::write_story_adapter(folder / "adapters/loud", 0.8f);
  test::copy_with_changed_weights(story_model(), folder / "weights/other", changed);
  const std::string other = (folder / "weights/other").string(), loud = (folder / "adapters/loud").string();
  const std::string plain_text = text_of(story_model()), other_text = text_of(other), loud_text = text_of(other, loud);
  ASSERT_NE(plain_text, other_text);
  ASSERT_NE(loud_text, other_text);
  for (const char* const dims : {"[1, 1, 1, 2, 1]", "[2, 1, 1, 1, 1]"}) {
    SCOPED_TRACE(dims);
    ServeProcess server({"--nproc",
                         "2",
                         "serve",
                         "--model",
                         "one=" + story_model(),
                         "--model",
                         "two=" + other,
                         "--port",
                         "0",
                         "--dtype",
                         "fp32",
                         "--adapters-dir",
                         (folder / "adapters").string(),
                         "--weights-dir",
                         (folder / "weights").string(),
                         "--admin-key",
                         "an-admin-key-for-tests",
                         "--set",
                         std::string("esurge.sharding_axis_dims=") + dims,
                         "--set",
                         "models.two.esurge.sharding_axis_dims=[1, 1, 1, 2, 1]"});
    const int64_t port = server.port();
    ASSERT_TRUE(server.is_ready()) << server.log();
    std::vector<std::future<std::string>> texts;
    for (int i = 0; i < 12; ++i)
      texts.push_back(std::async(std::launch::async, [&, i] { return completed(port, i % 2 == 0 ? "one" : "two"); }));
    for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(texts[i].get(), i % 2 == 0 ? plain_text : other_text);
    expect_posted(port, "/v1/load_lora_adapter",
                  R"({"lora_name": "loud", "lora_path": "loud", "base_model_name": "two"})");
    EXPECT_EQ(completed(port, "loud"), loud_text);
    EXPECT_EQ(completed(port, "one"), plain_text);
    expect_posted(port, "/v1/admin/weights", R"({"path": "other", "model": "one"})");
    EXPECT_EQ(completed(port, "one"), other_text);
    EXPECT_EQ(completed(port, "two"), other_text);
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0) << server.log();
  }
}

TEST(EngineOnRanks, ARankThatIsKilledEndsTheAnswersOfAllModels) {
  ServeProcess server({"--nproc", "2", "serve", "--model", "one=" + story_model(), "--model", "two=" + story_model(),
                       "--port", "0", "--dtype", "fp32"});
  const int64_t port = server.port();
  ASSERT_TRUE(server.is_ready()) << server.log();
  const std::vector<pid_t> ranks = server.children();
  ASSERT_EQ(ranks.size(), 2u);
  const auto asked = [](const std::string& model) {
    return posted("/v1/completions", R"({"prompt": "Once", "max_tokens": 400, "ignore_eos": true, "stream": true,
                                         "model": ")" +
                                         model + "\"}");
  };
  RawClient one(port, asked("one")), two(port, asked("two"));
  one.until("\r\n\r\n"), two.until("\r\n\r\n");
  ::kill(ranks[1], SIGKILL);
  for (RawClient* const stream : {&one, &two}) {
    const std::string rest = stream->chunks();
    EXPECT_NE(rest.find("\"error\""), std::string::npos) << rest;
    EXPECT_FALSE(rest.ends_with("(cut off)")) << rest;
  }
  EXPECT_EQ(server.wait(), 128 + SIGKILL);
}

TEST(EngineOnRanks, RefusesLayoutsOfOtherModelsThatAreNotBuilt) {
  const test::Ran ran =
      test::run_program({"--nproc", "2", "serve", "--model", "one=" + story_model(), "--model", "two=" + story_model(),
                         "--set", "models.two.esurge.sharding_axis_dims=[1, 2, 1, 1, 1]"},
                        one_thread);
  EXPECT_EQ(ran.status, 2);
  // Both ranks say it; of the second one that may be heard or not.
  const std::string said = test::replaced(ran.err, "[rank 1] ", "");
  const std::string wanted =
      "--set models.two.esurge.sharding_axis_dims=[1, 2, 1, 1, 1]: "
      "actions[0].serve.models.two.esurge.sharding_axis_dims: axis fsdp has 2 ranks, which is not built yet for "
      "the engine\n    set fsdp to 1; dp and tp are built\n1 problem in easydel serve; nothing was run.\n";
  EXPECT_EQ(said.substr(0, wanted.size()), wanted);
}

// And those of other weights, which all ranks read while the server runs.
TEST(EngineOnRanks, ServesEmbeddings) {
  test::TemporaryFolder folder;
  test::copy_with_changed_weights(test::test_data("encoders/sentences").string(), folder / "weights/other",
                                  "encoder.layer.1.output.LayerNorm.weight");
  const auto vectors = [&](std::vector<std::string> words) {
    words.insert(words.end(),
                 {"serve", test::test_data("encoders/sentences").string(), "--port", "0", "--dtype", "fp32",
                  "--weights-dir", (folder / "weights").string(), "--admin-key", "an-admin-key-for-tests"});
    ServeProcess server(words);
    const int64_t port = server.port();
    EXPECT_TRUE(server.is_ready()) << server.log();
    std::vector<double> out;
    const auto add = [&] {
      RawClient client(port, with_key("/v1/embeddings", R"({"input": ["A cat sat.", "Twenty dogs ran."]})"));
      const std::string response = client.response();
      const Value answer = parse_json(body_of(response));
      if (!answer.find("data")) return void(ADD_FAILURE() << response);
      for (const Value& one : answer.find("data")->items)
        for (const Value& number : one.find("embedding")->items) out.push_back(std::stod(number.scalar));
    };
    add();
    expect_posted(port, "/v1/admin/weights", R"({"path": "other"})");
    add();
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0) << server.log();
    return out;
  };
  const std::vector<double> one = vectors({}), two = vectors({"--nproc", "2"});
  ASSERT_EQ(one.size(), two.size());
  ASSERT_GT(one.size(), 8u);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], two[i], 1e-5);
  EXPECT_GT(std::abs(one[0] - one[one.size() / 2]), 1e-3) << "the weights are others";
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
