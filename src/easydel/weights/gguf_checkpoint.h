// A GGUF file as the model folder that it was converted from: keys of config.json, and tensors with Hugging Face's
// names and row order. export.h does the reverse. Source of names and of the converter's changes to values:
// ggml-org/llama.cpp convert_hf_to_gguf.py and gguf-py/gguf/tensor_mapping.py.
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

// How the converter treats a family.
struct GgufFamily {
  std::string_view architecture;  // general.architecture, and the prefix of its keys
  std::string_view model_type, model_class;
  bool interleaved = false;    // rotated rows of queries and keys are neighbouring pairs instead of two halves
  bool norm_plus_one = false;  // norms hold 1 + Hugging Face's value
  bool head_norms = false;     // queries and keys are normalized per head
  bool tied = false;           // default of tie_word_embeddings
  std::string_view activation = "silu";
  std::string_view biases = {};  // tensors that may have a bias, separated by spaces: "attn_q attn_k"
};
// UserError for an architecture that is not built; it lists those that are.
const GgufFamily& gguf_family(const GgufMetadata& metadata);
const GgufFamily* gguf_family_of(std::string_view model_type);  // null: none
std::string gguf_model_types();                                 // for errors

// The two names of a tensor, without ".weight": "token_embd" and "model.embed_tokens"; in a layer they follow "blk.N."
// and "model.layers.N.".
struct GgufName {
  std::string_view gguf, hugging_face;
  bool in_layer = true;
};
// Convert a name with its ending; empty: no such name.
std::string hugging_face_name(std::string_view gguf_name);
std::string gguf_name(std::string_view hugging_face_name);

// Split models are files NAME-00001-of-00003.gguf and so on. Returns the first part of the model that `part` belongs
// to, or `part` itself if it is not split.
std::filesystem::path first_gguf_part(const std::filesystem::path& part);

class GgufCheckpoint final : public TensorFile {
 public:
  // `file` holds the metadata, `others` the remaining tensors. UserError "path: ..." for an unknown architecture or
  // tensor, or if the files are not all parts of one model in order.
  explicit GgufCheckpoint(std::shared_ptr<const GgufFile> file,
                          std::vector<std::shared_ptr<const GgufFile>> others = {});
  // Opens all parts of the model, which must be in one folder. UserError: one is missing.
  static std::shared_ptr<const GgufCheckpoint> open(const std::filesystem::path& path);

  Value config() const;  // as transformers writes it
  const GgufFile& file() const { return *file_; }

  const std::filesystem::path& path() const override { return path_; }
  std::vector<std::string> names() const override;
  bool has(std::string_view name) const override { return of_.find(name) != of_.end(); }
  TensorView at(std::string_view name) const override;
  TensorView info(std::string_view name) const override;
  StoredRows stored(std::string_view name) const override;

 private:
  int64_t integer(std::string_view key) const;  // value of "llama.<key>"; UserError: missing
  int64_t integer(std::string_view key, int64_t otherwise) const;
  int64_t heads() const { return integer("attention.head_count"); }
  int64_t kv_heads() const;
  int64_t head_size() const;
  int64_t heads_in_pairs(std::string_view name) const;  // 0: the tensor's rows are in Hugging Face's order
  Value rope() const;
  void check_parts() const;
  // By the file's own name; nullopt: no such tensor.
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
