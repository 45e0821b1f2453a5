// Archives and compressed files by libarchive, which is loaded when the first one is opened.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace easydel::data {

// Reads from the front to the end. One thread at a time.
class ArchiveReader {
 public:
  enum class Form : uint8_t {
    single,  // one compressed file
    tar      // members, perhaps compressed as a whole
  };
  struct Member {
    std::string name;
    bool is_file = true;
    int64_t byte = 0;  // of its first header, in what is unpacked
  };

  // UserError: there is no libarchive, or the file cannot be read. With Form::single also, at next(): it is not packed.
  // `from`: the first byte to read, of a file that is not packed.
  ArchiveReader(std::filesystem::path file, Form form, int64_t from = 0);
  ~ArchiveReader();
  ArchiveReader(const ArchiveReader&) = delete;
  ArchiveReader& operator=(const ArchiveReader&) = delete;

  // Goes to the next member; nothing: the end. UserError: the file is broken or incomplete, and nothing more of it is
  // read.
  std::optional<Member> next();
  bool is_packed() const;  // known after the first next()
  // Up to `bytes` bytes of the member; 0: its end. UserError as next().
  size_t read(char* to, size_t bytes);

 private:
  struct Release {
    void operator()(void* archive) const;
  };

  struct Ranged;  // a file that is elsewhere
  static ssize_t read_range(void* archive, void* context, const void** bytes);
  [[noreturn]] void fail() const;

  std::filesystem::path file_;
  Form form_;
  int64_t from_;
  int descriptor_ = -1;
  std::unique_ptr<Ranged> ranged_;  // instead of a descriptor
  std::unique_ptr<void, Release> archive_;
};

}  // namespace easydel::data
