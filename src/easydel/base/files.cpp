#include "easydel/base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "easydel/base/file_operations.h"
#include "easydel/base/log.h"
#include "easydel/base/sha256.h"
#include "easydel/base/wait_notice.h"

namespace easydel::files {

using detail::before;
using detail::Descriptor;
using detail::fail;
using detail::folder_of;
using detail::step;

namespace {

constexpr size_t buffer_bytes = size_t{1} << 20;

// What a large file has beyond direct_from is written past the page cache, because copying it there and writing it out
// at the end takes several times as long as the disk: in whole pages, from a buffer of aligned memory.
constexpr uint64_t direct_from = uint64_t{64} << 20;
constexpr size_t direct_bytes = size_t{8} << 20, page_bytes = 4096;

bool set_direct(int file, bool direct) {  // whether that is a change, and possible
  const int flags = ::fcntl(file, F_GETFL);
  return flags >= 0 && ((flags & O_DIRECT) != 0) != direct && ::fcntl(file, F_SETFL, flags ^ O_DIRECT) == 0;
}

void write_all(int file, const fs::path& shown, const char* data, size_t bytes) {
  while (bytes > 0) {
    const auto wrote = size_t(step(Operation::write, shown, "write", [&] {
      const auto once = [&] { return ::write(file, data, std::min(bytes, size_t{1} << 30)); };
      const ssize_t count = once();
      // A file system, or the rest of a page, that can be written through the cache alone.
      return count < 0 && errno == EINVAL && set_direct(file, false) ? once() : count;
    }));
    data += wrote, bytes -= wrote;
  }
}

// The first page of a buffer's memory.
size_t first_page(const std::vector<char>& buffer) {
  return (page_bytes - reinterpret_cast<uintptr_t>(buffer.data()) % page_bytes) % page_bytes;
}
bool has_pages(const std::vector<char>& buffer) { return buffer.capacity() >= direct_bytes + page_bytes; }
void clear_pages(std::vector<char>& buffer) {
  buffer.reserve(direct_bytes + page_bytes);
  buffer.resize(first_page(buffer));
}

}  // namespace

std::string read(const fs::path& path) {
  struct stat before_open = {};
  std::optional<WaitNotice> notice;  // a pipe is opened, and can be read, only when another process writes to it
  if (::stat(path.c_str(), &before_open) == 0 && S_ISFIFO(before_open.st_mode))
    notice.emplace("waiting for another process to write to the pipe " + path.string());
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file < 0) fail(path, "read", errno);
  struct stat status = {};
  if (::fstat(file, &status) != 0) fail(path, "read", errno);
  if (S_ISDIR(status.st_mode)) refuse(path.string(), "is a folder, not a file");
  std::string out;
  out.resize(size_t(std::max<off_t>(status.st_size, 0)));
  size_t filled = 0;
  for (;;) {
    if (filled == out.size()) out.resize(out.size() + 4096);  // for pipes and /proc, and to detect the end
    const ssize_t got = ::read(file, out.data() + filled, out.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, "read", errno);
    notice.reset();
    if (got == 0) break;
    filled += size_t(got);
  }
  out.resize(filled);
  return out;
}

std::string read_compressed(const fs::path& path) {
  std::string packed = read(path);
  if (path.extension() != ".gz") return packed;
  z_stream stream = {};
  check(::inflateInit2(&stream, 15 + 16) == Z_OK, "zlib: inflateInit2 failed");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&stream, ::inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string out;
  std::vector<char> piece(buffer_bytes);
  bool ended = false;  // one gzip member: a file may contain several
  while (!ended || stream.avail_in > 0) {
    if (ended) check(::inflateReset(&stream) == Z_OK, "zlib: inflateReset failed");
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    const int state = ::inflate(&stream, Z_NO_FLUSH);
    out.append(piece.data(), piece.size() - stream.avail_out);
    ended = state == Z_STREAM_END;
    const bool stuck = state == Z_BUF_ERROR || (state == Z_OK && stream.avail_in == 0 && stream.avail_out > 0);
    if (stuck) refuse(path.string(), "the gzip data is incomplete", "download the file again");
    if (state != Z_OK && !ended)
      refuse(path.string(), str("is not gzip data (", stream.msg ? stream.msg : "damaged", ")"));
  }
  return out;
}

void make_directories(const fs::path& path) {
  if (path.empty() || is_folder(path)) return;
  if (files::exists(path)) refuse(path.string(), "cannot create this folder: a file with this name exists");
  make_directories(path.parent_path());
  if (const int error = before(Operation::mkdir, path)) fail(path, "make this folder", error);
  if (::mkdir(path.c_str(), 0777) != 0) {
    if (errno == EEXIST && is_folder(path)) return;  // another process created it first
    fail(path, "make this folder", errno);
  }
  sync_directory(folder_of(path));
}

void remove_all(const fs::path& path) {
  const bool link = is_link(path);
  if (!link && !files::exists(path)) return;
  if (!link && is_folder(path))
    for (const fs::path& entry : list(path)) files::remove_all(entry);
  step(Operation::remove, path, "remove", [&] { return ::remove(path.c_str()); });
}

void rename(const fs::path& from, const fs::path& to) {
  step(Operation::rename, to, "rename to this name", [&] { return ::rename(from.c_str(), to.c_str()); });
  sync_directory(folder_of(to));
  if (folder_of(from) != folder_of(to)) sync_directory(folder_of(from));
}

void link(const fs::path& target, const fs::path& path) {
  const fs::path aside = path.string() + ".new";
  files::remove_all(aside);
  step(Operation::open, aside, "make this link", [&] { return ::symlink(target.c_str(), aside.c_str()); });
  files::rename(aside, path);
}

void sync_directory(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file < 0) fail(path, "open", errno);
  step(Operation::fsync, path, "write", [&] {
    const int result = ::fsync(file);
    return result != 0 && (errno == EINVAL || errno == EROFS) ? 0 : result;  // the file system does not support it
  });
}

void write(const fs::path& path, std::string_view bytes) {
  Writer writer(path);
  writer.write(bytes);
  writer.commit();
}

namespace {

// /proc's name of an open file, by which a file without a name can be given one.
std::string name_of_open(int file) { return str("/proc/self/fd/", file); }

fs::path aside_of(const fs::path& path) {
  return folder_of(path) / str(".", path.filename().string(), ".", ::getpid(), ".partial");
}

}  // namespace

// If the file system supports files without names, the file has none until commit() (aside_ is empty), so that a killed
// process leaves nothing behind.
Writer::Writer(fs::path path) : path_(std::move(path)) {
  recording_ = detail::recording_of(path_);
  if (recording_) hash_ = std::make_unique<Sha256>();
  file_ = step(Operation::open, path_, "write", [&] {
    const int unnamed = ::open(folder_of(path_).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    if (unnamed >= 0 && ::access(name_of_open(unnamed).c_str(), F_OK) == 0) return unnamed;
    if (unnamed >= 0) ::close(unnamed);
    aside_ = aside_of(path_);
    return ::open(aside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  });
}

Writer::~Writer() {
  if (file_ < 0) return;
  ::close(file_);
  if (!aside_.empty()) ::unlink(aside_.c_str());
}

void Writer::write(const void* data, size_t bytes) {
  size_ += bytes;
  if (hash_) hash_->add(data, bytes);
  const auto* from = static_cast<const char*>(data);
  if (!has_pages(buffer_)) {
    const uint64_t before = size_ - bytes;
    if (before < direct_from) {
      if (buffer_.size() + bytes > buffer_bytes) flush();
      if (bytes >= buffer_bytes) return write_all(file_, path_, from, bytes);
      buffer_.insert(buffer_.end(), from, from + bytes);
      return;
    }
    flush();
    const size_t rest = std::min<size_t>(bytes, (page_bytes - before % page_bytes) % page_bytes);
    write_all(file_, path_, from, rest);
    from += rest, bytes -= rest;
    if ((before + rest) % page_bytes != 0) return;
    clear_pages(buffer_);
    set_direct(file_, true);
  }
  while (bytes > 0) {
    const size_t begin = first_page(buffer_), count = std::min(bytes, begin + direct_bytes - buffer_.size());
    buffer_.insert(buffer_.end(), from, from + count);
    from += count, bytes -= count;
    if (buffer_.size() < begin + direct_bytes) return;
    write_all(file_, path_, buffer_.data() + begin, direct_bytes);
    buffer_.resize(begin);
  }
}

void Writer::flush() {
  if (has_pages(buffer_)) {
    const size_t begin = first_page(buffer_), pages = (buffer_.size() - begin) / page_bytes * page_bytes;
    write_all(file_, path_, buffer_.data() + begin, pages);
    set_direct(file_, false);
    write_all(file_, path_, buffer_.data() + begin + pages, buffer_.size() - begin - pages);
    buffer_.clear();
  } else if (!buffer_.empty()) {
    write_all(file_, path_, buffer_.data(), buffer_.size());
    buffer_.clear();
  }
}

void Writer::commit() {
  check(file_ >= 0, path_.string(), ": commit() after commit()");
  flush();
  step(Operation::fsync, path_, "write", [&] { return ::fsync(file_); });
  step(Operation::rename, path_, "write", [&] {
    if (aside_.empty()) {
      const fs::path aside = aside_of(path_);
      ::unlink(aside.c_str());  // left by a process that had the same id
      if (::linkat(AT_FDCWD, name_of_open(file_).c_str(), AT_FDCWD, aside.c_str(), AT_SYMLINK_FOLLOW) != 0) return -1;
      aside_ = aside;
    }
    return ::rename(aside_.c_str(), path_.c_str());
  });
  ::close(std::exchange(file_, -1));
  sync_directory(folder_of(path_));
  if (recording_) detail::record(*recording_, path_, {size_, hash_->hex()});
}

ResumingWriter::ResumingWriter(const fs::path& path) : path_(path) {
  file_ = step(Operation::open, path_, "write",
               [&] { return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666); });
  const off_t end = ::lseek(file_, 0, SEEK_END);
  size_ = end < 0 ? 0 : uint64_t(end);
}

ResumingWriter::~ResumingWriter() { ::close(file_); }

void ResumingWriter::begin_at(uint64_t offset) {
  step(Operation::write, path_, "write", [&] { return ::ftruncate(file_, static_cast<off_t>(offset)); });
  if (::lseek(file_, static_cast<off_t>(offset), SEEK_SET) < 0) fail(path_, "write", errno);
  size_ = offset;
}

void ResumingWriter::write(std::string_view bytes) {
  write_all(file_, path_, bytes.data(), bytes.size());
  size_ += bytes.size();
}

void ResumingWriter::sync() {
  step(Operation::fsync, path_, "write", [&] { return ::fsync(file_); });
}

Appender::Appender(const fs::path& path) : path_(path) {
  file_ = step(Operation::open, path_, "write",
               [&] { return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666); });
}

Appender::~Appender() {
  if (file_ >= 0) ::close(file_);
}

void Appender::line(std::string_view text) {
  std::string whole(text);
  whole += '\n';
  const off_t end = ::lseek(file_, 0, SEEK_END);
  try {
    write_all(file_, path_, whole.data(), whole.size());
  } catch (const UserError&) {
    if (end >= 0 && ::ftruncate(file_, end) != 0) log::debug(path_.string(), ": the end of a line is missing");
    throw;
  }
}

void Appender::sync() {
  step(Operation::fsync, path_, "write", [&] { return ::fsync(file_); });
}

namespace {

// All current mappings.
struct Mappings {
  std::mutex mutex;
  std::map<const std::byte*, const std::byte*> end_of;
};
Mappings& mappings() {
  static Mappings* const all = new Mappings;  // mappings may outlive static objects
  return *all;
}

}  // namespace

std::shared_ptr<const Mapped> Mapped::open(const fs::path& path) {
  // O_NONBLOCK: opening a pipe would wait
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file < 0) fail(path, "read", errno);
  struct stat status = {};
  if (::fstat(file, &status) != 0) fail(path, "read", errno);
  if (!S_ISREG(status.st_mode)) refuse(path.string(), "is not a file");
  const std::shared_ptr<Mapped> mapped(new Mapped);
  mapped->path_ = path;
  if (status.st_size == 0) return mapped;
  void* data = ::mmap(nullptr, size_t(status.st_size), PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  if (data == MAP_FAILED) fail(path, "read", errno);
  mapped->data_ = static_cast<const std::byte*>(data);
  mapped->size_ = size_t(status.st_size);
  const std::lock_guard lock(mappings().mutex);
  mappings().end_of[mapped->data_] = mapped->data_ + mapped->size_;
  return mapped;
}

Mapped::~Mapped() {
  if (!data_) return;
  const std::lock_guard lock(mappings().mutex);
  mappings().end_of.erase(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

void Mapped::forget(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mappings().mutex);
  auto mapping = mappings().end_of.upper_bound(bytes.data());
  if (mapping == mappings().end_of.begin() || (--mapping)->second < bytes.data() + bytes.size()) return;
  // Only whole pages: the first and the last may be shared with neighbours.
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace easydel::files
