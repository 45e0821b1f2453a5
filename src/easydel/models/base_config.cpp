#include "easydel/models/base_config.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/hub/repository.h"

namespace easydel::models {
namespace fs = std::filesystem;
namespace {

// EasyDeL's fields with their defaults, in the order of the API page.
const Value& basics() {
  static const Value fields = parse_json(R"({
    "sharding_axis_dims": [1, -1, 1, 1, 1], "sharding_dcn_axis_dims": null,
    "sharding_axis_names": ["dp", "fsdp", "ep", "tp", "sp"],
    "attn_mechanism": "vanilla", "decode_attn_mechanism": null,
    "blocksize_k": 128, "blocksize_q": 128, "blocksize_b": 1,
    "moe_tiling_size_batch": 4, "moe_tiling_size_seqlen": 128, "moe_tiling_size_dim": 128,
    "partition_axis": null, "use_sharded_kv_caching": false, "use_sharding_constraint": false,
    "backend": null, "platform": null, "easy_method": "train", "bits": null,
    "scan_ring_attention": true, "scan_attention_layers": false, "use_scan_mlp": false, "scan_mlp_chunk_size": 1024,
    "sequence_axis_name": "sp", "gradient_checkpointing": "", "gradient_checkpointing_targets": null,
    "precompute_masks": true, "kv_cache_quantization_config": null, "quantization_config": null,
    "kv_cache_sharding_sequence_axis_name": "sp", "flash_attention_backward_pass_impl": "triton",
    "attn_dtype": "bfloat16", "kvdtype": null, "attn_softmax_dtype": "float32",
    "fcm_max_ratio": 0.0, "fcm_min_ratio": 0.0, "hardware_abstraction": false,
    "pallas_m_block_size": 128, "pallas_k_block_size": 128, "pallas_n_block_size": 128,
    "moe_method": "fused_moe", "moe_force_xla_gmm": false, "use_expert_tensor_mode": false,
    "use_ring_of_experts": false, "fsdp_is_ep_bound": true, "sp_is_ep_bound": true, "operation_configs": null})",
                                         "fields");
  return fields;
}

// Attributes of Hugging Face's PretrainedConfig with their defaults.
const Value& transformers_defaults() {
  static const Value fields = parse_json(R"({
    "architectures": null, "output_hidden_states": false, "output_attentions": false, "return_dict": true, "dtype": null,
    "chunk_size_feed_forward": 0, "is_encoder_decoder": false, "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
    "label2id": {"LABEL_0": 0, "LABEL_1": 1}, "problem_type": null, "_name_or_path": "",
    "pad_token_id": null, "bos_token_id": null, "eos_token_id": null, "sep_token_id": null,
    "decoder_start_token_id": null, "add_cross_attention": false, "tie_encoder_decoder": false, "is_decoder": false,
    "tie_word_embeddings": true, "cross_attention_hidden_size": null})",
                                         "fields");
  return fields;
}

constexpr std::array number_types{
    "attn_dtype", "kvdtype", "attn_softmax_dtype", "mla_attn_dtype", "mla_attn_softmax_dtype", "dtype"};

std::string long_name(const std::string& word) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 14> short_names{
      {{"bf16", "bfloat16"},
       {"fp16", "float16"},
       {"f16", "float16"},
       {"half", "float16"},
       {"fp32", "float32"},
       {"f32", "float32"},
       {"fp64", "float64"},
       {"f64", "float64"},
       {"nvfp8", "float8_e4m3"},
       {"fp8", "float8_e5m2"},
       {"float8", "float8_e5m2"},
       {"mxfp8", "float8_e5m2"},
       {"mxfp4", "float4_e2m1fn"},
       {"fp4", "float4_e2m1fn"}}};
  const std::string plain = word.starts_with("torch.") ? word.substr(6) : word;
  for (const auto& [small, full] : short_names)
    if (canonical(plain) == small) return std::string(full);
  return plain;
}

Value resolved_axis(const Value& given) {
  const mesh::PartitionAxis axis = given.is_null() ? mesh::PartitionAxis{} : mesh::partition_axis_of(given);
  return config::write(axis.resolved());
}

bool hidden_default(std::string_view key, const Value& value) {
  const Value* const usual = transformers_defaults().find(key);
  return usual && *usual == value;
}

Value sorted(Value map) {
  std::ranges::sort(map.entries, {}, [](const auto& entry) { return entry.first; });
  map.key_places.clear();
  for (auto& [key, value] : map.entries)
    if (value.is_map()) value = sorted(value);
  return map;
}

// The file that `name` refers to: itself, config.json in it, or the hub's.
fs::path config_file(const std::string& name, const FromPretrained& options) {
  const fs::path path = hub::expand_home(name), below = path / options.subfolder / "config.json";
  if (files::is_file(path)) return path;
  if (files::is_file(below)) return below;
  const std::string where = "Can't load the configuration of '" + name + "'";
  if (files::exists(path))
    refuse(where, "it has no " + (fs::path(options.subfolder) / "config.json").string(),
           "give a folder with a config.json");
  if (!hub::is_hub_name(name))
    refuse(where, "there is no such file or folder",
           "give a folder with a config.json, or a name on the Hugging Face Hub");
  hub::Settings settings = hub::settings();
  if (options.cache_dir) settings.cache = *options.cache_dir;
  if (options.token) settings.token = *options.token;
  settings.offline |= options.local_files_only;
  hub::Repository repository(where, name, hub::RepositoryType::model, options.revision, settings);
  const auto file =
      repository.fetch((fs::path(options.subfolder) / "config.json").generic_string(), {}, options.force_download);
  if (!file) refuse(where, "the repository has no config.json", "check subfolder and revision");
  return *file;
}

}  // namespace

bool is_yes(std::string_view word) {
  static constexpr std::array<std::string_view, 5> yes{"true", "yes", "ok", "1", "easy"};
  return std::ranges::find(yes, canonical(word)) != yes.end();
}

BaseConfig::BaseConfig(const Value& given) : BaseConfig(Value::map(), given) {}

BaseConfig::BaseConfig(const Value& already, const Value& given) {
  for (const auto& [key, value] : already.entries) set(key, value);
  for (const auto& [key, usual] : basics().entries) {
    if (find(key)) continue;
    const Value* const said = given.find(key);
    set(key, said ? *said : usual);
  }
  for (const auto& [key, value] : given.entries)
    if (!find(key)) set(key, value);
  const char* const hardware = std::getenv("ED_DEFAULT_HARDWARE_ABSTRACTION");
  if (!given.find("hardware_abstraction") && !already.find("hardware_abstraction") && hardware && is_yes(hardware))
    set("hardware_abstraction", Value::boolean(true));
  if (at("backend").is_null()) set("backend", Value::text("cpu"));
  if (at("platform").is_null()) set("platform", Value::text(at("backend").scalar == "gpu" ? "triton" : "jax"));
  if (at("kvdtype").is_null()) set("kvdtype", at("attn_dtype"));
  set("partition_axis", resolved_axis(at("partition_axis")));
  set("pretraining_tp", Value::integer(1));
  if (!at("kv_cache_quantization_config").is_null() && at("use_sharded_kv_caching").as_bool() == true)
    log::warning("kv_cache_quantization_config and use_sharded_kv_caching cannot be used together");
}

std::string BaseConfig::model_type() const {
  const Value* const type = find("model_type");
  return type ? type->scalar : "";
}

std::vector<mesh::Rule> BaseConfig::get_partition_rules(bool) const {
  refuse("get_partition_rules",
         "is not given by " + (model_type().empty() ? std::string("this configuration") : "'" + model_type() + "'"),
         "a family's configuration gives its rules");
}

const Value& BaseConfig::at(std::string_view name) const {
  const Value* const value = find(name);
  if (!value) refuse(std::string(name), "this configuration has no such attribute");
  return *value;
}

void BaseConfig::set(std::string_view name, Value value) {
  if (std::ranges::find(number_types, name) != number_types.end() && !value.scalar.empty())
    value = Value::text(long_name(value.scalar));
  if (name == "partition_axis" && value.is_map()) value = resolved_axis(value);
  if (name == "num_experts" || name == "n_routed_experts") attributes_.set("num_local_experts", value);
  attributes_.set(name, std::move(value));
}

void BaseConfig::add_basic_configurations(const Value& given) {
  Value others = Value::map();
  for (const auto& [key, value] : given.entries) {
    if (!basics().find(key)) {
      others.set(key, value);
      continue;
    }
    set(key, key == "kvdtype" && value.is_null() ? at("attn_dtype") : value);
  }
  attach_custom_arguments(others);
  for (const auto& [name, config] : inside_) {
    config->read_basics_from_config(*this);
    config->attach_custom_arguments(others);
  }
}

void BaseConfig::attach_custom_arguments(const Value& given) {
  for (const auto& [key, value] : given.entries) set(key, value);
}

void BaseConfig::read_basics_from_config(const BaseConfig& other) {
  for (const auto& [key, usual] : basics().entries)
    if (!key.starts_with("fcm_") && key != "operation_configs") set(key, other.at(key));
}

void BaseConfig::add_sub_config(const std::string& name, std::shared_ptr<BaseConfig> config) {
  check(config.get(), "a configuration inside must be one");
  inside_[name] = std::move(config);
}

BaseConfig* BaseConfig::sub_config(std::string_view name) const {
  const auto found = inside_.find(name);
  return found == inside_.end() ? nullptr : found->second.get();
}

Value BaseConfig::to_dict() const {
  Value out = attributes_;
  for (const auto& [key, usual] : transformers_defaults().entries)
    if (!out.find(key)) out.set(key, usual);
  for (const auto& [name, config] : inside_) out.set(name, config->to_dict());
  out.set("model_type", Value::text(model_type()));
  return sorted(out);
}

Value BaseConfig::to_diff_dict() const {
  Value out = to_dict();
  std::erase_if(out.entries, [](const auto& entry) {
    return entry.first == "_name_or_path" || hidden_default(entry.first, entry.second);
  });
  for (const auto& [name, config] : inside_) {
    Value inner = config->to_diff_dict();
    inner.set("model_type", Value::text(config->model_type()));
    out.set(name, sorted(inner));
  }
  if (model_type().empty()) std::erase_if(out.entries, [](const auto& entry) { return entry.first == "model_type"; });
  return out;
}

std::string BaseConfig::to_json_string(bool only_differences) const {
  return to_json(only_differences ? to_diff_dict() : to_dict(), 2) + "\n";
}

void BaseConfig::to_json_file(const fs::path& file, bool only_differences) const {
  files::write(file, to_json_string(only_differences));
}

void BaseConfig::save_pretrained(const fs::path& folder) const {
  if (files::is_file(folder)) refuse(folder.string(), "is a file, not a folder", "give a folder for config.json");
  files::make_directories(folder);
  to_json_file(folder / "config.json");
}

std::pair<BaseConfig, Value> BaseConfig::from_dict(const Value& said, const Value& overrides) {
  BaseConfig out(said);
  Value unused = Value::map();
  for (const auto& [key, value] : overrides.entries) {
    if (out.find(key) || transformers_defaults().find(key))
      out.set(key, value);
    else
      unused.set(key, value);
  }
  return {std::move(out), std::move(unused)};
}

std::pair<BaseConfig, Value> BaseConfig::from_pretrained(std::string_view name, const Value& overrides,
                                                         const FromPretrained& options) {
  const fs::path file = config_file(std::string(name), options);
  Value said;
  try {
    said = parse_json(files::read(file), file.string());
  } catch (const UserError& broken) {
    refuse(file.string(), str("is not valid JSON: ", broken.what()));
  }
  if (!said.is_map()) refuse(file.string(), "does not contain a configuration", "a config.json is a JSON object");
  auto [out, unused] = from_dict(said, overrides);
  out.set("_name_or_path", Value::text(std::string(name)));
  if (const auto commit = extract_commit_hash(file.string(), std::nullopt))
    out.set("_commit_hash", Value::text(*commit));
  return {std::move(out), std::move(unused)};
}

std::vector<int64_t> BaseConfig::get_axis_dims() const {
  std::vector<int64_t> out;
  for (const Value& item : at("sharding_axis_dims").items) out.push_back(item.as_int().value_or(0));
  for (const auto& [axis, size] : at("sharding_axis_dims").entries) out.push_back(size.as_int().value_or(0));
  return out;
}

std::vector<std::string> BaseConfig::get_axis_names() const {
  std::vector<std::string> out;
  for (const Value& item : at("sharding_axis_names").items) out.push_back(item.scalar);
  return out;
}

std::string BaseConfig::get_backend() const {
  const std::string backend = at("backend").is_null() ? "" : at("backend").scalar;
  return backend.empty() ? "cpu" : backend;
}

namespace {
int64_t granted(const BaseConfig& config, const char* first) {
  for (const char* key : {first, "max_position_embeddings"})
    if (const Value* value = config.find(key); value && value->as_int()) return *value->as_int();
  refuse(first, "is not given, nor is max_position_embeddings", "give one of them");
}
}  // namespace

int64_t BaseConfig::granted_freq_max_position_embedding() const {
  return granted(*this, "freq_max_position_embeddings");
}
int64_t BaseConfig::granted_mask_max_position_embedding() const {
  return granted(*this, "mask_max_position_embeddings");
}

mesh::PartitionManager BaseConfig::partition_manager() const {
  return mesh::PartitionManager(mesh::partition_axis_of(at("partition_axis")));
}

mesh::OperationDefaults BaseConfig::operation_defaults() {
  mesh::OperationDefaults out;
  out.attn_dtype = at("attn_dtype").scalar;
  out.attn_softmax_dtype = at("attn_softmax_dtype").scalar;
  out.sequence_axis_name = at("sequence_axis_name").scalar;
  out.platform = at("platform").scalar;
  out.backend = get_backend();
  out.partition_axis = mesh::partition_axis_of(at("partition_axis"));
  if (const Value& configs = at("operation_configs"); !configs.is_null()) out.operation_configs = configs;
  out.mesh = mesh();
  return out;
}

const mesh::Mesh& BaseConfig::mesh(int64_t ranks) {
  if (!mesh_) {
    mesh::MeshShape shape{.dims = get_axis_dims(), .names = get_axis_names(), .ranks = ranks};
    if (const Value& dcn = at("sharding_dcn_axis_dims"); dcn.is_list()) {
      shape.dcn_dims.emplace();
      for (const Value& item : dcn.items) shape.dcn_dims->push_back(item.as_int().value_or(0));
    }
    mesh_ = mesh::create_mesh(shape);
  }
  return *mesh_;
}

void BaseConfig::set_model_mesh(const mesh::Mesh& mesh) {
  mesh_ = mesh;
  for (const auto& [name, config] : inside_) config->set_model_mesh(mesh);
}

std::optional<std::string> extract_commit_hash(const std::optional<std::string>& file,
                                               const std::optional<std::string>& commit) {
  if (commit || !file) return commit;
  static constexpr std::string_view snapshots = "snapshots/";
  const size_t begin = file->find(snapshots);
  if (begin == std::string::npos) return std::nullopt;
  const size_t end = file->find('/', begin + snapshots.size());
  if (end == std::string::npos || end + 1 == file->size()) return std::nullopt;  // the folder, not a file in it
  const std::string hash = file->substr(begin + snapshots.size(), end - begin - snapshots.size());
  const bool good = hash.size() == 40 && hash.find_first_not_of("0123456789abcdef") == std::string::npos;
  return good ? std::optional(hash) : std::nullopt;
}

}  // namespace easydel::models
