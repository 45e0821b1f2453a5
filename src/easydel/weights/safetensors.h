// The safetensors format: reading mapped and zero-copy, writing aside and renamed. Knows bytes, shapes and names only.
// Format: https://github.com/huggingface/safetensors; every rule of it is checked before a byte is handed out.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/files.h"
#include "easydel/weights/dtype.h"

namespace easydel::weights {

struct TensorView {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;         // row major; {} is a scalar
  std::span<const std::byte> bytes;   // into the mapping, 1-byte aligned as far as the format promises
  std::shared_ptr<const void> owner;  // keeps the mapping alive
  int64_t elements() const;
};

// Checks the whole header of `bytes` (length, JSON, dtypes, shapes, offsets without holes or overlap); UserError
// "name: what" otherwise. The torch-free core that is fuzzed.
struct Header {
  struct Entry {
    DType dtype;
    std::vector<int64_t> shape;
    uint64_t begin, end;  // in the data part
  };
  std::map<std::string, Entry> tensors;
  std::map<std::string, std::string> metadata;
  uint64_t data_begin = 0;  // in the file
};
Header parse_header(std::span<const std::byte> bytes, std::string_view name);

class SafetensorsFile {
 public:
  static std::shared_ptr<const SafetensorsFile> open(const std::filesystem::path& path);
  const Header& header() const { return header_; }
  bool has(std::string_view name) const;
  TensorView at(std::string_view name) const;  // UserError where there is no such tensor
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::shared_ptr<const files::Mapped> mapped_;
  Header header_;
};

// The weights of a model folder: model.safetensors, or model.safetensors.index.json and its shards (each checked
// against the index), or any single *.safetensors. Thread-safe to read.
class Folder {
 public:
  static Folder open(const std::filesystem::path& folder);  // UserError where there are none
  static bool has_weights(const std::filesystem::path& folder);  // in any format, also one that open() refuses
  std::vector<std::string> names() const;  // sorted
  bool has(std::string_view name) const;
  TensorView at(std::string_view name) const;
  std::string where(std::string_view name) const;  // "shard-file: name", for errors

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::shared_ptr<const SafetensorsFile>, std::less<>> of_;
};

// One tensor to be written. `write` is called once, in file order, and must give exactly `bytes` bytes to the sink;
// so that a save needs no second copy of the model.
struct OutTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::function<void(const std::function<void(const void*, size_t)>& sink)> write;
};
// One file, tensors sorted by descending alignment then name as upstream does; header padded to 8 bytes.
void write_safetensors(const std::filesystem::path& path, std::span<const OutTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {{"format", "pt"}});
// A folder's weights: one model.safetensors, or shards of at most `max_shard_bytes` with model.safetensors.index.json.
void write_folder(const std::filesystem::path& folder, std::span<const OutTensor> tensors, uint64_t max_shard_bytes);

}  // namespace easydel::weights
