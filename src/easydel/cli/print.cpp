// Standard input and output of the commands.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/cli/commands.h"

namespace easydel::cli {

void print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(STDOUT_FILENO, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) refuse("standard output", str("cannot write: ", std::strerror(errno)));
    text.remove_prefix(size_t(wrote));
  }
}

std::string read_input(const std::string& file) { return files::read(file == "-" ? "/dev/stdin" : file); }

}  // namespace easydel::cli
