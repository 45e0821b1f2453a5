#include "easydel/base/free_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>

namespace easydel {
namespace {

namespace fs = std::filesystem;

// The first number of a line that begins with `name`, or of the whole file if that is empty. nullopt: there is none,
// such as "max".
std::optional<int64_t> number_in(const fs::path& path, std::string_view name = "") {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const size_t begin = line.find_first_not_of(" \t:", name.size());
    if (begin == std::string::npos) return std::nullopt;
    int64_t value = 0;
    const auto [end, error] = std::from_chars(line.data() + begin, line.data() + line.size(), value);
    if (error != std::errc()) return std::nullopt;
    return value;
  }
  return std::nullopt;
}

struct GroupFiles {
  const char *limit, *usage, *inactive_files;
};
constexpr GroupFiles version_1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles version_2{"memory.max", "memory.current", "inactive_file"};

// What a group and its parents leave. `mount`: where the hierarchy is mounted. Inside a container the group's own path
// may not be there, but a parent's is.
std::optional<int64_t> left_by_groups(const fs::path& mount, const fs::path& group, const GroupFiles& files) {
  std::optional<int64_t> least;
  for (fs::path path = group.relative_path();; path = path.parent_path()) {
    const fs::path folder = mount / path;
    const std::optional<int64_t> limit = number_in(folder / files.limit), usage = number_in(folder / files.usage);
    if (limit && usage) {
      const int64_t droppable = number_in(folder / "memory.stat", files.inactive_files).value_or(0);
      const int64_t left = std::max<int64_t>(0, *limit - *usage + std::min(droppable, *usage));
      least = least ? std::min(*least, left) : left;
    }
    if (path.empty()) return least;
  }
}

std::optional<int64_t> left_by_groups(const fs::path& root) {
  std::optional<int64_t> least;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    // "0::/path" of version 2, "4:memory:/path" of version 1.
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",memory,") == std::string::npos) continue;
    const fs::path mount = root / "sys/fs/cgroup" / (unified ? "" : "memory");
    const auto left = left_by_groups(mount, line.substr(second + 1), unified ? version_2 : version_1);
    if (left) least = least ? std::min(*least, *left) : *left;
  }
  return least;
}

}  // namespace

std::optional<FreeMemory> free_memory(const fs::path& root, std::optional<int64_t> address_space) {
  std::optional<FreeMemory> least;
  const auto limited = [&](std::optional<int64_t> bytes, const char* limit) {
    if (bytes && (!least || *bytes < least->bytes)) least = FreeMemory{*bytes, limit};
  };
  constexpr int64_t kibibyte = 1024;
  if (const auto available = number_in(root / "proc/meminfo", "MemAvailable"))
    limited(*available * kibibyte, "the machine");
  limited(left_by_groups(root), "the control group");
  if (address_space) {
    const int64_t used = number_in(root / "proc/self/status", "VmSize").value_or(0) * kibibyte;
    limited(std::max<int64_t>(0, *address_space - used), "ulimit -v");
  }
  return least;
}

std::optional<FreeMemory> free_memory() {
  rlimit limit{};
  std::optional<int64_t> address_space;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < rlim_t(INT64_MAX)) address_space = int64_t(limit.rlim_cur);
  return free_memory("/", address_space);
}

}  // namespace easydel
