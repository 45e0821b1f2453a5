// The key-value section of a GGUF file, which precedes the tensors. Nothing is copied; the file stays mapped.
// Format: ggml's docs/gguf.md, versions 2 and 3, little-endian.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/base/files.h"

namespace easydel::weights {

class GgufMetadata {
 public:
  enum class Type : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

  // UserError "path: ...": not a GGUF file, or truncated.
  static GgufMetadata open(const std::filesystem::path& path);
  GgufMetadata(std::span<const std::byte> bytes, std::string name);  // `bytes` must outlive it

  bool has(std::string_view key) const { return find(key) != nullptr; }
  // nullopt: no such key, or a value of another type.
  std::optional<std::string_view> text(std::string_view key) const;
  std::optional<int64_t> integer(std::string_view key) const;
  // Also for integers. An fp32 value becomes the shortest decimal that rounds to it (1e-5, as configurations write it).
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::vector<std::string_view> texts(std::string_view key) const;  // empty: no such list of strings
  std::vector<int64_t> integers(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;  // also for integers
  std::string_view bytes(std::string_view key) const;       // a list of bytes

  // The encoded type and value of a key, to be copied to another file; empty: no such key.
  std::string_view raw(std::string_view key) const;

  const std::string& name() const { return name_; }
  uint64_t tensors() const { return tensors_; }
  size_t end() const { return end_; }  // offset of the list of tensors
  const std::vector<std::string_view>& keys() const { return keys_; }

 private:
  struct Entry {
    Type type = Type::u8;
    Type element = Type::u8;  // of an array
    uint64_t count = 0;
    std::string_view value;  // its bytes
    std::string_view raw;    // the same with the preceding type
  };
  const Entry* find(std::string_view key) const;
  static double number_at(const Entry& entry, uint64_t index);

  std::shared_ptr<const files::Mapped> mapped_;
  std::string name_;
  std::vector<std::string_view> keys_;
  std::vector<Entry> entries_;
  uint64_t tensors_ = 0;
  size_t end_ = 0;
};

}  // namespace easydel::weights
