// The safetensors format. Reading is mapped and zero-copy; writing uses a temporary file and a rename. Knows only
// bytes, shapes and names. Format: https://github.com/huggingface/safetensors; all its rules are checked before data is
// returned.
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
#include "easydel/weights/tensor_view.h"

namespace easydel::weights {

// Parses and checks the header of `bytes` (length, JSON, dtypes, shapes, offsets without holes or overlap); UserError
// "name: ...". This function is fuzzed.
struct Header {
  struct Entry {
    DType dtype;
    std::vector<int64_t> shape;
    uint64_t begin, end;  // in the data section
  };
  std::map<std::string, Entry> tensors;
  std::map<std::string, std::string> metadata;
  uint64_t data_begin = 0;  // in the file
};
Header parse_header(std::span<const std::byte> bytes, std::string_view name);

class SafetensorsFile final : public TensorFile {
 public:
  static std::shared_ptr<const SafetensorsFile> open(const std::filesystem::path& path);
  const Header& header() const { return header_; }
  std::vector<std::string> names() const override;
  bool has(std::string_view name) const override;
  TensorView at(std::string_view name) const override;
  const std::filesystem::path& path() const override { return path_; }

 private:
  std::filesystem::path path_;
  std::shared_ptr<const files::Mapped> mapped_;
  Header header_;
};

// Bytes that stay where they are as long as their owner lives.
struct HeldBytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

// A tensor to be written. `write` is called once, in file order, and must pass exactly the tensor's bytes to the sink.
// This way saving needs no second copy of the model.
struct OutTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::function<void(const std::function<void(const void*, size_t)>& sink)> write;
  // Instead of write: all bytes at once, which are released after they were written. Calls come one after another, from
  // other threads while earlier tensors are written.
  std::function<HeldBytes()> make = {};
};
// Writes one file: tensors sorted by descending alignment, then by name, as upstream does; header padded to 8 bytes.
void write_safetensors(const std::filesystem::path& path, std::span<const OutTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {{"format", "pt"}});
// Writes a folder's weights: one model.safetensors, or shards of at most `max_shard_bytes` with
// model.safetensors.index.json. Removes the weights that the folder held before.
void write_folder(const std::filesystem::path& folder, std::span<const OutTensor> tensors, uint64_t max_shard_bytes);

}  // namespace easydel::weights
