// The weights of a model, whatever the form that they come in, and the configuration beside them.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/weights/tensor_view.h"

namespace easydel::weights {

// Of a folder the first of: model.safetensors.index.json and its shards (each checked against the index),
// model.safetensors, any single *.safetensors, pytorch_model.bin.index.json and its shards, pytorch_model.bin, a single
// *.gguf; or a .gguf file itself. GGUF's tensors have Hugging Face's names. Thread-safe to read.
class Folder {
 public:
  static Folder open(const std::filesystem::path& model);       // UserError where there are none
  static bool has_weights(const std::filesystem::path& model);  // in any format, also one that open() refuses
  std::vector<std::string> names() const;                       // sorted
  bool has(std::string_view name) const;
  TensorView at(std::string_view name) const;
  TensorView info(std::string_view name) const;    // as TensorFile::info
  std::string where(std::string_view name) const;  // "shard-file: name", for errors

 private:
  const TensorFile& file_of(std::string_view name) const;
  std::filesystem::path folder_;
  std::map<std::string, std::shared_ptr<const TensorFile>, std::less<>> of_;
};

// What a folder has for a vocabulary alone: a GGUF file without tensors, never taken for weights.
inline constexpr std::string_view vocabulary_file = "tokenizer.gguf";

// The configuration of a model: config.json of a folder, else what its GGUF file says in config.json's words.
struct ConfigFile {
  Value document;
  std::string where;  // the file, for errors
};
ConfigFile read_config(const std::filesystem::path& model);  // UserError where there is none, or no mapping
bool has_config(const std::filesystem::path& model);

// Writes the generation_config.json of the folder `model` to `folder`, as it is; nothing where there is none, or where
// it is the same file.
void keep_generation_config(const std::filesystem::path& model, const std::filesystem::path& folder);

// The GGUF file that `model` is, or holds beside nothing else that is read; empty: none. UserError: several.
std::filesystem::path gguf_of(const std::filesystem::path& model);

}  // namespace easydel::weights
