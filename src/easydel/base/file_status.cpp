// What is on the disk: nothing there is an answer, everything else that goes wrong is an error.
#include <dirent.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <climits>
#include <cstdlib>
#include <system_error>

#include "easydel/base/file_operations.h"
#include "easydel/base/ranged_file.h"

namespace easydel::files {
namespace {

// False: there is nothing.
bool look(const fs::path& path, struct stat& status, bool follow = true) {
  int error = detail::before(Operation::look, path);
  if (error == 0 && (follow ? ::stat(path.c_str(), &status) : ::lstat(path.c_str(), &status)) != 0) error = errno;
  if (error == ENOENT || error == ENOTDIR) return false;
  if (error != 0) detail::fail(path, "open", error);
  return true;
}

void add_files_below(const fs::path& root, const fs::path& below, std::vector<fs::path>& out) {
  for (const fs::path& path : list(root / below)) {
    const fs::path name = below / path.filename();
    if (is_file(path))
      out.push_back(name);
    else if (is_folder(path) && !is_link(path))
      add_files_below(root, name, out);
  }
}

}  // namespace

bool exists(const fs::path& path) {
  struct stat status = {};
  return look(path, status);
}

bool is_file(const fs::path& path) {
  struct stat status = {};
  return look(path, status) && S_ISREG(status.st_mode);
}

bool is_folder(const fs::path& path) {
  struct stat status = {};
  return look(path, status) && S_ISDIR(status.st_mode);
}

bool is_link(const fs::path& path) {
  struct stat status = {};
  return look(path, status, false) && S_ISLNK(status.st_mode);
}

bool is_same(const fs::path& one, const fs::path& other) {
  struct stat a = {}, b = {};
  return look(one, a) && look(other, b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

uint64_t size(const fs::path& path) {
  if (const auto elsewhere = ranged(path)) return elsewhere->size();
  struct stat status = {};
  if (!look(path, status)) detail::fail(path, "open", ENOENT);
  return uint64_t(status.st_size);
}

std::optional<fs::path> link_target(const fs::path& path) {
  if (!is_link(path)) return std::nullopt;
  std::error_code error;
  fs::path target = fs::read_symlink(path, error);
  if (error) detail::fail(path, "read", error.value());
  return target;
}

std::vector<fs::path> list(const fs::path& folder) {
  std::vector<fs::path> out;
  int error = detail::before(Operation::list, folder);
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(error == 0 ? ::opendir(folder.c_str()) : nullptr, ::closedir);
  if (error == 0 && !opened) error = errno;
  if (error == ENOENT) return out;
  if (error != 0) detail::fail(folder, "list this folder", error);
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(opened.get());
    if (!entry && errno != 0) detail::fail(folder, "list this folder", errno);
    if (!entry) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") out.push_back(folder / name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<fs::path> list_files_below(const fs::path& folder) {
  std::vector<fs::path> out;
  add_files_below(folder, {}, out);
  std::sort(out.begin(), out.end());
  return out;
}

fs::path absolute(const fs::path& path) {
  std::error_code error;
  fs::path out = fs::absolute(path, error);
  if (error) detail::fail(path, "open", error.value());
  out = out.lexically_normal();
  return out.has_filename() || out == out.root_path() ? out : out.parent_path();
}

fs::path canonical(const fs::path& path) {
  std::error_code error;
  fs::path out = fs::weakly_canonical(path, error);
  if (error) detail::fail(path, "open", error.value());
  return out;
}

uint64_t free_bytes(const fs::path& path) {
  fs::path above = files::absolute(path);
  while (!files::exists(above) && above.has_relative_path()) above = above.parent_path();
  struct statvfs disk = {};
  if (::statvfs(above.c_str(), &disk) != 0) detail::fail(above, "open", errno);
  return uint64_t(disk.f_bavail) * disk.f_frsize;
}

fs::path make_temporary_folder(const std::string& name) {
  const char* const word = std::getenv("TMPDIR");
  std::string pattern = (fs::path(word && *word ? word : "/tmp") / (name + "-XXXXXX")).string();
  if (const int error = detail::before(Operation::mkdir, pattern)) detail::fail(pattern, "make this folder", error);
  if (!::mkdtemp(pattern.data())) detail::fail(pattern, "make this folder", errno);
  return pattern;
}

}  // namespace easydel::files
