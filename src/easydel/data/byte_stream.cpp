#include "easydel/data/byte_stream.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/ranged_file.h"
#include "easydel/data/archive.h"

namespace easydel::data {
namespace {

constexpr size_t piece_bytes = size_t{1} << 18;

class PlainBytes final : public ByteStream {
 public:
  explicit PlainBytes(const std::filesystem::path& file, int64_t from = 0)
      : name_(file.string()), file_(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file_ >= 0 && (from == 0 || ::lseek(file_, from, SEEK_SET) == from)) return;
    const int why = errno;
    if (file_ >= 0) ::close(file_);
    refuse(name_, str("cannot read: ", std::strerror(why)));
  }
  ~PlainBytes() override { ::close(file_); }
  PlainBytes(const PlainBytes&) = delete;
  PlainBytes& operator=(const PlainBytes&) = delete;

  size_t read(char* to, size_t bytes) override {
    for (;;) {
      const ssize_t got = ::read(file_, to, bytes);
      if (got >= 0) return size_t(got);
      if (errno != EINTR) refuse(name_, str("cannot read: ", std::strerror(errno)));
    }
  }

 private:
  std::string name_;
  int file_;
};

class RangedBytes final : public ByteStream {
 public:
  RangedBytes(std::shared_ptr<files::RangedFile> file, int64_t from) : file_(std::move(file)), at_(uint64_t(from)) {}
  size_t read(char* to, size_t bytes) override {
    const size_t got = file_->read(at_, to, bytes);
    at_ += got;
    return got;
  }

 private:
  std::shared_ptr<files::RangedFile> file_;
  uint64_t at_;
};

std::unique_ptr<ByteStream> unpacked_bytes(const std::filesystem::path& file, int64_t from = 0) {
  if (auto elsewhere = files::ranged(file)) return std::make_unique<RangedBytes>(std::move(elsewhere), from);
  return std::make_unique<PlainBytes>(file, from);
}

class GzipBytes final : public ByteStream {
 public:
  explicit GzipBytes(const std::filesystem::path& file)
      : name_(file.string()), packed_(unpacked_bytes(file)), buffer_(piece_bytes) {
    check(::inflateInit2(&stream_, 15 + 16) == Z_OK, "zlib: inflateInit2 failed");
  }
  ~GzipBytes() override { ::inflateEnd(&stream_); }
  GzipBytes(const GzipBytes&) = delete;
  GzipBytes& operator=(const GzipBytes&) = delete;

  size_t read(char* to, size_t bytes) override {
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = uInt(std::min<size_t>(bytes, UINT32_MAX));
    const uInt wanted = stream_.avail_out;
    while (stream_.avail_out == wanted) {
      if (stream_.avail_in == 0) {
        const size_t got = packed_->read(buffer_.data(), buffer_.size());
        if (got == 0 && (member_ended_ || is_empty_)) return 0;
        if (got == 0) refuse(name_, "the gzip data is incomplete", "download the file again");
        is_empty_ = false;
        stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
        stream_.avail_in = uInt(got);
      }
      if (member_ended_) check(::inflateReset(&stream_) == Z_OK, "zlib: inflateReset failed");
      member_ended_ = false;
      const int state = ::inflate(&stream_, Z_NO_FLUSH);
      member_ended_ = state == Z_STREAM_END;
      if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
        refuse(name_, str("is not gzip data (", stream_.msg ? stream_.msg : "damaged", ")"));
    }
    return wanted - stream_.avail_out;
  }

 private:
  std::string name_;
  std::unique_ptr<ByteStream> packed_;
  std::vector<char> buffer_;
  z_stream stream_ = {};
  bool member_ended_ = false;  // a file may contain several members
  bool is_empty_ = true;
};

class ArchivedBytes final : public ByteStream {
 public:
  explicit ArchivedBytes(const std::filesystem::path& file) : archive_(file, ArchiveReader::Form::single) {
    is_empty_ = !archive_.next();
  }
  size_t read(char* to, size_t bytes) override { return is_empty_ ? 0 : archive_.read(to, bytes); }

 private:
  ArchiveReader archive_;
  bool is_empty_ = false;
};

constexpr std::array<std::string_view, 4> endings{".bz2", ".gz", ".xz", ".zst"};

std::string_view without_return(std::string_view text) {
  return text.ends_with('\r') ? text.substr(0, text.size() - 1) : text;
}

}  // namespace

bool is_packed(const std::filesystem::path& file) {
  return std::ranges::find(endings, file.extension().string()) != endings.end();
}

std::unique_ptr<ByteStream> open_bytes(const std::filesystem::path& file, int64_t from) {
  if (!is_packed(file)) return unpacked_bytes(file, from);
  check(from == 0, "a packed file is read from byte ", from, " on");
  if (file.extension() == ".gz") return std::make_unique<GzipBytes>(file);
  return std::make_unique<ArchivedBytes>(file);
}

std::filesystem::path without_compression(const std::filesystem::path& file) {
  return is_packed(file) ? std::filesystem::path(file).replace_extension() : file;
}

std::string read_all(ByteStream& stream) {
  std::string out;
  for (size_t got = 1; got > 0;) {
    const size_t before = out.size();
    out.resize(before + piece_bytes);
    got = stream.read(out.data() + before, piece_bytes);
    out.resize(before + got);
  }
  return out;
}

bool for_each_line_from(const std::filesystem::path& file, int64_t byte, int64_t number,
                        const std::function<bool(const Line&)>& take) {
  const std::unique_ptr<ByteStream> stream = open_bytes(file, byte);
  std::vector<char> piece(piece_bytes);
  std::string begun;  // the beginning of a line whose end is not read yet
  const auto give = [&](std::string_view text, size_t bytes) {
    const Line line{without_return(text), number++, byte};
    byte += int64_t(bytes);
    return take(line);
  };
  for (;;) {
    const size_t got = stream->read(piece.data(), piece.size());
    if (got == 0) break;
    const char *at = piece.data(), *const end = piece.data() + got;
    while (at < end) {
      const auto* const stop = static_cast<const char*>(std::memchr(at, '\n', size_t(end - at)));
      const std::string_view rest(at, size_t((stop ? stop : end) - at));
      if (begun.size() + rest.size() > max_row_bytes)
        refuse(str(file.string(), ":", number), str("the line is longer than ", max_row_bytes >> 20, " MiB"),
               "a row is a line: the file has no line ends, or is of another type");
      if (!stop) {
        begun += rest;
        break;
      }
      if (begun.empty()) {
        if (!give(rest, rest.size() + 1)) return false;
      } else {
        begun += rest;
        if (!give(begun, begun.size() + 1)) return false;
        begun.clear();
      }
      at = stop + 1;
    }
  }
  return begun.empty() || give(begun, begun.size());
}

bool for_each_line(const std::filesystem::path& file, const std::function<bool(std::string_view, int64_t)>& line) {
  return for_each_line_from(file, 0, 1, [&](const Line& one) { return line(one.text, one.number); });
}

}  // namespace easydel::data
