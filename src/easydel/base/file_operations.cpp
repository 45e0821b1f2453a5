#include "easydel/base/file_operations.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace easydel::files {
namespace {

// EASYDEL_FAULT="fsync:3:ENOSPC": the third fsync fails, or the process dies there ("kill").
Fault fault_of_environment() {
  const char* text = std::getenv("EASYDEL_FAULT");
  if (!text || !*text) return {};
  const std::string spec = text;
  const size_t first = spec.find(':'), second = spec.find(':', first + 1);
  const auto wrong = [&](const std::string& what) {
    refuse("EASYDEL_FAULT", "'" + spec + "': " + what,
           "write it as operation:n:errno, for example fsync:3:ENOSPC or any:7:kill");
  };
  if (first == std::string::npos || second == std::string::npos) wrong("has not three parts");
  const std::string operation = spec.substr(0, first), action = spec.substr(second + 1);
  bool known = operation == "any";
  for (int i = 0; i <= int(Operation::look); ++i) known |= operation == name_of(static_cast<Operation>(i));
  if (!known) wrong("no operation '" + operation + "'");
  const long nth = std::strtol(spec.c_str() + first + 1, nullptr, 10);
  if (nth < 1) wrong("the count must be 1 or more");
  static constexpr std::pair<std::string_view, int> errors[] = {
      {"ENOSPC", ENOSPC}, {"EIO", EIO},     {"EACCES", EACCES}, {"EROFS", EROFS},
      {"EDQUOT", EDQUOT}, {"EPERM", EPERM}, {"ENOENT", ENOENT}, {"EMFILE", EMFILE},
      {"EXDEV", EXDEV},   {"ELOOP", ELOOP}, {"kill", -1}};
  const auto* found = std::ranges::find(errors, action, &std::pair<std::string_view, int>::first);
  if (found == std::end(errors)) wrong("no errno '" + action + "'");
  const auto seen = std::make_shared<std::atomic<long>>(0);
  return [operation, nth, error = found->second, seen](Operation now, const fs::path&) {
    const bool counts = operation == "any" ? now < Operation::list : operation == name_of(now);
    if (!counts || ++*seen != nth) return 0;
    if (error < 0) ::kill(::getpid(), SIGKILL);
    return error;
  };
}

Fault& fault() {
  static Fault one = fault_of_environment();
  return one;
}

}  // namespace

std::string_view name_of(Operation operation) {
  static constexpr std::string_view names[] = {"open", "write", "fsync", "rename", "remove", "mkdir", "list", "look"};
  return names[size_t(operation)];
}

void set_fault(Fault wanted) { fault() = std::move(wanted); }

namespace detail {

void fail(const fs::path& path, std::string_view verb, int error) {
  const bool reads = verb == "read" || verb == "open" || verb == "list this folder";
  std::string remedy;
  if (error == ENOSPC || error == EDQUOT) remedy = "free some space, or choose a folder on another disk";
  if (error == EACCES || error == EPERM || error == EROFS)
    remedy = reads ? "change its permissions, or those of a folder above it, or choose another path"
                   : "choose a path that you can write to, or change its permissions";
  if (error == ENOENT) remedy = "check the path";
  if (error == ELOOP) remedy = "links on this path lead back to themselves; remove one of them";
  if (error == ENAMETOOLONG) remedy = "give a shorter path";
  if (error == EMFILE || error == ENFILE) remedy = "too many files are open; raise the limit (ulimit -n)";
  refuse(path.string(), str("cannot ", verb, ": ", std::strerror(error)), remedy);
}

int before(Operation operation, const fs::path& path) { return fault() ? fault()(operation, path) : 0; }

}  // namespace detail
}  // namespace easydel::files
