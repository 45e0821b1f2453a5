// A GGUF file as the model folder that it was made of: config.json's keys, and the tensors under Hugging Face's names
// with their rows where Hugging Face has them. The way back is gguf_export.h's. Source of names and of what a converter
// does to values: ggml-org/llama.cpp convert_hf_to_gguf.py and gguf-py/gguf/tensor_mapping.py.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/weights/gguf.h"

namespace easydel::weights {

// What a converter does with a family.
struct GgufFamily {
  std::string_view architecture;  // general.architecture, and the prefix of its keys
  std::string_view model_type, model_class;
  bool turned = false;        // rows of queries and keys stand in pairs of neighbours, not of halves
  bool norms_of_one = false;  // norms hold 1 + what Hugging Face stores
  bool head_norms = false;    // queries and keys have norms of their own
  bool tied = false;          // where config.json does not say
  std::string_view activation = "silu";
  std::string_view biases = {};  // pieces of names that may have one: "attn_q attn_k"; all optional
};
// "built: gemma, llama, ..." is in the error of an architecture that is not in the list.
const GgufFamily& gguf_family(const GgufMetadata& metadata);
const GgufFamily* gguf_family_of(std::string_view model_type);  // null: none
std::string gguf_model_types();                                 // for errors

// One tensor's two names, without ".weight": "token_embd" and "model.embed_tokens"; of a layer behind "blk.N." and
// "model.layers.N.".
struct GgufName {
  std::string_view gguf, hugging_face;
  bool in_layer = true;
};
// Empty: no such name. `name` with its ending.
std::string hugging_face_name(std::string_view gguf_name);
std::string gguf_name(std::string_view hugging_face_name);

// Models in several files are called NAME-00001-of-00003.gguf and so on: the first of `part`'s model. Of another file
// itself.
std::filesystem::path first_gguf_part(const std::filesystem::path& part);

class GgufCheckpoint final : public TensorFile {
 public:
  // The file that says what the model is, and those that hold the rest of its tensors. UserError "path: ..." for an
  // architecture or a tensor that is not known, or where these are not all parts of one model in their order.
  explicit GgufCheckpoint(std::shared_ptr<const GgufFile> file,
                          std::vector<std::shared_ptr<const GgufFile>> others = {});
  // With the other parts of its model, which lie beside it. UserError where one is missing.
  static std::shared_ptr<const GgufCheckpoint> open(const std::filesystem::path& path);

  Value config() const;  // as transformers writes it
  const GgufFile& file() const { return *file_; }

  const std::filesystem::path& path() const override { return path_; }
  std::vector<std::string> names() const override;
  bool has(std::string_view name) const override { return of_.find(name) != of_.end(); }
  TensorView at(std::string_view name) const override;
  TensorView info(std::string_view name) const override;

 private:
  int64_t integer(std::string_view key) const;  // of "llama.<key>"; UserError where it is missing
  int64_t integer(std::string_view key, int64_t otherwise) const;
  int64_t heads() const { return integer("attention.head_count"); }
  int64_t kv_heads() const;
  int64_t head_size() const;
  Value rope() const;
  void check_parts() const;
  // By the file's own name; nullopt: there is none.
  std::optional<TensorView> find(std::string_view gguf_name) const;
  std::string key(std::string_view name) const;

  std::filesystem::path path_;
  std::shared_ptr<const GgufFile> file_;
  std::vector<std::shared_ptr<const GgufFile>> files_;  // file_ and the others
  const GgufFamily& family_;
  struct Place {
    const GgufFile* file;
    const GgufFile::Entry* entry;
  };
  std::map<std::string, Place, std::less<>> of_;  // by Hugging Face's name
};

}  // namespace easydel::weights
