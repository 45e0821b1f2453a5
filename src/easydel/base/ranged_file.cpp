#include "easydel/base/ranged_file.h"

#include <atomic>
#include <map>
#include <mutex>

namespace easydel::files {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<RangedFile>> files;
  std::atomic<bool> has_some = false;  // without the lock: most runs have none
};

Registry& registry() {
  static Registry one;
  return one;
}

}  // namespace

void put_ranged(const std::filesystem::path& path, std::shared_ptr<RangedFile> file) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.files[path.string()] = std::move(file);
  all.has_some = true;
}

std::shared_ptr<RangedFile> ranged(const std::filesystem::path& path) {
  Registry& all = registry();
  if (!all.has_some) return nullptr;
  const std::lock_guard lock(all.mutex);
  const auto found = all.files.find(path.string());
  return found == all.files.end() ? nullptr : found->second;
}

}  // namespace easydel::files
