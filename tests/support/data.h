// Where tests find data, a folder to write in, and the built program; not a place for test logic of one layer.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/base/error.h"

namespace easydel::test {

namespace fs = std::filesystem;

// The root of the source tree, and a file or folder of tests/data. A path that is not there throws Bug: the tests'
// own data are part of the repository.
fs::path source_root();
fs::path test_data(std::string_view path);

// A path in the larger shared data: EASYDEL_SHARED_DATA if set, otherwise ../shared/data next to the repository.
// nullopt if it does not exist; such a test ends with GTEST_SKIP() << "no shared data".
std::optional<fs::path> shared_data(std::string_view path = "");

// A fresh empty folder. The destructor removes it with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }
  fs::path operator/(std::string_view name) const { return path_ / name; }

 private:
  fs::path path_;
};

std::string read_file(const fs::path& path);
// One number of each line of a run's metrics.jsonl that has it.
std::vector<double> metric(const fs::path& run, std::string_view name);
void write_file(const fs::path& path, std::string_view bytes);  // makes the folders that are missing

struct Ran {
  int status = 0;  // exit status; 128 + n where signal n ended it
  std::string out, err;
};
struct RunOptions {
  std::string input = {};                                             // its stdin, then end of file
  std::vector<std::pair<std::string, std::string>> environment = {};  // added to this process's own
  fs::path folder = {};                                               // working folder; empty: the current one
};
// Runs a command to its end. run_program runs build/bin/easydel: run_program({"version"}).
Ran run(const std::vector<std::string>& command, const RunOptions& options = {});
Ran run_program(std::vector<std::string> arguments, const RunOptions& options = {});
fs::path program();

// The whole text of the UserError that `action` throws, to be compared with EXPECT_EQ.
template <class Action>
std::string refusal(Action&& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "(nothing was refused)";
}

// `text` with every `from` replaced: for errors that name a temporary folder.
std::string replaced(std::string text, std::string_view from, std::string_view to);

}  // namespace easydel::test
