#include "easydel/data/archive.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/ranged_file.h"

namespace easydel::data {
namespace {

// The part of libarchive's interface that is used here; its types are opaque, and the interface is stable since
// version 3.0.
struct Functions {
  void* (*read_new)();
  int (*read_free)(void* archive);
  int (*read_support_filter_bzip2)(void* archive);
  int (*read_support_filter_gzip)(void* archive);
  int (*read_support_filter_xz)(void* archive);
  int (*read_support_filter_zstd)(void* archive);
  int (*read_support_format_raw)(void* archive);
  int (*read_support_format_tar)(void* archive);
  int (*read_open_fd)(void* archive, int descriptor, size_t block_bytes);
  int (*read_open)(void* archive, void* context, int (*open)(void*, void*),
                   ssize_t (*read)(void* archive, void* context, const void** bytes), int (*close)(void*, void*));
  int64_t (*read_header_position)(void* archive);
  int (*read_next_header)(void* archive, void** entry);
  ssize_t (*read_data)(void* archive, void* to, size_t bytes);
  const char* (*error_string)(void* archive);
  int (*filter_code)(void* archive, int index);
  const char* (*entry_pathname)(void* entry);
  unsigned (*entry_filetype)(void* entry);
};

constexpr int archive_end = 1, archive_warning = -20, no_filter = 0;
constexpr unsigned regular_file = 0100000;
constexpr size_t block_bytes = size_t{1} << 18;

Functions loaded() {
  void* const library = ::dlopen("libarchive.so.13", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    refuse("libarchive.so.13", "is not there; it unpacks .bz2, .xz, .zst and .tar files",
           "install it: sudo apt-get install libarchive13 (newer systems: libarchive13t64)");
  Functions out = {};
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (!function) refuse("libarchive.so.13", str("has no function ", name), "install a newer one");
  };
  find(out.read_new, "archive_read_new");
  find(out.read_free, "archive_read_free");
  find(out.read_support_filter_bzip2, "archive_read_support_filter_bzip2");
  find(out.read_support_filter_gzip, "archive_read_support_filter_gzip");
  find(out.read_support_filter_xz, "archive_read_support_filter_xz");
  find(out.read_support_filter_zstd, "archive_read_support_filter_zstd");
  find(out.read_support_format_raw, "archive_read_support_format_raw");
  find(out.read_support_format_tar, "archive_read_support_format_tar");
  find(out.read_open_fd, "archive_read_open_fd");
  find(out.read_open, "archive_read_open");
  find(out.read_header_position, "archive_read_header_position");
  find(out.read_next_header, "archive_read_next_header");
  find(out.read_data, "archive_read_data");
  find(out.error_string, "archive_error_string");
  find(out.filter_code, "archive_filter_code");
  find(out.entry_pathname, "archive_entry_pathname");
  find(out.entry_filetype, "archive_entry_filetype");
  return out;
}

const Functions& library() {
  static const Functions one = loaded();
  return one;
}

}  // namespace

struct ArchiveReader::Ranged {
  std::shared_ptr<files::RangedFile> file;
  uint64_t at = 0;
  std::vector<char> bytes = std::vector<char>(block_bytes);
  std::exception_ptr failure = nullptr;  // exceptions must not pass through libarchive
};

ssize_t ArchiveReader::read_range(void* /*archive*/, void* context, const void** bytes) {
  Ranged& ranged = *static_cast<Ranged*>(context);
  *bytes = ranged.bytes.data();
  try {
    const size_t got = ranged.file->read(ranged.at, ranged.bytes.data(), ranged.bytes.size());
    ranged.at += got;
    return ssize_t(got);
  } catch (...) {
    ranged.failure = std::current_exception();
    return -1;
  }
}

void ArchiveReader::Release::operator()(void* archive) const { library().read_free(archive); }

ArchiveReader::ArchiveReader(std::filesystem::path file, Form form, int64_t from)
    : file_(std::move(file)), form_(form), from_(from) {
  const Functions& archive = library();
  archive_.reset(archive.read_new());
  check(archive_ != nullptr, "libarchive: no memory");
  // Not all filters of the library: for some it starts other programs.
  archive.read_support_filter_bzip2(archive_.get());
  archive.read_support_filter_gzip(archive_.get());
  archive.read_support_filter_xz(archive_.get());
  archive.read_support_filter_zstd(archive_.get());
  if (form == Form::single)
    archive.read_support_format_raw(archive_.get());
  else
    archive.read_support_format_tar(archive_.get());
  if (auto elsewhere = files::ranged(file_)) {
    ranged_ = std::make_unique<Ranged>();
    ranged_->file = std::move(elsewhere);
    ranged_->at = uint64_t(from);
    if (archive.read_open(archive_.get(), ranged_.get(), nullptr, read_range, nullptr) < archive_warning) fail();
    return;
  }
  descriptor_ = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0 || ::lseek(descriptor_, from, SEEK_SET) != from)
    refuse(file_.string(), str("cannot be unpacked: ", std::strerror(errno)));
  if (archive.read_open_fd(archive_.get(), descriptor_, block_bytes) < archive_warning) fail();
}

ArchiveReader::~ArchiveReader() {
  archive_.reset();
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool ArchiveReader::is_packed() const { return library().filter_code(archive_.get(), 0) != no_filter; }

void ArchiveReader::fail() const {
  if (ranged_ && ranged_->failure) std::rethrow_exception(ranged_->failure);
  const char* const why = library().error_string(archive_.get());
  refuse(file_.string(), str("cannot be unpacked: ", why ? why : "unknown reason"),
         "the file is broken, incomplete or of another kind; download it again");
}

std::optional<ArchiveReader::Member> ArchiveReader::next() {
  void* entry = nullptr;
  const int state = library().read_next_header(archive_.get(), &entry);
  if (state == archive_end) return std::nullopt;
  if (state < archive_warning) fail();
  if (form_ == Form::single && !is_packed())
    refuse(file_.string(), "is not packed as its name says", "name it by what it is, or download it again");
  const char* const name = library().entry_pathname(entry);
  return Member{name ? name : "", library().entry_filetype(entry) == regular_file,
                from_ + library().read_header_position(archive_.get())};
}

size_t ArchiveReader::read(char* to, size_t bytes) {
  const ssize_t got = library().read_data(archive_.get(), to, bytes);
  if (got < 0) fail();
  return size_t(got);
}

}  // namespace easydel::data
