// The only code that writes to disk, and the only code that asks what is on it. Every operation passes one hook that
// tests can make fail at the n-th call, so that a failing save can be tested at every point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace easydel::files {

namespace fs = std::filesystem;

enum class Operation : uint8_t { open, write, fsync, rename, remove, mkdir, list, look };
std::string_view name_of(Operation);

// Called before each operation; returns 0 to let it pass or an errno to make it fail. Null: nothing fails.
// The environment variable EASYDEL_FAULT="fsync:3:ENOSPC" (operation or `any`, n-th from 1, errno or `kill`) sets one
// at start: for tests of the whole program. `any` counts the operations that change the disk, so not list and look.
// Not thread-safe: set before other threads use the disk; the hook itself may be called by several threads.
using Fault = std::function<int(Operation, const fs::path&)>;
void set_fault(Fault fault);

// All functions throw UserError("path: cannot write: No space left on device") and the like. What is not there is an
// answer; every other error (a folder that cannot be entered, links in a circle, a name that is too long, a disk that
// fails) is thrown. Links are followed, except where it is said.
bool exists(const fs::path& path);
bool is_file(const fs::path& path);
bool is_folder(const fs::path& path);
bool is_link(const fs::path& path);                              // the path itself
bool is_same(const fs::path& one, const fs::path& other);        // both exist and are one file or folder
uint64_t size(const fs::path& path);                             // bytes of a file that is there
std::optional<fs::path> link_target(const fs::path& path);       // nothing: it is not a link
std::vector<fs::path> list(const fs::path& folder);              // folder/name of all entries, sorted; no folder: empty
std::vector<fs::path> list_files_below(const fs::path& folder);  // relative paths of files at any depth, sorted; links
                                                                 // to files count, links to folders are not entered
fs::path absolute(const fs::path& path);                         // without "." and ".."; links stay
fs::path canonical(const fs::path& path);                        // without links, as far as the path exists
uint64_t free_bytes(const fs::path& path);                       // of the disk that holds the first folder that exists

std::string read(const fs::path& path);             // the whole file
std::string read_compressed(const fs::path& path);  // the same; gunzips if the name ends in .gz
void make_directories(const fs::path& path);
fs::path make_temporary_folder(const std::string& name);  // $TMPDIR/name-XXXXXX; the caller removes it
void link(const fs::path& target, const fs::path& path);  // a symbolic link, which replaces another one
void remove_all(const fs::path& path);                    // a file or a tree; no error if there is nothing
void rename(const fs::path& from, const fs::path& to);    // and fsync of the folder(s)
void sync_directory(const fs::path& path);
// The whole file or nothing: writes a temporary file in the same folder, fsyncs, renames it, fsyncs the folder.
void write(const fs::path& path, std::string_view bytes);

class Sha256;
namespace detail {
struct Recording;
}

// A temporary file. It appears at `path` only with commit(); without commit() it is removed.
class Writer {
 public:
  explicit Writer(fs::path path);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  void write(const void* data, size_t bytes);
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  uint64_t size() const { return size_; }
  void commit();  // flush, fsync, rename, fsync the folder

 private:
  void flush();
  fs::path path_, aside_;
  int file_ = -1;
  uint64_t size_ = 0;
  std::vector<char> buffer_;
  std::shared_ptr<detail::Recording> recording_;  // null: nobody records
  std::unique_ptr<Sha256> hash_;
};

// While one lives, each Writer that is made below `folder` by any thread notes what it was given to write: the bytes
// are hashed on their way to the disk, not read back. Recorders of nested folders are not supported.
class Recorder {
 public:
  struct Entry {
    uint64_t bytes = 0;
    std::string sha256;
  };
  explicit Recorder(const fs::path& folder);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  std::map<std::string, Entry> files() const;  // that were committed, by their path in the folder

 private:
  std::shared_ptr<detail::Recording> recording_;
};

// An advisory lock: a file that names the holder's process and host; its folder is created. It is released when the
// process ends, however it ends; the destructor also removes the file, and folders that were created for it and are
// empty. UserError "<what>: is in use by process 12 on host" if another process, or another Lock of this one, holds
// it. On a file system without locks it warns and holds nothing.
class Lock {
 public:
  // what: the folder that it protects; user: who has to take another one, "this run".
  Lock(const fs::path& file, const fs::path& what, const std::string& user);
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  fs::path path_;   // absolute
  fs::path above_;  // the first folder that existed before
  int file_ = -1;
};

// A file that is written over several attempts: existing bytes are kept and new ones appended. When it is complete,
// call sync() and rename it.
class ResumingWriter {
 public:
  explicit ResumingWriter(const fs::path& path);
  ~ResumingWriter();
  ResumingWriter(const ResumingWriter&) = delete;
  ResumingWriter& operator=(const ResumingWriter&) = delete;
  uint64_t size() const { return size_; }
  void begin_at(uint64_t offset);  // truncates the file here
  void write(std::string_view bytes);
  void sync();

 private:
  fs::path path_;
  int file_ = -1;
  uint64_t size_ = 0;
};

// Appends whole lines; each append is one write(2), so that a crash leaves whole lines. For logs (metrics.jsonl).
class Appender {
 public:
  explicit Appender(const fs::path& path);
  ~Appender();
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;
  // A line that cannot be written whole is taken back.
  void line(std::string_view text);
  void sync();  // fsync

 private:
  fs::path path_;
  int file_ = -1;
};

// A file mapped for reading; an empty file maps to an empty span. Thread-safe to read. Writes to the mapped memory
// are private (copy on write) and never reach the file.
class Mapped {
 public:
  static std::shared_ptr<const Mapped> open(const fs::path& path);  // UserError if it cannot be read
  // Frees the memory of `bytes` if it is in a mapping: it is read from the file again when it is next used, and
  // private writes are lost. Does nothing for other memory. Thread-safe.
  static void forget(std::span<const std::byte> bytes);
  ~Mapped();
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const fs::path& path() const { return path_; }

 private:
  Mapped() = default;
  fs::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// SHA-256 of bytes or of a file, as 64 lower-case hex digits.
std::string sha256(std::string_view bytes);
std::string sha256_of_file(const fs::path& path);

}  // namespace easydel::files
