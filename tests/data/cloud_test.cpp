// s3:// against moto's server (PyPI's moto[server,s3]; EASYDEL_MOTO names moto_server, else it is looked for in PATH),
// and gs:// against PyPI's gcp-storage-emulator (EASYDEL_GCS_EMULATOR, or in PATH).
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "easydel/base/error.h"
#include "easydel/data/byte_stream.h"
#include "easydel/data/columnar.h"
#include "easydel/data/remote_files.h"
#include "support/data.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;
using test::refusal;

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  check(::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(socket);
  return ntohs(address.sin_port);
}

// A storage on this machine, emptied when it ends.
class Storage {
 public:
  // `arguments` follow the program; "PORT" in them is replaced. `alive`: an address below its own that it answers.
  Storage(const fs::path& log, const char* variable, std::string program, std::vector<std::string> arguments,
          const std::string& alive)
      : port_(std::to_string(free_port())) {
    if (const char* const named = std::getenv(variable)) program = named;
    for (std::string& argument : arguments) argument = test::replaced(argument, "PORT", port_);
    std::vector<char*> line{program.data()};
    for (std::string& argument : arguments) line.push_back(argument.data());
    line.push_back(nullptr);
    child_ = fork();
    if (child_ == 0) {
      if (!std::freopen(log.c_str(), "w", stderr) || !std::freopen("/dev/null", "w", stdout)) _exit(127);
      execvp(program.c_str(), line.data());
      _exit(127);
    }
    for (int i = 0; i < 300 && !started_; ++i) {
      if (waitpid(child_, nullptr, WNOHANG) == child_) {
        child_ = -1;
        return;
      }
      started_ = test::run({"curl", "-sf", address() + alive}).status == 0;
      if (!started_) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  ~Storage() {
    if (child_ < 0) return;
    kill(child_, SIGTERM);
    waitpid(child_, nullptr, 0);
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  bool started() const { return started_; }
  std::string address() const { return "http://127.0.0.1:" + port_; }

 protected:
  void send(std::vector<std::string> command, const std::string& text) const {
    if (!text.empty())
      command.insert(command.end(), {"-H", "Content-Type: application/octet-stream", "--data-binary", text});
    const test::Ran ran = test::run(command);
    check(ran.status == 0, command.back(), ": ", ran.status, " ", ran.err);
  }

 private:
  std::string port_;
  pid_t child_ = -1;
  bool started_ = false;
};

class Moto : public Storage {
 public:
  explicit Moto(const fs::path& log)
      : Storage(log, "EASYDEL_MOTO", "moto_server", {"-H", "127.0.0.1", "-p", "PORT"}, "") {}
  void put(const std::string& name, const std::string& text = "") const {
    std::vector<std::string> command{"curl", "-sSf", "-X", "PUT", address() + "/" + name};
    if (!text.empty()) command.insert(command.end(), {"-H", "Authorization: AWS k:s"});  // else it is a bucket
    send(std::move(command), text);
  }
};

class GoogleStorage : public Storage {
 public:
  explicit GoogleStorage(const fs::path& log)
      : Storage(log, "EASYDEL_GCS_EMULATOR", "gcp-storage-emulator",
                {"start", "--host=127.0.0.1", "--port=PORT", "--default-bucket=bucket", "--in-memory"},
                "/storage/v1/b/bucket") {}
  void put(const std::string& name, const std::string& text) const {
    send({"curl", "-sSf", "-o", "/dev/null", "-X", "POST",
          address() + "/upload/storage/v1/b/bucket/o?uploadType=media&name=" + test::replaced(name, "/", "%2F")},
         text);
  }
};

// Reads by ranges, and a file that changes between two of them.
template <class Put>
void expect_ranges(RemoteOptions options, const std::string& address, const Put& put) {
  options.keeps = false;
  options.piece_bytes = 10;
  const std::string rows = "{\"text\": \"a\"}\n{\"text\": \"bcd\"}\n";
  put(rows);
  const fs::path file = local_copies(address, options, "data_files").at(0);
  EXPECT_EQ(file.string(), address);
  EXPECT_EQ(read_all(*open_bytes(file)), rows);
  EXPECT_FALSE(fs::exists(options.cache / "remote"));
  options.expiry_seconds = 0;
  const fs::path again = local_copies(address, options, "data_files").at(0);
  put("another one, which is longer than the first\n");
  EXPECT_EQ(refusal([&] { read_all(*open_bytes(again)); }),
            address + ": changed while it was read\n    run again when nothing writes to it");
}

TEST(CloudFiles, AreListedFetchedAndKept) {
  if (!columnar_library_is_there()) GTEST_SKIP() << "built without Arrow";
  const test::TemporaryFolder folder;
  const Moto moto(folder / "log");
  if (!moto.started()) GTEST_SKIP() << "no moto_server (pip install 'moto[server,s3]', EASYDEL_MOTO)";
  moto.put("bucket");
  moto.put("bucket/data/a.jsonl", "{\"text\": \"a\"}\n");
  moto.put("bucket/data/b.jsonl", "{\"text\": \"b\"}\n");
  moto.put("bucket/data/deeper/c.jsonl", "{\"text\": \"c\"}\n");
  moto.put("bucket/data/README.md", "none");
  MixtureConfig mixture;
  mixture.cache_dir = (folder / "cache").string();
  mixture.cloud_max_retries = 0;
  mixture.dask_storage_options =
      parse_json(R"({"key": "k", "secret": "s", "endpoint_url": ")" + moto.address() + "\"}");
  const auto fetched = [&](const std::string& name) {
    std::string out;
    for (const fs::path& file : local_copies(name, remote_options(mixture), "data_files"))
      out += file.filename().string() + " " + test::read_file(file);
    return out;
  };
  const std::string a = "a.jsonl {\"text\": \"a\"}\n", b = "b.jsonl {\"text\": \"b\"}\n",
                    c = "c.jsonl {\"text\": \"c\"}\n";
  EXPECT_EQ(fetched("s3://bucket/data/a.jsonl"), a);
  EXPECT_EQ(fetched("s3://bucket/data/*.jsonl"), a + b);
  EXPECT_EQ(fetched("s3://bucket/data/**/*.jsonl"), a + b + c);
  EXPECT_EQ(fetched("s3://bucket/data"), a + b + c) << "files of rows";
  // A copy is used until it expires; then the file that is there now is fetched.
  moto.put("bucket/data/a.jsonl", "{\"text\": \"another\"}\n");
  EXPECT_EQ(fetched("s3://bucket/data/a.jsonl"), a);
  mixture.cache_expiry_seconds = 0;
  EXPECT_EQ(fetched("s3://bucket/data/a.jsonl"), "a.jsonl {\"text\": \"another\"}\n");

  EXPECT_EQ(refusal([&] { fetched("s3://bucket/none.jsonl"); }),
            "data_files: there is no file at 's3://bucket/none.jsonl'\n    check the address");
  EXPECT_EQ(refusal([&] { fetched("s3://"); }),
            "data_files: 's3://' names no bucket\n    write s3://bucket/file.jsonl");
  mixture.dask_storage_options = parse_json(R"({"key": "k", "secret": "s", "endpoint_url": "http://127.0.0.1:1"})");
  EXPECT_TRUE(refusal([&] {
                fetched("s3://bucket/data/a.jsonl");
              }).starts_with("data_files: 's3://bucket/data/a.jsonl' cannot be read: "));
}

TEST(CloudFiles, AreReadByRanges) {
  if (!columnar_library_is_there()) GTEST_SKIP() << "built without Arrow";
  const test::TemporaryFolder folder;
  const Moto moto(folder / "log");
  if (!moto.started()) GTEST_SKIP() << "no moto_server (pip install 'moto[server,s3]', EASYDEL_MOTO)";
  moto.put("bucket");
  MixtureConfig mixture;
  mixture.cache_dir = (folder / "cache").string();
  mixture.cloud_max_retries = 0;
  mixture.dask_storage_options =
      parse_json(R"({"key": "k", "secret": "s", "endpoint_url": ")" + moto.address() + "\"}");
  expect_ranges(remote_options(mixture), "s3://bucket/data/a.jsonl",
                [&](const std::string& text) { moto.put("bucket/data/a.jsonl", text); });
}

TEST(CloudFiles, OfGoogleAreReadToo) {
  if (!columnar_library_is_there()) GTEST_SKIP() << "built without Arrow";
  const test::TemporaryFolder folder;
  const GoogleStorage storage(folder / "log");
  if (!storage.started()) GTEST_SKIP() << "no gcp-storage-emulator (PyPI; EASYDEL_GCS_EMULATOR)";
  storage.put("data/a.jsonl", "{\"text\": \"a\"}\n");
  storage.put("data/b.jsonl", "{\"text\": \"b\"}\n");
  MixtureConfig mixture;
  mixture.cache_dir = (folder / "cache").string();
  mixture.cloud_max_retries = 0;
  mixture.dask_storage_options = parse_json(R"({"anon": true, "endpoint_url": ")" + storage.address() + "\"}");
  std::string texts;
  for (const char* name : {"gs://bucket/data/a.jsonl", "gs://bucket/data/*.jsonl", "gs://bucket/data"})
    for (const fs::path& file : local_copies(name, remote_options(mixture), "data_files"))
      texts += file.filename().string() + " " + test::read_file(file);
  const std::string a = "a.jsonl {\"text\": \"a\"}\n", b = "b.jsonl {\"text\": \"b\"}\n";
  EXPECT_EQ(texts, a + a + b + a + b);
  EXPECT_EQ(refusal([&] { local_copies("gs://bucket/none.jsonl", remote_options(mixture), "data_files"); }),
            "data_files: there is no file at 'gs://bucket/none.jsonl'\n    check the address");
  RemoteOptions ranges = remote_options(mixture);
  ranges.cache = folder / "nothing";
  expect_ranges(ranges, "gs://bucket/data/c.jsonl",
                [&](const std::string& text) { storage.put("data/c.jsonl", text); });
}

}  // namespace
}  // namespace easydel::data
