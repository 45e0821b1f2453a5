// The weights of a model in any format, and its configuration.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/weights/tensor_view.h"

namespace easydel::weights {

// Opens the first that exists of: model.safetensors.index.json and its shards (each checked against the index),
// model.safetensors, a single *.safetensors, pytorch_model.bin.index.json and its shards, pytorch_model.bin, a single
// *.gguf; or a .gguf file itself. Tensors of GGUF have Hugging Face's names. Thread-safe to read.
class Folder {
 public:
  static Folder open(const std::filesystem::path& model);       // UserError: there are none
  static bool has_weights(const std::filesystem::path& model);  // in any format, even one that open() refuses
  std::vector<std::string> names() const;                       // sorted
  bool has(std::string_view name) const;
  TensorView at(std::string_view name) const;
  TensorView info(std::string_view name) const;    // as TensorFile::info
  StoredRows stored(std::string_view name) const;  // as TensorFile::stored
  std::string where(std::string_view name) const;  // "shard-file: name", for errors

 private:
  const TensorFile& file_of(std::string_view name) const;
  std::filesystem::path folder_;
  std::map<std::string, std::shared_ptr<const TensorFile>, std::less<>> of_;
};

// A GGUF file with a vocabulary and no tensors; never read as weights.
inline constexpr std::string_view vocabulary_file = "tokenizer.gguf";

// The configuration of a model: the folder's config.json, or the equivalent made from the metadata of its GGUF file.
struct ConfigFile {
  Value document;
  Where where;  // the file, for errors
};
ConfigFile read_config(const std::filesystem::path& model);  // UserError: there is none, or it is not a mapping
bool has_config(const std::filesystem::path& model);
// The dtype that config.json says its weights have (dtype, in older files torch_dtype). f32 where it says none, "auto",
// or something that is no dtype.
DType dtype_of_weights(const Value& config);

// Copies generation_config.json from the folder `model` to `folder`, unchanged. Does nothing if there is none, or if
// both are the same file.
void keep_generation_config(const std::filesystem::path& model, const std::filesystem::path& folder);

// The GGUF file that `model` is, or that it holds as its only readable weights; empty: none. UserError: several.
std::filesystem::path gguf_of(const std::filesystem::path& model);

}  // namespace easydel::weights
