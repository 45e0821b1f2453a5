#include "support/data.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "easydel/base/document.h"

namespace easydel::test {

fs::path source_root() { return EASYDEL_SOURCE; }

fs::path test_data(std::string_view path) {
  fs::path found = source_root() / "tests/data" / path;
  check(fs::exists(found), "tests/data/", path, ": no such file in the repository");
  return found;
}

std::optional<fs::path> shared_data(std::string_view path) {
  const char* set = std::getenv("EASYDEL_SHARED_DATA");
  fs::path found = set != nullptr ? fs::path(set) : source_root().parent_path() / "shared/data";
  if (!path.empty()) found /= path;
  if (!fs::exists(found)) return std::nullopt;
  return found;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "easydel_test_XXXXXX").string();
  check(mkdtemp(name.data()) != nullptr, "cannot make a folder in ", fs::temp_directory_path().string());
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  check(file.good(), path.string(), ": cannot read");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<double> metric(const fs::path& run, std::string_view name) {
  std::istringstream lines(read_file(run / "metrics.jsonl"));
  std::vector<double> values;
  for (std::string line; std::getline(lines, line);) {
    const Value record = parse_json(line);
    if (const Value* value = record.find(name)) values.push_back(*value->as_double());
  }
  return values;
}

void write_file(const fs::path& path, std::string_view bytes) {
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.flush();
  check(file.good(), path.string(), ": cannot write");
}

namespace {

// Feeds `input` and reads both outputs at once, so that neither side waits for a full pipe.
void exchange(int to, int out, int err, std::string_view input, Ran& ran) {
  std::signal(SIGPIPE, SIG_IGN);  // a program may end before it has read all
  while (out >= 0 || err >= 0) {
    if (to >= 0 && input.empty()) {
      close(to);
      to = -1;
    }
    pollfd waiting[] = {{to, POLLOUT, 0}, {out, POLLIN, 0}, {err, POLLIN, 0}};
    if (poll(waiting, 3, -1) < 0) continue;
    if (waiting[0].revents != 0) {
      const ssize_t written = write(to, input.data(), std::min<size_t>(input.size(), PIPE_BUF));  // never blocks
      input = written > 0 ? input.substr(static_cast<size_t>(written)) : std::string_view{};
    }
    char buffer[1 << 16];
    const auto drain = [&](int& from, std::string& into) {
      const ssize_t got = read(from, buffer, sizeof buffer);
      if (got > 0) {
        into.append(buffer, static_cast<size_t>(got));
      } else {
        close(from);
        from = -1;
      }
    };
    if (waiting[1].revents != 0) drain(out, ran.out);
    if (waiting[2].revents != 0) drain(err, ran.err);
  }
  if (to >= 0) close(to);
}

}  // namespace

Ran run(const std::vector<std::string>& command, const RunOptions& options) {
  int in[2], out[2], err[2];
  check(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0, "cannot make a pipe");
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  check(child >= 0, "cannot fork");
  if (child == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
    if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(126);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  close(err[1]);
  Ran ran;
  exchange(in[1], out[0], err[0], options.input, ran);
  int status = 0;
  waitpid(child, &status, 0);
  ran.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return ran;
}

fs::path program() { return EASYDEL_PROGRAM; }

Ran run_program(std::vector<std::string> arguments, const RunOptions& options) {
  arguments.insert(arguments.begin(), program().string());
  return run(arguments, options);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  if (from.empty()) return text;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace easydel::test
