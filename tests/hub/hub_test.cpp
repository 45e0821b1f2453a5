// The hub's client against a server on this machine that plays the hub, also badly.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "easydel/base/document.h"
#include "easydel/base/files.h"
#include "easydel/data/columnar.h"
#include "easydel/data/inform_files.h"
#include "easydel/data/remote_files.h"
#include "easydel/data/save_dataset.h"
#include "easydel/hub/blob.h"
#include "easydel/hub/push.h"
#include "easydel/hub/repository.h"
#include "easydel/hub/resolve.h"
#include "support/data.h"

namespace easydel::hub {
namespace {

namespace fs = std::filesystem;
const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";

class FakeHub {
 public:
  explicit FakeHub(const fs::path& folder) : log_(folder / "log") {
    int in[2], out[2];
    check(pipe(in) == 0 && pipe(out) == 0, "pipe");
    child_ = fork();
    if (child_ == 0) {
      dup2(in[0], 0);
      dup2(out[1], 1);
      for (const int end : {in[0], in[1], out[0], out[1]}) close(end);
      const std::string script = (test::source_root() / "tests/hub/fake_hub.py").string();
      execlp("python3", "python3", script.c_str(), folder.c_str(), log_.c_str(), nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    stdin_ = in[1];
    std::string line;
    for (char c = 0; ::read(out[0], &c, 1) == 1 && c != '\n';) line += c;
    close(out[0]);
    endpoint_ = "http://127.0.0.1:" + line;
    started_ = !line.empty();
  }
  ~FakeHub() {
    close(stdin_);
    kill(child_, SIGTERM);
    waitpid(child_, nullptr, 0);
  }
  bool started() const { return started_; }
  const std::string& endpoint() const { return endpoint_; }
  std::string log() const { return fs::exists(log_) ? test::read_file(log_) : ""; }
  void forget() const { test::write_file(log_, ""); }

 private:
  fs::path log_;
  pid_t child_ = -1;
  int stdin_ = -1;
  bool started_ = false;
  std::string endpoint_;
};

class Hub : public testing::Test {
 protected:
  void SetUp() override {
    test::write_file(folder_ / "main/config.json", "{\"model_type\": \"llama\"}\n");
    test::write_file(folder_ / "main/sub/notes.txt", "notes\n");
    test::write_file(folder_ / "main/big.safetensors", std::string(100000, 'b'));
    test::write_file(folder_ / "main/broken.safetensors", std::string(100000, 'x') + "end");
    test::write_file(folder_ / "main/slow.safetensors", std::string(4000, 's'));
    hub_ = std::make_unique<FakeHub>(folder_.path());
    if (!hub_->started()) GTEST_SKIP() << "no python3";
    settings_.endpoint = hub_->endpoint();
    settings_.cache = folder_ / "cache";
    settings_.token = "secret";
    settings_.etag_seconds = settings_.download_seconds = 5;
  }
  Repository repository(const std::string& name = "org/name", const std::string& revision = "main") const {
    return Repository("model.name_or_path", name, RepositoryType::model, revision, settings_);
  }
  std::string refusal_of(const std::string& name, const std::string& file, const std::string& revision = "main") const {
    return test::refusal([&] { repository(name, revision).fetch(file); });
  }

  test::TemporaryFolder folder_;
  std::unique_ptr<FakeHub> hub_;
  Settings settings_;
};

TEST_F(Hub, KeepsFilesAsHuggingFacesToolsDo) {
  const auto file = repository().fetch("config.json");
  ASSERT_TRUE(file);
  const fs::path root = folder_ / "cache/models--org--name";
  EXPECT_EQ(*file, root / "snapshots" / kCommit / "config.json");
  EXPECT_TRUE(fs::is_symlink(*file));
  EXPECT_TRUE(fs::read_symlink(*file).is_relative());
  EXPECT_EQ(fs::read_symlink(*file).filename(), git_hash_of_file(*file));
  EXPECT_EQ(test::read_file(root / "refs/main"), kCommit);
  EXPECT_EQ(test::read_file(*file), "{\"model_type\": \"llama\"}\n");
  EXPECT_EQ(repository().fetch("nothing.json"), std::nullopt);
  EXPECT_TRUE(fs::exists(root / ".no_exist" / kCommit / "nothing.json"));
  EXPECT_TRUE(fs::exists(folder_ / "cache/.locks/models--org--name"));
}

TEST_F(Hub, NeverSendsTheTokenToAnotherHost) {
  repository().fetch("big.safetensors");
  const std::string log = hub_->log();
  EXPECT_NE(log.find("hub HEAD /org/name/resolve/main/big.safetensors Bearer secret"), std::string::npos) << log;
  EXPECT_NE(log.find("store GET /big.safetensors - -"), std::string::npos) << log;
}

TEST_F(Hub, FollowsARepositoryThatWasRenamed) {
  EXPECT_TRUE(repository("org/old").fetch("config.json"));
  EXPECT_NE(hub_->log().find("/org/name/resolve/main/config.json Bearer secret"), std::string::npos);
}

TEST_F(Hub, ResumesABrokenTransfer) {
  const auto file = repository().fetch("broken.safetensors");
  ASSERT_TRUE(file);
  EXPECT_EQ(test::read_file(*file), std::string(100000, 'x') + "end");
  EXPECT_NE(hub_->log().find("bytes=50001-"), std::string::npos) << hub_->log();
}

TEST_F(Hub, ThrowsAwayWhatHasAnotherHash) {
  test::write_file(folder_ / "main/wrong.safetensors", "not what it says");
  const std::string text = refusal_of("org/name", "wrong.safetensors");
  EXPECT_NE(
      text.find("the bytes do not have the SHA-256 that the hub announced\n    try again; what came was thrown away"),
      std::string::npos)
      << text;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "cache/models--org--name/blobs"))
    ADD_FAILURE() << entry.path();
}

TEST_F(Hub, ExplainsAWrongName) {
  EXPECT_EQ(refusal_of("org/other", "config.json"),
            "model.name_or_path: 'org/other': the hub has no such repository, or does not show it\n"
            "    check the name; HF_TOKEN may have no access");
  EXPECT_EQ(refusal_of("org/gated", "config.json"),
            "model.name_or_path: 'org/gated' is gated\n    ask for access on its page");
  EXPECT_EQ(refusal_of("org/name", "config.json", "nowhere"),
            "model.name_or_path: 'org/name@nowhere': the hub has no such revision\n    give a branch, a tag or a "
            "commit of it");
  EXPECT_EQ(refusal_of("../etc", "config.json"),
            "model.name_or_path: '../etc' is not a name on the hub\n    a name is 'owner/name'");
  EXPECT_EQ(refusal_of("org/name", "../../config.json"),
            "model.name_or_path: '../../config.json' is not a file of a repository");
}

TEST_F(Hub, DownloadsAllRequestedFilesAndNoOthers) {
  const fs::path snapshot = repository().fetch_all([](std::string_view) { return true; });
  EXPECT_EQ(snapshot.filename(), kCommit);
  EXPECT_EQ(test::read_file(snapshot / "sub/notes.txt"), "notes\n");
  EXPECT_EQ(fs::file_size(snapshot / "slow.safetensors"), 4000u);
  EXPECT_FALSE(fs::exists(snapshot / "../outside"));
}

TEST_F(Hub, WorksOfflineWithWhatIsCached) {
  repository().fetch("config.json");
  settings_.offline = true;
  hub_->forget();
  EXPECT_TRUE(repository().fetch("config.json"));
  EXPECT_EQ(refusal_of("org/name", "big.safetensors"),
            "model.name_or_path: 'org/name': big.safetensors is not in the cache " + settings_.cache.string() +
                ", and HF_HUB_OFFLINE is set\n    unset HF_HUB_OFFLINE, or give a folder");
  EXPECT_EQ(hub_->log(), "");
}

TEST_F(Hub, UsesTheCacheIfTheHubCannotBeReached) {
  repository().fetch("config.json");
  settings_.endpoint = "http://127.0.0.1:9";
  EXPECT_TRUE(repository().fetch("config.json"));
}

TEST_F(Hub, SendsOnlyChangesAndLargeFilesSeparately) {
  const fs::path mine = folder_ / "mine";
  test::write_file(mine / "config.json", "{\"model_type\": \"llama\"}\n");
  test::write_file(mine / "big.safetensors", std::string(100000, 'b'));
  test::write_file(mine / "new.safetensors", std::string(5000, 'n'));
  test::write_file(mine / "README.md", "hello\n");
  PushOptions options;
  options.repository = "org/name";
  options.settings = settings_;
  const Pushed pushed = push_folder("push", mine, options);
  EXPECT_EQ(pushed.sent, (std::vector<std::string>{"README.md", "new.safetensors"}));
  EXPECT_EQ(pushed.unchanged, 2);
  EXPECT_EQ(pushed.commit, kCommit);
  const std::string log = hub_->log();
  EXPECT_NE(log.find("aGVsbG8K"), std::string::npos) << log;  // hello, in base64
  EXPECT_NE(log.find("store PUT /" + files::sha256(std::string(5000, 'n')) + " - -"), std::string::npos) << log;
  options.settings.token = "";
  EXPECT_EQ(test::refusal([&] { push_folder("push", mine, options); }),
            "push: nothing can be sent without a token\n    set HF_TOKEN to one that may write");
}

TEST_F(Hub, ASavedDataSetIsSentWithACard) {
  test::write_file(folder_ / "rows.txt", "abc\nde\n");
  data::DatasetOptions options;
  options.informs.emplace_back().data_files = {(folder_ / "rows.txt").string()};
  const data::Dataset dataset = data::Dataset::build(options, [](const data::TypedRow& row) {
    data::Prepared out;
    out.example.emplace().add_sequence(std::vector<int32_t>(row.text.scalar.begin(), row.text.scalar.end()));
    return out;
  });
  data::MixtureConfig mixture;
  config::read(parse_yaml("{save: {path: " + (folder_ / "saved").string() +
                          ", format: jsonl, push_to_hub: true, hub_repo_id: org/name, hub_token: secret}}"),
               mixture, "mixture")
      .throw_if_any();
  const data::SavedExamples saved{"sft", data::sequence_columns};
  ::setenv("HF_ENDPOINT", settings_.endpoint.c_str(), 1);
  ::setenv("HF_HUB_OFFLINE", "0", 1);
  data::save_dataset("mixture.save", dataset, mixture, saved);
  const std::string card = test::read_file(folder_ / "saved/README.md");
  EXPECT_EQ(card,
            "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: train\n    path: train-*\n---\n"
            "Written by easydel: the tokens that sft learns from, a row for each example.\n");
  EXPECT_NE(hub_->log().find("\"path\": \"README.md\""), std::string::npos) << hub_->log();
  EXPECT_NE(hub_->log().find("\"path\": \"dataset_info.json\""), std::string::npos);
  // A card of one's own stays.
  test::write_file(folder_ / "saved/README.md", "# mine\n");
  data::save_dataset("mixture.save", dataset, mixture, saved);
  EXPECT_EQ(test::read_file(folder_ / "saved/README.md"), "# mine\n");
  for (const char* variable : {"HF_ENDPOINT", "HF_HUB_OFFLINE"}) ::unsetenv(variable);
}

TEST_F(Hub, ARunSendsItsModel) {
  const std::vector<std::pair<std::string, std::string>> with_token{
      {"HF_ENDPOINT", hub_->endpoint()}, {"HF_TOKEN", "secret"}, {"HF_HUB_OFFLINE", "0"}};
  auto without = with_token;
  without[1].second = "";
  without.emplace_back("HF_HOME", (folder_ / "home").string());
  const auto ran_with = [&](const std::string& more, const auto& environment) {
    test::write_file(folder_ / "run.yaml",
                     "model: {name_or_path: " + test::test_data("models/stories260K-hf").string() +
                         "}\nloader: {dtype: fp32, param_dtype: fp32}\n" + more);
    return test::run_program({"--quiet", "elarge", "run.yaml"}, {.environment = environment, .folder = folder_.path()});
  };
  const std::string action = "actions: [{push_to_hub: {repo_id: org/name, commit_message: mine}}]\n";
  const test::Ran sent = ran_with(action, with_token);
  EXPECT_EQ(sent.status, 0) << sent.err;
  EXPECT_TRUE(sent.out.starts_with("sent ") &&
              sent.out.ends_with(" files to org/name (0 unchanged): http://hub/commit\n"))
      << sent.out;
  EXPECT_NE(hub_->log().find("mine"), std::string::npos);
  EXPECT_NE(hub_->log().find("model.safetensors"), std::string::npos);
  EXPECT_NE(hub_->log().find("tokenizer.json"), std::string::npos);
  hub_->forget();

  EXPECT_EQ(ran_with("actions: [{push_to_hub: org/name}]\n", without).err,
            "run.yaml:3:25: actions[0].push_to_hub: nothing can be sent without a token\n"
            "    set HF_TOKEN to one that may write\n1 problem in run.yaml; nothing was run.\n");
  EXPECT_EQ(hub_->log(), "");

  test::write_file(folder_ / "rows.jsonl", "{\"text\": \"Once upon a time\"}\n");
  const std::string train =
      "mixture: {informs: [{data_files: rows.jsonl}]}\n"
      "trainer: {total_batch_size: 1, max_training_steps: 1, max_length: 32, save_directory: out, push_to_hub: true";
  EXPECT_EQ(ran_with(train + "}\nactions: [train]\n", with_token).err,
            "run.yaml:4:105: trainer.push_to_hub: needs the name of a repository\n    give hub_model_id: owner/name\n"
            "1 problem in run.yaml; nothing was run.\n");
  const test::Ran trained = ran_with(train + ", hub_model_id: org/name}\nactions: [train]\n", with_token);
  EXPECT_EQ(trained.status, 0) << trained.err;
  EXPECT_NE(trained.out.find(" files to org/name"), std::string::npos) << trained.out;
  EXPECT_NE(hub_->log().find("model.safetensors"), std::string::npos);
  for (const char* of_training : {"optimizer/", "state.json", "manifest.json"})  // the last checkpoint's, which is sent
    EXPECT_EQ(hub_->log().find(of_training), std::string::npos) << of_training;
}

TEST_F(Hub, AModelWithoutATokenizerIsSentToo) {
  for (const char* file : {"config.json", "model.safetensors"})
    test::write_file(folder_ / "plain" / file, test::read_file(test::test_data("models/stories260K-hf") / file));
  test::write_file(folder_ / "run.yaml", "model: {name_or_path: plain}\nactions: [{push_to_hub: org/name}]\n");
  const test::Ran ran = test::run_program(
      {"--quiet", "elarge", "run.yaml"},
      {.environment = {{"HF_ENDPOINT", hub_->endpoint()}, {"HF_TOKEN", "secret"}, {"HF_HUB_OFFLINE", "0"}},
       .folder = folder_.path()});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(hub_->log().find("model.safetensors"), std::string::npos);
  EXPECT_EQ(hub_->log().find("tokenizer"), std::string::npos);
}

TEST_F(Hub, ARunLearnsFromADataSet) {
  test::write_file(folder_ / "main/data/train-00000.jsonl",
                   "{\"text\": \"Once upon a time\"}\n{\"text\": \"there was a hat\"}\n");
  test::write_file(folder_ / "main/dev.jsonl", "{\"text\": \"One day\"}\n");
  const auto ran_with = [&](const std::string& informs) {
    test::write_file(folder_ / "run.yaml",
                     "model: {name_or_path: " + test::test_data("models/stories260K-hf").string() +
                         "}\nloader: {dtype: fp32, param_dtype: fp32}\nmixture: {informs: [" + informs +
                         "]}\ntrainer: {total_batch_size: 2, max_training_steps: 1, max_length: 32, "
                         "do_eval: true, eval_on_start: true, save_directory: out}\nactions: [train]\n");
    return test::run_program({"elarge", "run.yaml"}, {.environment = {{"HF_ENDPOINT", hub_->endpoint()},
                                                                      {"HF_HUB_CACHE", (folder_ / "cache").string()},
                                                                      {"HF_HUB_OFFLINE", "0"}},
                                                      .folder = folder_.path()});
  };
  const test::Ran ran = ran_with("{type: org/name}, {type: org/name, split: validation}");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("2 examples"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("evaluation  1 example,"), std::string::npos) << ran.out;
  EXPECT_TRUE(fs::exists(folder_ / "cache/datasets--org--name/snapshots" / kCommit / "data/train-00000.jsonl"));
  EXPECT_EQ(
      ran_with("{type: org/name, dataset_split_name: train}, {type: org/name, dataset_split_name: dev, split: test}")
          .status,
      0);
  EXPECT_EQ(ran_with("{type: org/name}, {type: org/name, split: mine}").err,
            "run.yaml:3:46: mixture.informs[1].type: 'org/name' has no files of the split 'mine'\n"
            "    splits: train, validation\n1 problem in run.yaml; nothing was run.\n");
}

TEST_F(Hub, ADataSetsCardNamesItsConfigurations) {
  test::write_file(folder_ / "main/README.md",
                   "---\nlicense: mit\nconfigs:\n- config_name: small\n  default: true\n  data_files: a.jsonl\n"
                   "- config_name: large\n  data_dir: big\n  data_files:\n  - {split: train, path: [\"*.csv\"]}\n  - "
                   "{split: dev, path: \"**/held.csv\"}\n"
                   "---\n# A data set\n");
  test::write_file(folder_ / "main/a.jsonl", "{\"text\": \"a\"}\n");
  test::write_file(folder_ / "main/big/b.csv", "text\nb\n");
  test::write_file(folder_ / "main/big/deep/held.csv", "text\nc\n");
  ::setenv("HF_ENDPOINT", settings_.endpoint.c_str(), 1);
  ::setenv("HF_HUB_CACHE", settings_.cache.c_str(), 1);
  ::setenv("HF_HUB_OFFLINE", "0", 1);
  const auto names = [&](const std::string& keys) {
    data::InformConfig inform;
    config::read(parse_yaml("{type: org/name" + keys + "}"), inform, "inform").throw_if_any();
    std::string out;
    for (const fs::path& file : data::files_of(inform, {}, "informs[0].type")) out += file.filename().string() + " ";
    return out;
  };
  EXPECT_EQ(names(""), "a.jsonl ");
  EXPECT_EQ(names(", dataset_split_name: large"), "b.csv ");
  EXPECT_EQ(names(", dataset_split_name: large, split: validation"), "held.csv ");
  EXPECT_EQ(names(", dataset_split_name: train"), "a.jsonl ");
  EXPECT_EQ(
      test::refusal([&] { names(", dataset_split_name: huge"); }),
      "informs[0].type: 'org/name' has no files of the split 'huge'\n    splits: train; configurations: small, large");
  for (const char* variable : {"HF_ENDPOINT", "HF_HUB_CACHE", "HF_HUB_OFFLINE"}) ::unsetenv(variable);
}

// hf://datasets/owner/name/file is one of data_files.
TEST_F(Hub, AFileOfADataSetHasAnAddress) {
  for (const char* file : {"data/a-1.jsonl", "data/a-2.jsonl", "data/b.jsonl"})
    test::write_file(folder_ / "main" / file, "{\"text\": \"x\"}\n");
  ::setenv("HF_ENDPOINT", settings_.endpoint.c_str(), 1);
  ::setenv("HF_HUB_CACHE", settings_.cache.c_str(), 1);
  ::setenv("HF_HUB_OFFLINE", "0", 1);
  const auto names = [&](const std::string& address) {
    std::string out;
    for (const fs::path& file : data::local_copies(address, {}, "informs[0].data_files"))
      out += file.filename().string() + " ";
    return out;
  };
  EXPECT_EQ(names("hf://datasets/org/name/data/b.jsonl"), "b.jsonl ");
  EXPECT_EQ(hub_->log().find("a-1"), std::string::npos) << "only what is asked for is fetched";
  EXPECT_EQ(names("hf://datasets/org/name@main/data/a-*.jsonl"), "a-1.jsonl a-2.jsonl ");
  EXPECT_EQ(test::refusal([&] { names("hf://datasets/org/name/c.jsonl"); }),
            "informs[0].data_files: no file of 'org/name' matches 'c.jsonl'\n"
            "    https://huggingface.co/datasets/org/name/tree/main lists its files");
  for (const char* variable : {"HF_ENDPOINT", "HF_HUB_CACHE", "HF_HUB_OFFLINE"}) ::unsetenv(variable);
}

// Only the requested files of a dataset are downloaded.
TEST_F(Hub, ADataSetsFilesAreOfOneSplitAndOfOneKind) {
  for (const char* file :
       {"data/train_sft-00000-of-00002.parquet", "data/train_sft-00001-of-00002.parquet",
        "data/test_sft-00000-of-00001.parquet", "data/notes.parquet", "other/train.jsonl", "kinds/train/a.csv",
        "kinds/train/b.csv", "kinds/train/requirements.txt", "kinds/train/dataset_info.json"})
    test::write_file(folder_ / "main" / file, "x\n1\n");
  ::setenv("HF_ENDPOINT", settings_.endpoint.c_str(), 1);
  ::setenv("HF_HUB_CACHE", settings_.cache.c_str(), 1);
  ::setenv("HF_HUB_OFFLINE", "0", 1);
  const auto files = [&](const std::string& keys) {
    data::InformConfig inform;
    config::read(parse_yaml("{type: org/name" + keys + "}"), inform, "inform").throw_if_any();
    std::vector<fs::path> out = data::files_of(inform, {}, "informs[0].type");
    return out;
  };
  const auto names = [&](const std::string& keys) {
    std::string out;
    for (const fs::path& file : files(keys)) out += file.filename().string() + " ";
    return out;
  };
  if (data::columnar_library_is_there()) {
    const auto found = files(", split: train_sft");
    ASSERT_EQ(found.size(), 2u);
    const fs::path folder = found[0].parent_path().parent_path();
    EXPECT_TRUE(fs::exists(folder / "data/train_sft-00001-of-00002.parquet"));
    EXPECT_FALSE(fs::exists(folder / "data/test_sft-00000-of-00001.parquet"));
    EXPECT_FALSE(fs::exists(folder / "other"));
    EXPECT_EQ(names(", dataset_split_name: test_sft"), "test_sft-00000-of-00001.parquet ");
  }
  EXPECT_EQ(test::refusal([&] { names(""); }),
            "informs[0].type: 'org/name' has no files of the split 'train'\n    splits: test_sft, train_sft");
  test::write_file(folder_ / "main/README.md",
                   "---\nconfigs:\n- {config_name: a, data_dir: kinds}\n- {config_name: b, data_dir: other}\n---\n");
  EXPECT_EQ(names(", dataset_split_name: a"), "a.csv b.csv ");
  EXPECT_EQ(names(", dataset_split_name: b"), "train.jsonl ");
  for (const char* variable : {"HF_ENDPOINT", "HF_HUB_CACHE", "HF_HUB_OFFLINE"}) ::unsetenv(variable);
}

// A cache that huggingface_hub wrote serves us, and ours serves it.
TEST_F(Hub, SharesItsCacheWithThePythonPackage) {
  const char* python = std::getenv("EASYDEL_TEST_PYTHON");
  const std::string interpreter = python ? python : "python3";
  if (test::run({interpreter, "-c", "import huggingface_hub"}).status != 0) GTEST_SKIP() << "no huggingface_hub";
  const test::RunOptions theirs{.environment = {{"HF_ENDPOINT", settings_.endpoint},
                                                {"HF_HUB_CACHE", (folder_ / "theirs").string()},
                                                {"HF_HUB_DISABLE_XET", "1"},
                                                {"HF_HUB_DISABLE_TELEMETRY", "1"}}};
  const std::string get =
      "import sys, huggingface_hub as h; print(h.hf_hub_download('org/name', sys.argv[1], "
      "local_files_only=sys.argv[2]=='1'))";
  for (const char* file : {"config.json", "big.safetensors"}) {
    const test::Ran ran = test::run({interpreter, "-c", get, file, "0"}, theirs);
    ASSERT_EQ(ran.status, 0) << ran.err;
  }
  Settings reads = settings_;
  reads.cache = folder_ / "theirs";
  reads.offline = true;
  Repository cached("x", "org/name", RepositoryType::model, "main", reads);
  EXPECT_TRUE(cached.fetch("config.json"));
  EXPECT_EQ(fs::file_size(*cached.fetch("big.safetensors")), 100000u);

  repository().fetch("config.json");
  repository().fetch("big.safetensors");
  test::RunOptions ours = theirs;
  ours.environment[1].second = settings_.cache.string();
  for (const char* file : {"config.json", "big.safetensors"}) {
    const test::Ran ran = test::run({interpreter, "-c", get, file, "1"}, ours);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_NE(ran.out.find(kCommit), std::string::npos);
  }
}

TEST(HubNames, AreOnlyWhatAHubWouldTake) {
  for (const char* good : {"gpt2", "org/name", "a.b-c/d_e.f"}) EXPECT_TRUE(is_hub_name(good)) << good;
  for (const char* bad : {"", "/x", "./x", "../x", "a/b/c", "a b", "a/", "a--b/c", "x/..", "~/x"})
    EXPECT_FALSE(is_hub_name(bad)) << bad;
}

}  // namespace
}  // namespace easydel::hub
