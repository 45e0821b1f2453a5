// s3:// against moto's server (PyPI's moto[server,s3]; EASYDEL_MOTO names moto_server, else it is looked for in PATH).
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

class Moto {
 public:
  explicit Moto(const fs::path& log) : port_(std::to_string(free_port())) {
    const char* const named = std::getenv("EASYDEL_MOTO");
    const std::string program = named ? named : "moto_server";
    child_ = fork();
    if (child_ == 0) {
      if (!std::freopen(log.c_str(), "w", stderr) || !std::freopen("/dev/null", "w", stdout)) _exit(127);
      execlp(program.c_str(), program.c_str(), "-H", "127.0.0.1", "-p", port_.c_str(), nullptr);
      _exit(127);
    }
    for (int i = 0; i < 300 && !started_; ++i) {
      if (waitpid(child_, nullptr, WNOHANG) == child_) {
        child_ = -1;
        return;
      }
      started_ = test::run({"curl", "-sf", address()}).status == 0;
      if (!started_) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  ~Moto() {
    if (child_ < 0) return;
    kill(child_, SIGTERM);
    waitpid(child_, nullptr, 0);
  }
  Moto(const Moto&) = delete;
  Moto& operator=(const Moto&) = delete;
  bool started() const { return started_; }
  std::string address() const { return "http://127.0.0.1:" + port_; }
  void put(const std::string& name, const std::string& text = "") const {
    std::vector<std::string> command{"curl", "-sSf", "-X", "PUT", address() + "/" + name};
    if (!text.empty())  // else it is a bucket
      command.insert(command.end(), {"-H", "Authorization: AWS k:s", "-H", "Content-Type: application/octet-stream",
                                     "--data-binary", text});
    const test::Ran ran = test::run(command);
    check(ran.status == 0, name, ": ", ran.status, " ", ran.err);
  }

 private:
  std::string port_;
  pid_t child_ = -1;
  bool started_ = false;
};

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

}  // namespace
}  // namespace easydel::data
