// Remote files against a server on this machine that also misbehaves.
#include "easydel/data/remote_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "data/web_server.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/data/dataset.h"
#include "easydel/data/inform_reader.h"
#include "support/data.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;

class RemoteFiles : public testing::Test {
 protected:
  void SetUp() override {
    rows_ = "{\"text\": \"" + std::string(20000, 'a') + "\"}\n{\"text\": \"two\"}\n";
    for (const char* name : {"rows", "broken", "busy", "secret", "whole", "changing", "headless"})
      test::write_file(folder_ / "served" / (std::string(name) + ".jsonl"), rows_);
    server_ = std::make_unique<WebServer>(folder_.path());
    if (!server_->started()) GTEST_SKIP() << "no python3";
    ::setenv("HF_HUB_OFFLINE", "0", 1);
    options_.cache = folder_ / "cache";
    options_.retry_seconds = 0;
  }
  void TearDown() override { ::unsetenv("HF_HUB_OFFLINE"); }
  std::string url(const std::string& name) const { return server_->address() + "/data/" + name + ".jsonl"; }
  std::string fetched(const std::string& name) const {
    const std::vector<fs::path> files = local_copies(url(name), options_, "data_files");
    EXPECT_EQ(files.size(), 1u);
    EXPECT_EQ(files.at(0).filename(), name + ".jsonl");
    return test::read_file(files.at(0));
  }
  std::string refused(const std::string& name) const {
    return test::replaced(test::refusal([&] { local_copies(name, options_, "data_files"); }), server_->address(),
                          "http://HOST");
  }
  test::TemporaryFolder folder_;
  std::string rows_;
  std::unique_ptr<WebServer> server_;
  RemoteOptions options_;
};

TEST_F(RemoteFiles, AreFetchedOnceAndAskedForAgainWhenTheCopyExpires) {
  EXPECT_EQ(fetched("rows"), rows_);
  EXPECT_EQ(server_->log(), "HEAD /data/rows.jsonl -\nGET /data/rows.jsonl -\n");
  server_->forget();
  EXPECT_EQ(fetched("rows"), rows_);
  EXPECT_EQ(server_->log(), "") << "the copy is younger than a day";
  options_.expiry_seconds = 0;
  EXPECT_EQ(fetched("rows"), rows_);
  EXPECT_EQ(server_->log(), "HEAD /data/rows.jsonl -\n") << "the file is still the same";
  server_->forget();
  test::write_file(folder_ / "served/rows.jsonl", "{\"text\": \"new\"}\n");
  EXPECT_EQ(fetched("rows"), "{\"text\": \"new\"}\n");
  EXPECT_EQ(server_->log(), "HEAD /data/rows.jsonl -\nGET /data/rows.jsonl -\n");
}

TEST_F(RemoteFiles, ComeThroughABadNetwork) {
  EXPECT_EQ(fetched("broken"), rows_);
  const std::string half = std::to_string(rows_.size() / 2);
  EXPECT_EQ(server_->log(),
            "HEAD /data/broken.jsonl -\nGET /data/broken.jsonl -\nGET /data/broken.jsonl bytes=" + half + "-\n")
      << "it goes on where it stopped";
  EXPECT_EQ(fetched("busy"), rows_);
  EXPECT_EQ(fetched("whole"), rows_) << "the server knows no ranges";
  server_->forget();
  EXPECT_EQ(fetched("headless"), rows_);
  EXPECT_EQ(server_->log(), "HEAD /data/headless.jsonl -\nGET /data/headless.jsonl -\n") << "once is enough";
  for (const char* status : {"500", "429", "408"}) {
    test::write_file(folder_ / "served" / str("once", status, ".jsonl"), rows_);
    EXPECT_EQ(fetched(str("once", status)), rows_);
  }
  options_.retries = 1;
  EXPECT_EQ(refused(url("busy2")),
            "data_files: 'http://HOST/data/busy2.jsonl' is not there: the server answers 404\n"
            "    check the address");
  test::write_file(folder_ / "served/busy3.jsonl", rows_);
  EXPECT_EQ(refused(url("busy3")),
            "data_files: 'http://HOST/data/busy3.jsonl' cannot be fetched: the server answers 503\n"
            "    try again, or raise mixture.cloud_max_retries");
}

// Its halves never come from two versions.
TEST_F(RemoteFiles, MayChangeWhileTheyAreFetched) {
  std::string other = rows_;
  std::ranges::replace(other, 'a', 'b');
  EXPECT_EQ(fetched("changing"), other);
}

TEST_F(RemoteFiles, AskForTheirToken) {
  EXPECT_EQ(refused(url("secret")),
            "data_files: 'http://HOST/data/secret.jsonl' needs a permission: the server answers 403\n"
            "    give mixture.dask_storage_options: {token: ...}, or fetch the file yourself");
  test::write_file(folder_ / "served/once401.jsonl", rows_);
  EXPECT_TRUE(refused(url("once401")).starts_with("data_files: 'http://HOST/data/once401.jsonl' needs a permission: "));
  options_.token = "open";
  EXPECT_EQ(fetched("secret"), rows_);
}

TEST_F(RemoteFiles, ThatCannotBeReachedAreTakenFromTheCopy) {
  EXPECT_EQ(fetched("rows"), rows_);
  options_.expiry_seconds = 0, options_.retries = 0;
  const std::string address = url("rows");
  server_.reset();
  const std::vector<fs::path> files = local_copies(address, options_, "data_files");
  EXPECT_EQ(test::read_file(files.at(0)), rows_);
}

TEST_F(RemoteFiles, AreRowsOfAnInform) {
  DatasetOptions options;
  options.informs.emplace_back().data_files = {url("rows")};
  options.remote = options_;
  const Prepare nothing = [](const TypedRow&) { return Prepared(); };
  std::vector<std::string> rows;
  InformReader(options, 0, nothing).read([&](PreparedRow& row) {
    rows.push_back(fs::path(row.row.where).filename().string());
    return true;
  });
  EXPECT_EQ(rows, (std::vector<std::string>{"rows.jsonl:1", "rows.jsonl:2"}));
}

TEST_F(RemoteFiles, RefuseWhatIsNotRead) {
  EXPECT_EQ(refused("ftp://host/a.jsonl"),
            "data_files: reading 'ftp://host/a.jsonl' is not built yet\n"
            "    https://, hf://, s3:// and gs:// are read; copy other files here");
  EXPECT_EQ(refused("https://host"),
            "data_files: 'https://host' names no file\n"
            "    give the address of a file, for example https://host/rows.jsonl");
  EXPECT_EQ(refused("hf://datasets/owner/name"),
            "data_files: 'hf://datasets/owner/name' names no file of a dataset\n"
            "    write hf://datasets/owner/name/file.jsonl; for a whole dataset give type: owner/name");
}

}  // namespace
}  // namespace easydel::data
