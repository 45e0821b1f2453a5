// EasyDeLBaseConfig of EasyDeL's documents: Hugging Face's config.json with fields for the mesh, attention,
// recomputation, experts and caches. Families decide how they use it. A face: no torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/mesh/mesh.h"
#include "easydel/mesh/operation_metadata.h"
#include "easydel/mesh/partition_manager.h"
#include "easydel/mesh/rules.h"

namespace easydel::models {

struct FromPretrained {
  std::string revision = "main", subfolder = {};
  std::optional<std::filesystem::path> cache_dir;
  std::optional<std::string> token;  // instead of HF_TOKEN
  bool force_download = false, local_files_only = false;
};

// Not thread-safe.
class BaseConfig {
 public:
  // EasyDeL's fields take their values from `given`, otherwise their defaults; all other keys become attributes, too.
  explicit BaseConfig(const Value& given = Value::map());
  virtual ~BaseConfig() = default;

  // The family's model_type; for the base class the attribute `model_type`, or "".
  virtual std::string model_type() const;
  // Partition rules of a custom family, for `mesh::match_partition_rules`, LoadOptions::partition_rules and others.
  // Throws UserError here; models::get_partition_rules has those of families in the tree.
  virtual std::vector<mesh::Rule> get_partition_rules(bool fully_sharded = true) const;

  const Value* find(std::string_view name) const { return attributes_.find(name); }
  const Value& at(std::string_view name) const;  // UserError if there is no such attribute
  // Stores dtypes under their long names, and the number of experts under its other names, too.
  void set(std::string_view name, Value value);

  // Sets the given values; a null kvdtype becomes attn_dtype. Keys that are not EasyDeL's fields become attributes,
  // also of every nested configuration, which takes this one's fields first.
  void add_basic_configurations(const Value& given = Value::map());
  void attach_custom_arguments(const Value& given);  // overwrites; kept by save_pretrained
  // Copies EasyDeL's fields of another configuration, except the ratios of forgetful masks and the operations'
  // configurations.
  void read_basics_from_config(const BaseConfig& other);
  void add_sub_config(const std::string& name, std::shared_ptr<BaseConfig> config);  // "text_config"
  BaseConfig* sub_config(std::string_view name) const;                               // nullptr: none

  Value to_dict() const;       // every attribute, completed by transformers' defaults
  Value to_diff_dict() const;  // without values that are transformers' defaults; EasyDeL's fields always
  std::string to_json_string(bool only_differences = true) const;
  void to_json_file(const std::filesystem::path& file, bool only_differences = true) const;
  void save_pretrained(const std::filesystem::path& folder) const;  // folder/config.json
  // `overrides` that are attributes replace the values of `said`; the others are returned (return_unused_kwargs).
  static std::pair<BaseConfig, Value> from_dict(const Value& said, const Value& overrides = Value::map());
  // from_dict of a folder, a file or a name on the hub. Throws UserError if it does not exist or is not JSON.
  static std::pair<BaseConfig, Value> from_pretrained(std::string_view name, const Value& overrides = Value::map(),
                                                      const FromPretrained& options = {});

  std::vector<int64_t> get_axis_dims() const;
  std::vector<std::string> get_axis_names() const;
  std::string get_backend() const;                      // the field, or the backend of this machine: cpu
  int64_t granted_freq_max_position_embedding() const;  // freq_max_position_embeddings, or max_position_embeddings
  int64_t granted_mask_max_position_embedding() const;  // mask_max_position_embeddings, or max_position_embeddings
  mesh::PartitionManager partition_manager() const;
  mesh::OperationDefaults operation_defaults();  // for mesh::OperationMetadata

  // Created from the sharding fields for `ranks` on the first call, then kept; set_model_mesh replaces it, also in
  // nested configurations.
  const mesh::Mesh& mesh(int64_t ranks = 1);
  void set_model_mesh(const mesh::Mesh& mesh);

  bool operator==(const BaseConfig& other) const { return to_dict() == other.to_dict(); }

 protected:
  // For subclasses: attributes of `already` take precedence over `given`.
  BaseConfig(const Value& already, const Value& given);

 private:
  Value attributes_ = Value::map();
  std::map<std::string, std::shared_ptr<BaseConfig>, std::less<>> inside_;
  std::optional<mesh::Mesh> mesh_;
};

// The commit in ".../snapshots/<40 hex digits>/..."; `commit` if it is given; nullopt: neither.
std::optional<std::string> extract_commit_hash(const std::optional<std::string>& file,
                                               const std::optional<std::string>& commit);

// Words that EasyDeL reads as yes in an environment variable: true, yes, ok, 1, easy, in any case.
bool is_yes(std::string_view word);

}  // namespace easydel::models
