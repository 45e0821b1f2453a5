// A mapped GGUF file: metadata, and tensors under the file's own names. gguf_checkpoint.h interprets them as a model.
// Format: ggml's docs/gguf.md, versions 2 and 3, little-endian.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/weights/gguf_metadata.h"
#include "easydel/weights/tensor_view.h"

namespace easydel::weights {

class GgufFile {
 public:
  struct Entry {
    GgmlType type;
    std::vector<int64_t> shape;  // row-major: the reverse of the file's order
    uint64_t begin, end;         // in the file
  };

  // Checks every length and offset; UserError "path: ..." for tensors that are truncated, out of bounds, overlapping,
  // or of a type that is not supported.
  static std::shared_ptr<const GgufFile> open(const std::filesystem::path& path);
  GgufFile(std::span<const std::byte> bytes, std::string name);  // `bytes` must outlive it

  const GgufMetadata& metadata() const { return metadata_; }
  const std::map<std::string, Entry, std::less<>>& tensors() const { return tensors_; }
  const Entry* find(std::string_view name) const;
  TensorView view(const Entry& entry) const;
  const std::string& name() const { return metadata_.name(); }

 private:
  std::shared_ptr<const files::Mapped> mapped_;
  std::span<const std::byte> bytes_;
  GgufMetadata metadata_;
  std::map<std::string, Entry, std::less<>> tensors_;
};

}  // namespace easydel::weights
