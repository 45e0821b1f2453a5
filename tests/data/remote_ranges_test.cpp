// Files that are read by ranges, against a server on this machine that also misbehaves.
#include "easydel/data/remote_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "data/web_server.h"
#include "easydel/base/file_stamp.h"
#include "easydel/base/files.h"
#include "easydel/base/ranged_file.h"
#include "easydel/data/byte_stream.h"
#include "easydel/data/columnar.h"
#include "easydel/data/dataset.h"
#include "easydel/data/inform_reader.h"
#include "easydel/data/row_index.h"
#include "support/data.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;

class RemoteRanges : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 500; ++i) rows_ += str("{\"text\": \"a", i, "\"}\n");
    for (const char* name : {"rows", "broken", "busy", "once500", "secret", "whole", "changing", "slow", "broken2"})
      test::write_file(served() / (std::string(name) + ".jsonl"), rows_);
    server_ = std::make_unique<WebServer>(folder_.path());
    if (!server_->started()) GTEST_SKIP() << "no python3";
    options_.cache = folder_ / "cache";
    options_.keeps = false;
    options_.retry_seconds = 0;
    options_.piece_bytes = 1000;
  }
  fs::path served() const { return folder_ / "served"; }
  std::string url(const std::string& name) const { return server_->address() + "/data/" + name; }
  std::string read(const std::string& name) const {
    const std::vector<fs::path> files = local_copies(url(name), options_, "data_files");
    EXPECT_EQ(files.size(), 1u);
    return read_all(*open_bytes(files.at(0)));
  }
  std::string refused(const std::string& name) const {
    return test::replaced(test::refusal([&] { read(name); }), server_->address(), "http://HOST");
  }
  // The rows of an inform, as "file:row" and text.
  std::vector<std::string> rows_of(const fs::path& file) const {
    std::vector<std::string> out;
    source_of_file(file)->read(file, {}, [&](const Row& row) { return out.push_back(to_json(row.fields)), true; });
    return out;
  }
  test::TemporaryFolder folder_;
  std::string rows_;
  std::unique_ptr<WebServer> server_;
  RemoteOptions options_;
};

TEST_F(RemoteRanges, AreReadPieceByPieceAndNothingIsKept) {
  EXPECT_EQ(read("rows.jsonl"), rows_);
  std::string want;
  for (size_t at = 0; at < rows_.size(); at += 1000)
    want += str("GET /data/rows.jsonl bytes=", at, "-", std::min(at + 999, at == 0 ? 999 : rows_.size() - 1), "\n");
  EXPECT_EQ(server_->log(), want);
  EXPECT_FALSE(fs::exists(options_.cache));
  server_->forget();
  EXPECT_EQ(read("rows.jsonl"), rows_);
  EXPECT_EQ(server_->log(), "") << "the last pieces are in memory, and the version is known";
}

TEST_F(RemoteRanges, AreFilesToWhoAsks) {
  const fs::path file = local_copies(url("rows.jsonl?part=1#here"), options_, "data_files").at(0);
  EXPECT_EQ(file.string(), url("rows.jsonl"));
  EXPECT_EQ(files::size(file), rows_.size());
  EXPECT_EQ(files::sha256_of_file(file), files::sha256(rows_));
  const files::Stamp stamp = files::stamp_of(file);
  EXPECT_EQ(stamp.bytes, rows_.size());
  EXPECT_EQ(stamp, files::stamp_of(file));
  char some[7];
  EXPECT_EQ(files::ranged(file)->read(rows_.size() - 4, some, 7), 4u);
  EXPECT_EQ(std::string(some, 4), rows_.substr(rows_.size() - 4));
  EXPECT_EQ(files::ranged(file)->read(rows_.size() + 5, some, 7), 0u);
  EXPECT_EQ(files::ranged("/nowhere"), nullptr);
}

TEST_F(RemoteRanges, OfAllKindsHaveTheirRows) {
  const fs::path columns = test::test_data("columnar");
  std::vector<std::string> names{"rows.jsonl"};
  for (const char* name : {"zstd_1.parquet", "chats.parquet", "arrow_types_file.arrow", "arrow_types_stream.arrow"}) {
    if (!columnar_library_is_there()) break;
    test::write_file(served() / name, test::read_file(columns / name));
    names.emplace_back(name);
  }
  test::write_file(served() / "list.json", "[{\"text\": \"a\"}, {\"text\": \"b\"}]");
  test::write_file(served() / "table.csv", "text,n\na,1\n\"b\nc\",2\n");
  test::write_file(served() / "empty.jsonl", "");
  names.insert(names.end(), {"list.json", "table.csv", "empty.jsonl"});
  for (const auto& [command, name] : {std::pair{"gzip", "rows.jsonl.gz"}, {"xz", "rows.jsonl.xz"}}) {
    const std::string made =
        str(command, " -c ", (served() / "rows.jsonl").string(), " > ", (served() / name).string());
    if (test::run({"sh", "-c", made}).status == 0) names.emplace_back(name);
  }
  if (test::run({"sh", "-c", str("cd ", served().string(), " && tar cf rows.tar table.csv rows.jsonl")}).status == 0)
    names.emplace_back("rows.tar");
  ASSERT_GE(names.size(), 6u);
  for (const std::string& name : names) {
    std::vector<std::string> rows = rows_of(local_copies(url(name), options_, "data_files").at(0));
    // Rows of an archive say where it is.
    for (std::string& row : rows) row = test::replaced(row, url(name), (served() / name).string());
    EXPECT_EQ(rows, rows_of(served() / name)) << name;
  }
}

TEST_F(RemoteRanges, AreGoneToByAnIndex) {
  const fs::path file = local_copies(url("rows.jsonl"), options_, "data_files").at(0);
  const RowIndex index = make_row_index(*source_of_file(file), file, SampleBy::line);
  EXPECT_EQ(index.rows, 500);
  server_->forget();
  ReadOptions options;
  const RowPlace place{499, int64_t(rows_.rfind("{")), 500};
  options.begin = &place;
  std::string where;
  source_of_file(file)->read(file, options, [&](const Row& row) { return where = row.where, true; });
  EXPECT_EQ(where, file.string() + ":500");
}

TEST_F(RemoteRanges, ComeThroughABadNetwork) {
  EXPECT_EQ(read("broken.jsonl"), rows_);
  EXPECT_EQ(server_->log().substr(0, 78),
            "GET /data/broken.jsonl bytes=0-999\nGET /data/broken.jsonl bytes=0-999\nGET /dat");
  EXPECT_EQ(read("busy.jsonl"), rows_);
  EXPECT_EQ(read("once500.jsonl"), rows_);
  EXPECT_EQ(read("slow.jsonl"), rows_);
  options_.retries = 0;
  EXPECT_EQ(
      refused("broken2.jsonl"),
      "data_files: 'http://HOST/data/broken2.jsonl' cannot be read: http://HOST/data/broken2.jsonl: Transferred a "
      "partial file\n    try again, or raise mixture.cloud_max_retries");
}

TEST_F(RemoteRanges, ThatBreakLaterNameTheByte) {
  options_.retries = 0;
  const fs::path file = local_copies(url("rows.jsonl"), options_, "data_files").at(0);
  const std::string address = server_->address();
  server_.reset();
  const std::string text = test::replaced(test::refusal([&] { read_all(*open_bytes(file)); }), address, "http://HOST");
  EXPECT_TRUE(text.starts_with("http://HOST/data/rows.jsonl: cannot be read from byte 1000 on: ")) << text;
  EXPECT_TRUE(text.ends_with("\n    try again, or raise mixture.cloud_max_retries")) << text;
}

TEST_F(RemoteRanges, MayNotChangeBetweenTwoRequests) {
  const std::string want =
      "http://HOST/data/changing.jsonl: changed while it was read\n    run again when nothing writes to it";
  EXPECT_EQ(refused("changing.jsonl"), want);
  const fs::path file = local_copies(url("rows.jsonl"), options_, "data_files").at(0);
  test::write_file(served() / "rows.jsonl", "short");
  EXPECT_EQ(test::replaced(test::refusal([&] { rows_of(file); }), server_->address(), "http://HOST"),
            test::replaced(want, "changing", "rows"));
}

TEST_F(RemoteRanges, OfColumnsSayWhatWentWrongOnce) {
  if (!columnar_library_is_there()) GTEST_SKIP() << "built without Arrow";
  for (const char* name : {"zstd_1.parquet", "arrow_types_file.arrow"}) {
    test::write_file(served() / name, test::read_file(test::test_data("columnar") / name));
    options_.piece_bytes = 100;
    const fs::path file = local_copies(url(name), options_, "data_files").at(0);
    test::write_file(served() / name, "another file");
    EXPECT_EQ(test::replaced(test::refusal([&] { rows_of(file); }), server_->address(), "http://HOST"),
              str("http://HOST/data/", name, ": changed while it was read\n    run again when nothing writes to it"));
  }
}

TEST_F(RemoteRanges, NeedAServerThatSendsThem) {
  EXPECT_EQ(refused("whole.jsonl"),
            "data_files: the server of 'http://HOST/data/whole.jsonl' sends no ranges of bytes, so the file cannot be "
            "read without a copy\n    leave mixture.cache_remote_files out, or set it to true");
}

TEST_F(RemoteRanges, RefuseWhatTheyCannotRead) {
  EXPECT_EQ(refused("nothing.jsonl"),
            "data_files: 'http://HOST/data/nothing.jsonl' is not there: the server answers 404\n"
            "    check the address");
  EXPECT_EQ(refused("secret.jsonl"),
            "data_files: 'http://HOST/data/secret.jsonl' needs a permission: the server answers 403\n"
            "    give mixture.dask_storage_options: {token: ...}, or fetch the file yourself");
  options_.token = "open";
  EXPECT_EQ(read("secret.jsonl"), rows_);
  EXPECT_EQ(refused("rows.parquet.gz"),
            "data_files: 'http://HOST/data/rows.parquet.gz' is packed and must be read whole, so it cannot be read "
            "without a copy\n    leave mixture.cache_remote_files out, or set it to true");
  EXPECT_EQ(read("rows.jsonl?v=1"), rows_);
  EXPECT_EQ(refused("rows.jsonl?v=2"),
            "data_files: 'http://HOST/data/rows.jsonl?v=2' and 'http://HOST/data/rows.jsonl?v=1' differ in their query "
            "alone\n    leave mixture.cache_remote_files out, or set it to true");
}

TEST_F(RemoteRanges, AreAskedForAnewWhenTheirTimeIsOver) {
  EXPECT_EQ(read("rows.jsonl"), rows_);
  test::write_file(served() / "rows.jsonl", "{\"text\": \"new\"}\n");
  options_.expiry_seconds = 0;
  EXPECT_EQ(read("rows.jsonl"), "{\"text\": \"new\"}\n");
}

TEST_F(RemoteRanges, AreRowsOfAnInform) {
  DatasetOptions options;
  options.informs.emplace_back().data_files = {url("rows.jsonl")};
  options.informs[0].num_rows = 2;
  options.remote = options_;
  const Prepare nothing = [](const TypedRow&) { return Prepared(); };
  std::vector<std::string> rows;
  InformReader(options, 0, nothing).read([&](PreparedRow& row) {
    rows.push_back(test::replaced(row.row.where, server_->address(), "http://HOST"));
    return true;
  });
  EXPECT_EQ(rows, (std::vector<std::string>{"http://HOST/data/rows.jsonl:1", "http://HOST/data/rows.jsonl:2"}));
}

}  // namespace
}  // namespace easydel::data
