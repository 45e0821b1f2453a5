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
#include "easydel/weights/tensor_view.h"

namespace easydel::weights {

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
// Those of a model that was there before are removed.
void write_folder(const std::filesystem::path& folder, std::span<const OutTensor> tensors, uint64_t max_shard_bytes);

}  // namespace easydel::weights
