// Whole runs over several local ranks: the same numbers as one rank, and how they end.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <sstream>
#include <tuple>

#include "cli/serve_process.h"
#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

// A run on real text: `dims` of the mesh, results in folder/name.
fs::path write_run(const TemporaryFolder& folder, const std::string& name, const std::string& dims, int steps) {
  const std::string text = test::replaced(R"(model: {name_or_path: MODEL}
loader: {dtype: fp32, param_dtype: fp32}
sharding: {axis_dims: DIMS}
mixture:
  informs:
    - {type: txt, data_files: TEXT, num_rows: 12}
    - {type: txt, data_files: TEXT, num_rows: 3, split: validation}
trainer:
  learning_rate: 1.0e-3
  max_training_steps: STEPS
  max_length: 64
  total_batch_size: 4
  gradient_accumulation_steps: 2
  clip_grad: 1.0
  do_eval: true
  eval_on_start: true
  report_steps: 1
  save_directory: FOLDER
  model_name: NAME
actions:
  - train
  - generate: {prompts: ["The old prince"], max_new_tokens: 12, temperature: 0}
)",
                                          "MODEL", test::test_data("models/stories260K-hf").string());
  const fs::path file = folder / (name + ".yaml");
  const auto fill = [](std::string in, const char* what, const std::string& with) {
    return test::replaced(std::move(in), what, with);
  };
  std::string filled = fill(text, "TEXT", test::test_data("text/war_and_peace_held_out.txt").string());
  filled = fill(fill(fill(filled, "DIMS", dims), "STEPS", std::to_string(steps)), "NAME", name);
  test::write_file(file, fill(filled, "FOLDER", folder.path().string()));
  return file;
}

// With a thread for each rank.
const test::RunOptions alone = {.environment = {{"OMP_NUM_THREADS", "1"}, {"OMP_WAIT_POLICY", "PASSIVE"}}};

std::string generated(const std::string& out) {
  const size_t at = out.find("The old prince");
  EXPECT_NE(at, std::string::npos) << out;
  return at == std::string::npos ? "" : out.substr(at);
}

TEST(Ranks, TwoTrainAndGenerateAsOneDoes) {
  const TemporaryFolder folder;
  const auto one = test::run_program({"elarge", write_run(folder, "one", "[1, -1, 1, 1, 1]", 4).string()}, alone);
  ASSERT_EQ(one.status, 0) << one.err;
  const std::vector<std::pair<const char*, const char*>> meshes = {
      {"fsdp", "[1, 2, 1, 1, 1]"}, {"tp", "[1, 1, 1, 2, 1]"}, {"dp", "[2, 1, 1, 1, 1]"}};
  for (const auto& [name, dims] : meshes) {
    SCOPED_TRACE(name);
    const auto two = test::run_program({"--nproc", "2", "elarge", write_run(folder, name, dims, 4).string()}, alone);
    ASSERT_EQ(two.status, 0) << two.err;
    for (const char* key : {"loss", "grad_norm", "eval_loss"}) {
      const auto a = test::metric(folder / "one", key), b = test::metric(folder / name, key);
      ASSERT_EQ(a.size(), b.size()) << key;
      for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(b[i], a[i], 1e-5 * std::abs(a[i])) << key << " " << i;
    }
    EXPECT_EQ(test::metric(folder / name, "loss").size(), 4u);
    EXPECT_EQ(generated(two.out), generated(one.out));
    EXPECT_TRUE(fs::exists(folder / name / "run-4/model.safetensors"));
  }
}

// The text of a folder, by the engine on two ranks in this layout.
std::string text_of(const std::string& model, const std::string& dims) {
  const auto ran =
      test::run_program({"--nproc", "2", "generate", model, "-p", "The old prince", "-n", "12", "-t", "0", "--dtype",
                         "fp32", "--engine", "esurge", "--set", "esurge.sharding_axis_dims=" + dims},
                        alone);
  EXPECT_EQ(ran.status, 0) << ran.err;
  return generated(ran.out);
}

const std::string by_data = "[2, 1, 1, 1, 1]", by_tensor = "[1, 1, 1, 2, 1]", sharded = "[1, 2, 1, 1, 1]";

// The engine's ranks have a layout of their own: weights that were trained in another one are laid out anew.
TEST(Ranks, TheEngineGeneratesAfterTrainingAsOneDoes) {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& name, const std::string& dims, std::vector<std::string> words,
                       const std::string& engine = by_tensor) {
    words.insert(words.end(),
                 {"elarge", write_run(folder, name, dims, 2).string(), "--set", "actions[1].generate.engine=esurge"});
    if (name != "one") words.insert(words.end(), {"--set", "esurge.sharding_axis_dims=" + engine});
    const auto ran = test::run_program(words, alone);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return generated(ran.out);
  };
  const std::string one = run("one", "[1, -1, 1, 1, 1]", {});
  EXPECT_EQ(run("fsdp", sharded, {"--nproc", "2"}), one);
  EXPECT_EQ(run("fsdp_by_data", sharded, {"--nproc", "2"}, by_data), one);
  EXPECT_EQ(run("tp", by_tensor, {"--nproc", "2"}), one);
  EXPECT_EQ(run("dp", by_data, {"--nproc", "2"}), one);
  EXPECT_EQ(text_of((folder / "fsdp/run-2").string(), by_tensor), one);
}

// The run serves what it has trained, from memory.
TEST(Ranks, ServeWhatTheyHaveTrained) {
  const TemporaryFolder folder;
  const std::string untrained = text_of(test::test_data("models/stories260K-hf").string(), by_tensor);
  for (const auto& [name, dims, engine] :
       {std::tuple("fsdp", sharded, by_tensor), std::tuple("tp", by_tensor, by_data)}) {
    SCOPED_TRACE(name);
    const fs::path file = write_run(folder, name, dims, 2);
    const std::string run = test::read_file(file);
    test::write_file(file, run.substr(0, run.find("  - generate")) + "  - serve: {host: 127.0.0.1, port: 0}\n");
    test::ServeProcess server(
        {"--nproc", "2", "elarge", file.string(), "--set", "esurge.sharding_axis_dims=" + engine});
    const int64_t port = server.port();
    ASSERT_TRUE(server.is_ready()) << server.log();
    test::RawClient client(
        port, test::posted("/v1/completions", R"({"prompt": "The old prince", "temperature": 0, "max_tokens": 12})"));
    const std::string response = client.response();
    const Value answer = parse_json(test::body_of(response));
    ASSERT_TRUE(answer.find("choices")) << response;
    const std::string text = "The old prince" + answer.find("choices")->items[0].find("text")->scalar + "\n";
    EXPECT_EQ(text, text_of((folder / name / "run-2").string(), engine));
    EXPECT_NE(text, untrained);
    server.signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0) << server.log();
  }
}

// What a run's adapters learned is merged into the engine's weights.
TEST(Ranks, TheEngineGeneratesWithTrainedAdapters) {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& name, const std::string& engine, const std::string& rate) {
    const auto ran =
        test::run_program({"--nproc", "2", "elarge", write_run(folder, name, "[1, 2, 1, 1, 1]", 4).string(), "--set",
                           "actions[1].generate.engine=" + engine, "--set", "lora.r=4", "--set",
                           "lora.target_modules=all-linear", "--set", "trainer.learning_rate=" + rate},
                          alone);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return generated(ran.out);
  };
  const std::string plain = run("plain", "generator", "0.05");
  EXPECT_EQ(run("engine", "esurge", "0.05"), plain);
  EXPECT_NE(run("untrained", "esurge", "1e-9"), plain);
}

TEST(Ranks, OneThatDiesEndsTheRunWithItsStatus) {
  const TemporaryFolder folder;
  const fs::path run = write_run(folder, "dies", "[1, 2, 1, 1, 1]", 50);
  test::RunOptions options = alone;
  // Only rank 0 writes; its first fsync is in the checkpoint.
  options.environment.push_back({"EASYDEL_FAULT", "fsync:1:kill"});
  const auto ran =
      test::run_program({"--nproc", "2", "elarge", run.string(), "--set", "trainer.save_steps=2"}, options);
  EXPECT_EQ(ran.status, 128 + SIGKILL);
  EXPECT_NE(ran.err.find("easydel: rank 0 of 2 was killed by signal 9 (Killed); the other ranks were stopped, too\n"),
            std::string::npos)
      << ran.err;
}

// SIGTERM at an arbitrary moment of each rank: all ranks save at the same step, and a run on another mesh resumes
// there.
TEST(Ranks, StopTogetherAndResumeAsOne) {
  const TemporaryFolder folder;
  const fs::path run = write_run(folder, "stops", "[1, 2, 1, 1, 1]", 40);
  const fs::path straight = write_run(folder, "straight", "[1, -1, 1, 1, 1]", 40);
  // Slow enough that the few rows are not learned by heart: near zero a loss has few digits that two ways of summing
  // share.
  const std::string slow = "trainer.learning_rate=1e-4";
  ASSERT_EQ(test::run_program({"elarge", straight.string(), "--set", slow}, alone).status, 0);

  const pid_t launcher = fork();
  if (launcher == 0) {
    setenv("OMP_NUM_THREADS", "1", 1);
    if (!std::freopen("/dev/null", "w", stdout) || !std::freopen((folder / "err").c_str(), "w", stderr)) _exit(99);
    execl(test::program().c_str(), "easydel", "--nproc", "2", "elarge", run.c_str(), "--set", slow.c_str(), nullptr);
    _exit(99);
  }
  const fs::path metrics = folder / "stops/metrics.jsonl";
  for (int i = 0; i < 3000 && !(fs::exists(metrics) && test::metric(folder / "stops", "loss").size() > 2); ++i)
    usleep(10000);
  kill(launcher, SIGTERM);
  int status = 0;
  waitpid(launcher, &status, 0);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 128 + SIGTERM) << test::read_file(folder / "err");
  EXPECT_EQ(test::read_file(folder / "err").find("easydel: rank"), std::string::npos);

  const std::string one = "sharding.axis_dims=[1, -1, 1, 1, 1]";
  const auto rest = test::run_program({"elarge", run.string(), "--set", slow, "--set", one}, alone);
  ASSERT_EQ(rest.status, 0) << rest.err;
  const auto a = test::metric(folder / "straight", "loss"), b = test::metric(folder / "stops", "loss");
  ASSERT_EQ(a.size(), 40u);
  ASSERT_EQ(b.size(), 40u);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(b[i], a[i], 1e-4 * std::abs(a[i])) << i;
}

TEST(Ranks, RefuseAMeshThatDoesNotFit) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& dims, const std::string& ranks) {
    const fs::path run = write_run(folder, "refused", dims, 1);
    const auto ran = test::run_program({"--nproc", ranks, "elarge", run.string()}, alone);
    EXPECT_EQ(ran.status, 2);
    EXPECT_FALSE(fs::exists(folder / "refused"));
    return test::replaced(ran.err, run.string(), "RUN");
  };
  EXPECT_EQ(refused("[1, 4, 1, 1, 1]", "2"),
            "RUN:3:23: sharding.axis_dims: cannot reshape array of size 2 into shape (1,4,1,1,1)\n"
            "    the product of the dims must be the number of ranks, 2; start that many ranks with --nproc, or write "
            "-1 for one axis\n"
            "1 problem in RUN; nothing was run.\n");
  EXPECT_EQ(refused("[1, 1, 1, 1, 1]", "2"),
            "RUN:3:23: sharding.axis_dims: cannot reshape array of size 2 into shape (1,1,1,1,1)\n"
            "    the product of the dims must be the number of ranks, 2; start that many ranks with --nproc, or write "
            "-1 for one axis\n"
            "1 problem in RUN; nothing was run.\n");
  EXPECT_EQ(refused("[1, 1, 1, 1, -1]", "2"),
            "RUN:3:23: sharding.axis_dims: axis sp has 2 ranks, which is not built yet\n    set sp to 1; dp, fsdp and "
            "tp are built\n1 problem in RUN; nothing was run.\n");
}

// Before anything is computed, as other mistakes of a run.
TEST(Ranks, RefuseAnEngineThatIsNotBuiltOnRanks) {
  const TemporaryFolder folder;
  const fs::path run = write_run(folder, "refused", "[1, -1, 1, 1, 1]", 1);
  const auto ran =
      test::run_program({"--nproc", "2", "elarge", run.string(), "--set", "actions[1].generate.engine=esurge", "--set",
                         "esurge.sharding_axis_dims=[1, 2, 1, 1, 1]", "--set", "esurge.prefix_cache_path=cache"},
                        alone);
  EXPECT_EQ(ran.status, 2);
  EXPECT_FALSE(fs::exists(folder / "refused"));
  EXPECT_EQ(test::replaced(ran.err, run.string(), "RUN"),
            "--set esurge.sharding_axis_dims=[1, 2, 1, 1, 1]: esurge.sharding_axis_dims: axis fsdp has 2 ranks, which "
            "is not built yet for the engine\n    set fsdp to 1; dp and tp are built\n"
            "1 problem in RUN; nothing was run.\n");
}

TEST(Ranks, ValidateSaysWhichKeyOfHostsIsMissing) {
  const TemporaryFolder folder;
  const fs::path run = write_run(folder, "hosts", "[1, -1, 1, 1, 1]", 1);
  const auto validated = [&](std::vector<std::string> keys) {
    std::vector<std::string> words = {"validate", run.string(),
                                      "--set",    "actions[1].generate.engine=esurge",
                                      "--set",    "esurge.distributed_mode=true"};
    for (const std::string& key : keys) words.insert(words.end(), {"--set", "esurge." + key});
    const auto ran = test::run_program(words, alone);
    return test::replaced(ran.err, run.string(), "RUN");
  };
  EXPECT_NE(validated({}).find("esurge.distributed_world_size: is missing, and no launcher says how many ranks there "
                               "are\n    give the number of hosts\n1 problem in RUN; nothing was run.\n"),
            std::string::npos)
      << validated({});
  EXPECT_EQ(validated({"distributed_world_size=2", "distributed_rank=0", "distributed_advertise_addr=10.0.0.1"}), "");
}

TEST(Ranks, RefuseCommandsThatAreForOne) {
  const auto ran = test::run_program({"--nproc", "2", "doctor"}, alone);
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err,
            "--nproc: easydel doctor on several ranks is not built yet\n"
            "    built: elarge (run), generate, probe engine, serve, validate\n");
}

}  // namespace
}  // namespace easydel
