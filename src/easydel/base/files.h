// The only code that writes to disk. Every operation (open, write, fsync, rename, remove, mkdir) passes one hook that
// tests can make fail at the n-th call, so that a failing save can be tested at every point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace easydel::files {

namespace fs = std::filesystem;

enum class Operation : uint8_t { open, write, fsync, rename, remove, mkdir };
std::string_view name_of(Operation);

// Called before each operation; returns 0 to let it pass or an errno to make it fail. Null: nothing fails.
// The environment variable EASYDEL_FAULT="fsync:3:ENOSPC" (operation or `any`, n-th from 1, errno or `kill`) sets one
// at start: for tests of the whole program. Not thread-safe: set before other threads write.
using Fault = std::function<int(Operation, const fs::path&)>;
void set_fault(Fault fault);

// All functions throw UserError("path: cannot write: No space left on device") and the like.
std::string read(const fs::path& path);             // the whole file
std::string read_compressed(const fs::path& path);  // the same; gunzips if the name ends in .gz
void make_directories(const fs::path& path);
void remove_all(const fs::path& path);                  // a file or a tree; no error if there is nothing
void rename(const fs::path& from, const fs::path& to);  // and fsync of the folder(s)
void sync_directory(const fs::path& path);
// The whole file or nothing: writes a temporary file in the same folder, fsyncs, renames it, fsyncs the folder.
void write(const fs::path& path, std::string_view bytes);

// A temporary file. It appears at `path` only with commit(); without commit() it is removed.
class Writer {
 public:
  explicit Writer(fs::path path);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  void write(const void* data, size_t bytes);
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  void write_at(uint64_t offset, const void* data, size_t bytes);
  uint64_t size() const { return size_; }
  void commit();  // flush, fsync, rename, fsync the folder

 private:
  void flush();
  fs::path path_, aside_;
  int file_ = -1;
  uint64_t size_ = 0;
  std::vector<char> buffer_;
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
  void line(std::string_view text);

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
