#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "easydel/base/file_operations.h"
#include "easydel/base/log.h"

namespace easydel::files {
namespace {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && *name ? name : "this host";
}

// Whether `path` still names the open file: the one who held it may have removed it before it was locked here.
bool is_named(int file, const fs::path& path) {
  struct stat open = {}, named = {};
  return ::fstat(file, &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev &&
         open.st_ino == named.st_ino;
}

std::string text_of(int file) {
  char text[512];
  const ssize_t got = ::pread(file, text, sizeof text, 0);
  std::string out(text, got > 0 ? size_t(got) : 0);
  return out.substr(0, out.find('\n'));
}

}  // namespace

Lock::Lock(const fs::path& path, const fs::path& what, const std::string& user) : path_(files::absolute(path)) {
  for (above_ = path_.parent_path(); !files::exists(above_) && above_.has_relative_path();)
    above_ = above_.parent_path();
  make_directories(path_.parent_path());
  for (;;) {
    const int file = detail::step(Operation::open, path_, "lock",
                                  [&] { return ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666); });
    int result = 0;
    do result = ::flock(file, LOCK_EX | LOCK_NB);
    while (result != 0 && errno == EINTR);
    const int error = result == 0 ? 0 : errno;
    if (error == EWOULDBLOCK) {
      std::string holder = text_of(file);
      // It writes its name right after it has locked.
      for (int tries = 0; holder.empty() && tries < 50; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        holder = text_of(file);
      }
      ::close(file);
      refuse(what.string(), str("is in use by ", holder.empty() ? "another process" : holder),
             str("wait until it has ended, or give ", user, " another folder"));
    }
    if (error != 0) {  // a file system without locks
      ::close(file);
      log::warning(path_.string(), ": cannot lock: ", std::generic_category().message(error),
                   "; make sure that no other process uses this folder");
      return;
    }
    if (!is_named(file, path_)) {
      ::close(file);
      continue;
    }
    file_ = file;
    break;
  }
  // For the message above only: the lock holds whether or not this can be written.
  const std::string text = str("process ", ::getpid(), " on ", host_name(), "\n");
  if (::ftruncate(file_, 0) != 0 || ::pwrite(file_, text.data(), text.size(), 0) < 0)
    log::debug(path_.string(), ": cannot be written");
}

Lock::~Lock() {
  if (file_ < 0) return;
  ::unlink(path_.c_str());
  ::close(file_);
  // Folders that were made for the lock and hold nothing.
  for (fs::path made = path_.parent_path(); made != above_ && ::rmdir(made.c_str()) == 0;) made = made.parent_path();
}

}  // namespace easydel::files
