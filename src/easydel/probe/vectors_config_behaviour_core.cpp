// Recorded cases of EasyDeLBaseConfig: construction, serialisation, masks. Cases describe in words what was done.
#include <functional>
#include <map>

#include "easydel/base/error.h"
#include "easydel/base/regular_expression.h"
#include "easydel/models/base_config.h"
#include "easydel/ops/mask_details.h"
#include "easydel/ops/mask_info.h"
#include "easydel/probe/vectors.h"

namespace easydel::probe {
namespace {

using models::BaseConfig;

Value map(const char* json) { return parse_json(json); }

Value shown(const BaseConfig& config, std::initializer_list<std::string_view> names) {
  Value out = Value::map();
  for (const std::string_view name : names) out.set(name, config.at(name));
  return out;
}

class Preset final : public BaseConfig {
 public:
  explicit Preset(const Value& given)
      : BaseConfig(map(R"({"blocksize_q": 77, "attn_mechanism": "sdpa", "hidden_size": 64})"), given) {}
};

Value axis_sizes(BaseConfig config) {
  Value out = Value::map();
  const mesh::Mesh& mesh = config.mesh(8);
  for (const std::string& axis : mesh::default_axes()) out.set(axis, Value::integer(mesh.size(axis)));
  return out;
}

Value added(const char* before, const char* given, std::initializer_list<std::string_view> names) {
  BaseConfig config(map(before));
  config.add_basic_configurations(map(given));
  return shown(config, names);
}

Value saved(const char* fields) {
  Value out = Value::map();
  out.set("files", list_of(std::vector<std::string>{"config.json"}));
  out.set("json", BaseConfig(map(fields)).to_diff_dict());
  return out;
}

Value round_trip() {
  BaseConfig config(map(R"({"sharding_axis_dims": [1, 2, 1, 4, 1], "gradient_checkpointing": "nothing_saveable"})"));
  config.attach_custom_arguments(map(R"({"custom": [1, 2]})"));
  const BaseConfig back =
      BaseConfig::from_dict(parse_json(config.to_json_string()), map(R"({"blocksize_q": 9})")).first;
  return shown(back, {"sharding_axis_dims", "gradient_checkpointing", "custom", "blocksize_q", "attn_dtype", "kvdtype",
                      "partition_axis"});
}

Value unused_arguments() {
  auto [config, unused] = BaseConfig::from_dict(BaseConfig().to_dict(), map(R"({"blocksize_q": 2, "zzz": 5})"));
  Value out = Value::list();
  out.items = {config.at("blocksize_q"), unused};
  return out;
}

Value table_of(const BaseConfig& config) {
  const int64_t length = config.granted_mask_max_position_embedding();
  const ops::MaskInfo mask = ops::MaskInfo::full(1, length, length).apply_causal();
  Value rows = Value::list(), head = Value::list(), out = Value::list();
  for (int64_t query = 0; query < length; ++query) {
    std::vector<int64_t> row;
    for (int64_t key = 0; key < length; ++key) row.push_back(mask.allows(0, query, key));
    rows.items.push_back(list_of(row));
  }
  head.items.push_back(std::move(rows));
  out.items.push_back(std::move(head));
  return out;
}

Value shape_of_mask(const char* fields) {
  const int64_t length = BaseConfig(map(fields)).granted_mask_max_position_embedding();
  return list_of(ops::MaskInfo::full(1, length, length).apply_causal().table().sizes().vec());
}

Value mask_with_arguments() {
  Value out = Value::list();
  out.items = {shape_of_mask(R"({"max_position_embeddings": 5})"), Value::text("bool")};
  return out;
}

Value forgetful(double ratio, bool deterministic) {
  const auto mask = ops::fcm_mask(2, 4, 0.0, ratio, deterministic, 0);
  return mask ? list_of(mask->sizes().vec()) : Value{};
}

Value mask_details(const std::string& layer_type) {
  Value config = map(R"({"sliding_window": 7, "attention_chunk_size": 9})");
  if (layer_type != "none") config.set("layer_types", list_of(std::vector<std::string>{layer_type}));
  const auto details = ops::get_mask_details(config);
  if (!details) return {};
  Value out = Value::map();
  for (size_t i = 0; i < details->size(); ++i) {
    const ops::AttnMaskDetail& detail = (*details)[i];
    Value one = Value::map();
    one.set("mask_type", Value::text(std::string(ops::name_of(detail.mask_type))));
    one.set("size", detail.size ? Value::integer(*detail.size) : Value{});
    one.set("offset", Value{});
    one.set("chunks", detail.chunks ? Value::integer(*detail.chunks) : Value{});
    one.set("bricks", Value{});
    out.set(str(i), one);
  }
  return out;
}

// "extract_commit_hash('x/y/config.json',None)"
Value commit_hash(const std::string& words) {
  static const RegularExpression form(R"(extract_commit_hash\((?:'([^']*)'|None), ?(?:'([^']*)'|None)\))");
  const auto said = form.match(words);
  if (!said) throw VectorNotBuilt("the words '" + words + "'");
  const auto hash = models::extract_commit_hash((*said)[1], (*said)[2]);
  return hash ? Value::text(*hash) : Value{};
}

Value done(const VectorCase& vector, const VectorFile& file) {
  const Value* const described = vector.body.find("desc");
  const std::string words = described ? described->scalar : "", id = vector.id;
  if (id.starts_with("commit_hash")) return commit_hash(words);
  if (id.starts_with("env_bool")) {
    const size_t quote = words.find('\'');
    return Value::boolean(models::is_yes(words.substr(quote + 1, words.size() - quote - 2)));
  }
  if (id.starts_with("mask_details_")) return mask_details(id.substr(13));
  static const std::map<std::string, std::function<Value()>, std::less<>> all{
      {"attr_preset_wins",
       [] {
         return shown(Preset(map(R"({"blocksize_q": 5, "attn_mechanism": "ring"})")),
                      {"blocksize_q", "attn_mechanism", "hidden_size"});
       }},
      {"extra_kwargs_kept",
       [] {
         return shown(BaseConfig(map(R"({"foo": 1, "hidden_size": 3})")), {"foo", "hidden_size"});
       }},
      {"kvdtype_none",
       [] {
         return shown(BaseConfig(map(R"({"attn_dtype": "float32"})")), {"attn_dtype", "kvdtype", "attn_softmax_dtype"});
       }},
      {"add_basic_unset",
       [] {
         return added("{}", "{}",
                      {"attn_dtype", "kvdtype", "blocksize_q", "scan_attention_layers", "platform", "backend"});
       }},
      {"add_basic_kvdtype_none",
       [] {
         return added(R"({"attn_dtype": "float16"})", R"({"kvdtype": null})", {"attn_dtype", "kvdtype"});
       }},
      {"add_basic_set",
       [] {
         return added("{}", R"({"blocksize_q": 64, "foo": 3})", {"blocksize_q", "foo", "blocksize_k"});
       }},
      {"axis_dims_list", [] { return axis_sizes(BaseConfig(map(R"({"sharding_axis_dims": [2, 2, 1, 2, 1]})"))); }},
      {"partition_axis_dict",
       [] { return BaseConfig(map(R"({"partition_axis": {"head_axis": "sp"}})")).at("partition_axis"); }},
      {"partition_axis_none", [] { return BaseConfig(map(R"({"partition_axis": null})")).at("partition_axis"); }},
      {"get_axis",
       [] {
         Value out = Value::list();
         out.items = {list_of(BaseConfig().get_axis_dims()), list_of(BaseConfig().get_axis_names())};
         return out;
       }},
      {"get_backend_default", [] { return Value::text(BaseConfig().get_backend()); }},
      {"get_backend_empty", [] { return Value::text(BaseConfig(map(R"({"backend": ""})")).get_backend()); }},
      {"get_backend_gpu", [] { return Value::text(BaseConfig(map(R"({"backend": "gpu"})")).get_backend()); }},
      {"platform_gpu",
       [] {
         return shown(BaseConfig(map(R"({"backend": "gpu"})")), {"platform", "backend"});
       }},
      {"partition_rules_base", [] { return BaseConfig().get_partition_rules(), Value{}; }},
      {"attach",
       [] {
         BaseConfig config;
         config.attach_custom_arguments(map(R"({"a": 1, "blocksize_q": 3})"));
         return shown(config, {"a", "blocksize_q"});
       }},
      {"mesh_cached",
       [] {
         BaseConfig config;
         return Value::boolean(&config.mesh(8) == &config.mesh(8));
       }},
      {"bad_names_len",
       [] { return axis_sizes(BaseConfig(map(R"({"sharding_axis_names": ["dp", "fsdp", "ep", "tp"]})"))); }},
      {"n_experts_alias",
       [] {
         return shown(BaseConfig(map(R"({"num_experts": 8})")), {"num_experts", "num_local_experts"});
       }},
      {"hash_equal", [] { return Value::boolean(BaseConfig() == BaseConfig()); }},
      {"serialize_base", [] { return saved("{}"); }},
      {"serialize_custom",
       [] { return saved(R"({"foo": "x", "sharding_axis_dims": [1, 2, 1, 4, 1], "attn_dtype": "float32"})"); }},
      {"roundtrip", round_trip},
      {"unused_kwargs", unused_arguments},
      {"bad_json", [] { return BaseConfig::from_dict(parse_json("{no")), Value{}; }},
      {"todict_keys",
       [] {
         std::vector<std::string> names;
         for (const auto& [name, value] : BaseConfig().to_dict().entries) names.push_back(name);
         return list_of(names);
       }},
      {"causal_mask_1", [] { return table_of(BaseConfig(map(R"({"max_position_embeddings": 1})"))); }},
      {"causal_mask_len", [] { return table_of(BaseConfig(map(R"({"max_position_embeddings": 5})"))); }},
      {"causal_mask_granted",
       [] { return shape_of_mask(R"({"mask_max_position_embeddings": 3, "max_position_embeddings": 5})"); }},
      {"causal_mask_args", mask_with_arguments},
      {"causal_mask_none", [] { return shape_of_mask("{}"); }},
      {"fcm_det", [] { return forgetful(0.5, true); }},
      {"fcm_off", [] { return forgetful(0, false); }},
      {"fcm_on", [] { return forgetful(0.5, false); }},
      {"kvq_warn",
       [] {
         const BaseConfig warned(
             map(R"({"kv_cache_quantization_config": {"dtype": "nf4"}, "use_sharded_kv_caching": true})"));
         return list_of(std::vector<std::string>{"a warning of our own words"});
       }},
  };
  if (id == "save_to_file") return BaseConfig().save_pretrained(file.path), Value{};
  const auto found = all.find(id);
  if (found == all.end()) throw VectorNotBuilt("what '" + id + "' was");
  return found->second();
}

// What config.json contains in addition to the fields: transformers' release, and rope settings given to constructors.
// 0.2.0.1 loses its dtypes on the way to the file; ours are kept, as in 0.3.0.
Value expected(const VectorCase& vector, const VectorFile& file) {
  Value out = *vector.body.find("result");
  Value* const ok = out.find("ok");
  Value* const json = ok && ok->is_map() ? ok->find("json") : nullptr;
  if (!json) return out;
  std::erase_if(json->entries, [](const auto& entry) {
    return entry.first == "transformers_version" || entry.first == "_external_rope_config_kwargs";
  });
  if (file.document.find("upstream")->scalar.ends_with("0.2.0.1")) {
    const Value own = *done(vector, file).find("json");
    for (const char* type : {"attn_dtype", "kvdtype", "attn_softmax_dtype"}) json->set(type, *own.find(type));
  }
  return out;
}

}  // namespace

VectorKind config_behaviour_vectors() { return {.name = "config_behaviour", .answer = done, .expected = expected}; }

}  // namespace easydel::probe
