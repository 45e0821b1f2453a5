#include "easydel/base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "easydel/base/error.h"
#include "support/data.h"

namespace easydel::files {
namespace {

using test::refusal;

// Restores the disk after the test.
class Files : public testing::Test {
 protected:
  ~Files() override { set_fault({}); }
  test::TemporaryFolder folder_;
};

size_t entries_in(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST_F(Files, AreWrittenWholeOrNotAtAll) {
  write(folder_ / "a", "old");
  for (int n = 1; n <= 6; ++n) {
    int seen = 0;
    set_fault([&](Operation, const fs::path&) { return ++seen == n ? ENOSPC : 0; });
    bool failed = false;
    try {
      Writer writer(folder_ / "a");
      writer.write("the ");
      writer.write("new text");
      writer.commit();
    } catch (const UserError&) {
      failed = true;
    }
    set_fault({});
    const std::string now = read(folder_ / "a");
    // The last step, the folder's fsync, fails after the rename.
    EXPECT_TRUE(now == "old" || (now == "the new text" && n >= 5)) << n << ": " << now;
    EXPECT_EQ(failed, n <= 5) << n;
    EXPECT_EQ(entries_in(folder_.path()), 1u) << "left over after step " << n;
    write(folder_ / "a", "old");
  }
}

// Beyond 64 MiB they are written past the page cache, where the file system can; /dev/shm often cannot.
TEST_F(Files, ThatAreLargeHaveTheBytesThatWereWritten) {
  std::string bytes(77'777'777, ' ');
  std::minstd_rand random(1);
  for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    const auto word = uint32_t(random());
    std::memcpy(bytes.data() + i, &word, 4);
  }
  std::vector<fs::path> folders = {folder_.path()};
  if (::access("/dev/shm", W_OK) == 0) folders.push_back(fs::path("/dev/shm"));
  for (const fs::path& folder : folders) {
    const fs::path path = folder / str("easydel_large_", ::getpid());
    for (const size_t piece : {size_t(1) << 20, size_t(12'345'678), size_t(777)}) {
      // Pieces of 777 bytes around the place where the way changes, and at the end.
      Writer writer(path);
      const size_t whole = piece == 777 ? (size_t(64) << 20) - 7000 : 0;
      writer.write(bytes.data(), whole);
      for (size_t at = whole; at < bytes.size(); at += piece)
        writer.write(bytes.data() + at, std::min(piece, bytes.size() - at));
      writer.commit();
      EXPECT_TRUE(read(path) == bytes) << folder << " " << piece;
    }
    files::remove_all(path);
  }
  // A full disk in the middle.
  int writes = 0;
  set_fault([&](Operation operation, const fs::path&) {
    return operation == Operation::write && ++writes == 65 ? ENOSPC : 0;
  });
  EXPECT_EQ(refusal([&] {
              Writer writer(folder_ / "full");
              for (size_t at = 0; at < bytes.size(); at += size_t(1) << 20)
                writer.write(bytes.data() + at, std::min(size_t(1) << 20, bytes.size() - at));
              writer.commit();
            }),
            (folder_ / "full").string() +
                ": cannot write: No space left on device\n    free some space, or choose a folder on another disk");
  EXPECT_EQ(entries_in(folder_.path()), 0u);
}

TEST_F(Files, OfAProcessThatIsKilledLeaveNothing) {
  const int unnamed = ::open(folder_.path().c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (unnamed < 0) GTEST_SKIP() << "a file system without files that have no name";
  ::close(unnamed);
  write(folder_ / "a", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    Writer writer(folder_ / "a");
    writer.write(std::string(3 << 20, 'x'));
    ::_exit(7);  // as a signal ends it: nothing is destroyed
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(read(folder_ / "a"), "old");
  EXPECT_EQ(entries_in(folder_.path()), 1u);
}

TEST_F(Files, ReportTheDisksError) {
  set_fault([](Operation operation, const fs::path&) { return operation == Operation::write ? ENOSPC : 0; });
  const std::string path = (folder_ / "a").string();
  EXPECT_EQ(refusal([&] { write(path, "x"); }),
            path + ": cannot write: No space left on device\n    free some space, or choose a folder on another disk");
  set_fault({});
  EXPECT_EQ(refusal([&] { read(path); }), path + ": cannot read: No such file or directory\n    check the path");
  EXPECT_EQ(refusal([&] { read(folder_.path()); }), folder_.path().string() + ": is a folder, not a file");
}

TEST_F(Files, AreRecordedAsTheyWereHandedOver) {
  const std::string large(3 << 20, 'x');
  make_directories(folder_ / "in/below");
  std::map<std::string, Recorder::Entry> written;
  {
    const Recorder recorder(folder_ / "in");
    write(folder_ / "in/a", "");
    Writer writer(folder_ / "in/below/b");
    writer.write("head");
    writer.write(large);
    writer.commit();
    EXPECT_EQ(writer.size(), 4 + large.size());
    write(folder_ / "in_too", "not in the folder");
    Writer(folder_ / "in/c").write("not committed");
    test::write_file(folder_ / "in/below/b", "changed by somebody");
    written = recorder.files();
  }
  write(folder_ / "in/later", "after the recorder");
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written.at("a").sha256, sha256(""));
  EXPECT_EQ(written.at("below/b").bytes, 4 + large.size());
  EXPECT_EQ(written.at("below/b").sha256, sha256("head" + large));
}

TEST_F(Files, AppendWholeLines) {
  { Appender(folder_ / "log").line("one"); }
  { Appender(folder_ / "log").line("two"); }
  EXPECT_EQ(read(folder_ / "log"), "one\ntwo\n");
}

TEST_F(Files, MakeAndRemoveTrees) {
  make_directories(folder_ / "a/b/c");
  write(folder_ / "a/b/c/file", "x");
  files::rename(folder_ / "a/b", folder_ / "moved");
  EXPECT_EQ(read(folder_ / "moved/c/file"), "x");
  files::remove_all(folder_ / "moved");
  files::remove_all(folder_ / "moved");
  EXPECT_FALSE(fs::exists(folder_ / "moved"));
  write(folder_ / "file", "x");
  const std::string below = (folder_ / "file").string();
  EXPECT_EQ(refusal([&] { make_directories(below); }),
            below + ": cannot create this folder: a file with this name exists");
}

TEST_F(Files, MapWhatIsThere) {
  write(folder_ / "a", "mapped");
  write(folder_ / "empty", "");
  const auto mapped = Mapped::open(folder_ / "a");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(mapped->bytes().data()), mapped->bytes().size()), "mapped");
  EXPECT_TRUE(Mapped::open(folder_ / "empty")->bytes().empty());
  EXPECT_EQ(refusal([&] { Mapped::open(folder_.path()); }), folder_.path().string() + ": is not a file");
  const std::string pipe = (folder_ / "pipe").string();  // without a writer
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(refusal([&] { Mapped::open(pipe); }), pipe + ": is not a file");
}

TEST_F(Files, ThatAreMappedAreReadAgainWhenTheirMemoryWasGivenBack) {
  write(folder_ / "a", std::string(20000, 'a'));
  const auto mapped = Mapped::open(folder_ / "a");
  auto* const bytes = const_cast<std::byte*>(mapped->bytes().data());
  bytes[5000] = bytes[19999] = std::byte{'b'};  // in memory alone
  EXPECT_EQ(read(folder_ / "a"), std::string(20000, 'a'));
  Mapped::forget(mapped->bytes().subspan(4096, 8192));
  EXPECT_EQ(bytes[5000], std::byte{'a'});
  EXPECT_EQ(bytes[19999], std::byte{'b'});
  const std::string own(10000, 'c');
  Mapped::forget(std::as_bytes(std::span(own)));
  EXPECT_EQ(own, std::string(10000, 'c'));
}

TEST_F(Files, ResumeWhereTheyStopped) {
  { ResumingWriter(folder_ / "a").write("one "); }
  ResumingWriter writer(folder_ / "a");
  EXPECT_EQ(writer.size(), 4u);
  writer.write("and the rest");
  writer.begin_at(4);
  writer.write("two");
  EXPECT_EQ(writer.size(), 7u);
  set_fault([](Operation operation, const fs::path&) { return operation == Operation::write ? ENOSPC : 0; });
  const std::string refused =
      (folder_ / "a").string() +
      ": cannot write: No space left on device\n    free some space, or choose a folder on another disk";
  EXPECT_EQ(refusal([&] { writer.write("three"); }), refused);
  EXPECT_EQ(refusal([&] { writer.begin_at(0); }), refused);
  set_fault({});
  writer.sync();
  EXPECT_EQ(read(folder_ / "a"), "one two");
}

TEST_F(Files, AreHashedAsSha256Has) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  write(folder_ / "a", std::string(3000000, 'a'));
  EXPECT_EQ(sha256_of_file(folder_ / "a"), sha256(std::string(3000000, 'a')));
}

TEST_F(Files, AreGunzippedMemberByMember) {
  const auto ran = test::run(
      {"sh", "-c", "printf one | gzip > a.gz; printf two | gzip >> a.gz; printf one | gzip | head -c 12 > cut.gz"},
      {.folder = folder_.path()});
  ASSERT_EQ(ran.status, 0);
  EXPECT_EQ(read_compressed(folder_ / "a.gz"), "onetwo");
  const std::string cut = (folder_ / "cut.gz").string(), fake = (folder_ / "fake.gz").string();
  EXPECT_EQ(refusal([&] { read_compressed(cut); }), cut + ": the gzip data is incomplete\n    download the file again");
  write(fake, "plain");
  EXPECT_EQ(refusal([&] { read_compressed(fake); }), fake + ": is not gzip data (incorrect header check)");
}

TEST_F(Files, FailAsTheEnvironmentSays) {
  const auto ran = [&](const char* fault) {
    test::write_file(folder_ / "run.yaml",
                     "model: {name_or_path: " + test::test_data("models/stories260K-hf").string() +
                         "}\nactions: [{to_yaml: out.yaml}]\n");
    return test::run_program({"elarge", "run.yaml"},
                             {.environment = {{"EASYDEL_FAULT", fault}}, .folder = folder_.path()});
  };
  const auto full = ran("fsync:1:ENOSPC");
  EXPECT_EQ(full.status, 2);
  EXPECT_EQ(
      full.err,
      "out.yaml: cannot write: No space left on device\n    free some space, or choose a folder on another disk\n");
  EXPECT_FALSE(fs::exists(folder_ / "out.yaml"));
  EXPECT_EQ(ran("rename:1:kill").status, 128 + 9);
  EXPECT_FALSE(fs::exists(folder_ / "out.yaml"));
  EXPECT_EQ(ran("fsync:x:ENOSPC").err,
            "EASYDEL_FAULT: 'fsync:x:ENOSPC': the count must be 1 or more\n    write it as operation:n:errno, for "
            "example fsync:3:ENOSPC or any:7:kill\n");
}

}  // namespace
}  // namespace easydel::files
