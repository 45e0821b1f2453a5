// The keyword arguments of a Builder's parts: taken from the sections, under the names of the documents.
#include <algorithm>
#include <array>
#include <filesystem>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/elarge/builder.h"
#include "easydel/elarge/merge.h"
#include "easydel/hub/resolve.h"

namespace easydel::elarge {
namespace {

namespace fs = std::filesystem;

// A section of the document, or a key of it; null if it is missing.
Value at(const Value& document, std::string_view key) {
  const Value* const value = document.is_map() ? document.find(key) : nullptr;
  return value ? *value : Value{};
}

// "8" in quotes becomes the number.
Value plain(Value value) {
  if (value.is_text()) {
    Value bare = value;
    bare.kind = Value::Kind::plain;
    if (bare.as_double()) return bare;
  }
  return value;
}

Value or_else(const Value& value, const Value& other) { return value.is_null() ? other : value; }

Value number_type_of(const Value& section, std::string_view key, const std::string& where) {
  const Value word = at(section, key);
  const bool file = word.is_null() || canonical(word.scalar) == "auto";
  return Value::text(number_type(file ? "bf16" : word.scalar, where + "." + std::string(key)));
}

// "LlamaForCausalLM" -> causal-language-model; empty: config.json is not local, or names no known task.
std::string task_of_files(const std::string& name) {
  // EasyDeL's table: by it a class like GPT2LMHeadModel is a bare one.
  using enum TaskType;
  static constexpr std::array<std::pair<std::string_view, TaskType>, 9> endings{{
      {"ForCausalLM", causal_lm},
      {"ForSequenceClassification", sequence_classification},
      {"ForConditionalGeneration", image_text_to_text},
      {"ForImageTextToText", image_text_to_text},
      {"ForSpeechSeq2Seq", speech_seq2seq},
      {"ForZeroShotImageClassification", zero_shot_image_classification},
      {"ForImageClassification", image_classification},
      {"ForAudioClassification", audio_classification},
      {"Model", base_module},
  }};
  const fs::path folder = hub::cached(name).value_or(hub::expand_home(name)), file = folder / "config.json";
  if (!files::is_file(file)) return "";
  const Value config = parse_file(file), architectures = at(config, "architectures");
  if (!architectures.is_list()) return "";
  for (const Value& architecture : architectures.items)
    for (const auto& [ending, task] : endings) {
      const bool encoder = at(config, "is_encoder_decoder").as_bool().value_or(false);
      if (architecture.scalar.ends_with(ending))
        return std::string(config::word_of(encoder && ending == "ForConditionalGeneration" ? seq2seq : task));
    }
  return "";
}

// One inform as arguments of the data layer.
Value dataset_of(const Value& inform) {
  static constexpr std::array<std::string_view, 9> types{"json", "jsonl", "parquet", "csv",   "arrow",
                                                         "tsv",  "txt",   "text",    "visual"};
  const Value files = at(inform, "data_files");
  std::string type = at(inform, "type").scalar;
  type.erase(0, std::min(type.find_first_not_of(' '), type.size()));
  const std::string lower = canonical(type);
  const bool known = std::ranges::find(types, lower) != types.end();
  Value out = Value::map();
  if (files.is_null() && (type.empty() || known))
    refuse("mixture.informs", "an inform has no data_files", "give data_files, or a Hugging Face dataset as its type");
  if (files.is_null()) {
    out.set("type", Value::text("hf"));
    out.set("data_files", Value::text(type));
  } else {
    const Value& first = files.is_list() && !files.items.empty() ? files.items[0] : files;
    const std::string extension = fs::path(first.scalar).extension().string();
    const std::string by_name = extension.empty() ? "json" : extension.substr(1);
    out.set("type", Value::text(!type.empty() ? (known ? lower : type) : by_name));
    out.set("data_files", files);
  }
  const auto first_of = [&](std::string_view key, std::string_view alias) {
    return or_else(at(inform, key), at(inform, alias));
  };
  for (const char* key : {"num_rows", "dataset_split_name"}) out.set(key, at(inform, key));
  out.set("split", or_else(at(inform, "split"), Value::text("train")));
  for (const char* key : {"format_callback", "format_fields"}) out.set(key, at(inform, key));
  const Value pixels = first_of("pixel_field", "image_field");
  const bool visual = !pixels.is_null() || lower == "visual";
  if (visual) out.set("pixel_field", or_else(pixels, Value::text("images")));
  const Value content = first_of("content_field", "text_field");
  out.set("content_field", or_else(content, visual && pixels.is_null() ? Value{} : Value::text("content")));
  if (visual) out.set("image_size", at(inform, "image_size"));
  if (!visual) out.set("additional_fields", at(inform, "additional_fields"));
  out.set("preprocessing_fn", at(inform, "preprocessing_fn"));
  return out;
}

}  // namespace

std::string Builder::task() const {
  const Value word = at(at(given_, "model"), "task");
  if (!word.is_null())
    if (const auto named = task_of(word.scalar)) return *named;
  const std::string found = task_of_files(model_name());
  return found.empty() ? std::string(config::word_of(TaskType::causal_lm)) : found;
}

Value Builder::get_base_config(Prefer prefer) const {
  const Value all = to_dict(), base = at(all, "base_config"), sharding = at(all, "sharding");
  Value values = at(base, "values"), sections = Value::map();
  if (!values.is_map()) values = Value::map();
  for (const char* key : {"attn_dtype", "kvdtype", "attn_softmax_dtype", "mla_attn_dtype", "mla_attn_softmax_dtype"})
    if (const Value* type = values.find(key); type && !type->is_null() && canonical(type->scalar) != "auto")
      values.set(key, Value::text(number_type(type->scalar, std::string("base_config.values.") + key)));
  const Value loaded = number_type_of(at(all, "loader"), "dtype", "loader");
  sections.set("attn_dtype", loaded);
  sections.set("kvdtype", loaded);
  sections.set("attn_softmax_dtype", Value::text("float32"));  // a softmax in bf16 only loses accuracy
  const auto take = [&](const Value& section, std::string_view key, std::string_view name) {
    if (const Value value = at(section, key); !value.is_null()) sections.set(name, value);
  };
  take(sharding, "partition_axis", "partition_axis");
  take(at(all, "platform"), "backend", "backend");
  take(at(all, "platform"), "platform", "platform");
  for (const char* key : {"use_ring_of_experts", "fsdp_is_ep_bound", "sp_is_ep_bound"}) take(sharding, key, key);
  take(at(all, "quantization"), "kv_cache", "kv_cache_quantization_config");
  take(at(all, "quantization"), "model", "quantization_config");
  take(base, "operation_configs", "operation_configs");
  for (const char* key : {"mask_max_position_embeddings", "freq_max_position_embeddings"})
    take(at(all, "esurge"), "max_model_len", key);
  return prefer == Prefer::base ? deep_merge(sections, values) : deep_merge(values, sections);
}

Value Builder::get_from_pretrained_kwargs() const {
  const Value all = to_dict(), loader = at(all, "loader"), sharding = at(all, "sharding"),
              platform = at(all, "platform");
  const Value quantization = at(all, "quantization"), part = at(quantization, "model");
  Value out = Value::map();
  out.set("pretrained_model_name_or_path", Value::text(model_name()));
  out.set("device", at(loader, "device"));
  out.set("dtype", number_type_of(loader, "dtype", "loader"));
  out.set("param_dtype", number_type_of(loader, "param_dtype", "loader"));
  const auto precision = precision_of(at(loader, "precision"), "loader.precision");
  out.set("precision", precision ? Value::text(*precision) : Value{});
  out.set("sharding_axis_dims", at(sharding, "axis_dims"));
  out.set("sharding_dcn_axis_dims", at(sharding, "dcn_axis_dims"));
  out.set("sharding_axis_names", at(sharding, "axis_names"));
  for (const char* key : {"partition_axis", "shard_fns"}) out.set(key, at(sharding, key));
  for (const char* key : {"backend", "platform"}) out.set(key, at(platform, key));
  Value values = get_base_config();  // without settings next to it
  std::erase_if(values.entries, [&](const auto& entry) { return out.find(entry.first) != nullptr; });
  out.set("config_kwargs", values);
  out.set("auto_shard_model", or_else(at(sharding, "auto_shard_model"), Value::boolean(true)));
  out.set("partition_rules", at(sharding, "partition_rules"));
  out.set("quantization_config", part);
  const Value apply = or_else(at(quantization, "apply_quantization"), at(quantization, "quantize_tensors"));
  out.set("apply_quantization", or_else(apply, Value::boolean(!part.is_null())));
  out.set("verbose", or_else(at(loader, "verbose"), Value::boolean(true)));
  out.set("from_torch", at(loader, "from_torch"));
  out.set("trust_remote_code", or_else(at(loader, "trust_remote_code"), Value::boolean(false)));
  const Value extra = at(at(all, "model"), "extra_kwargs");
  return extra.is_map() ? deep_merge(out, extra) : out;
}

Value Builder::get_esurge_kwargs() const {
  const Value given = at(to_dict(), "esurge");
  // The meaning of null for keys where it is not the table's default.
  static const std::array<std::pair<std::string_view, Value>, 3> kOpen{{{"max_model_len", Value::integer(8192)},
                                                                        {"max_num_seqs", Value::integer(256)},
                                                                        {"hbm_utilization", Value::number(0.85)}}};
  Value out = Value::map();
  for (const config::Key& key : config::section_of<esurge::EsurgeConfig>().keys) {
    const Value* const value = given.is_map() ? given.find(key.name) : nullptr;
    const bool counted = key.default_value.as_double() || key.default_value.as_bool();
    Value result = value ? plain(*value) : key.default_value;
    if (result.is_null() && counted) result = key.default_value;
    if (!value && result.is_list() && result.items.empty()) result = Value{};  // none
    for (const auto& [name, open] : kOpen)
      if (name == key.name && (!value || value->is_null())) result = open;
    if (key.name == "max_model_len" && result.as_int() == 0) result = kOpen[0].second;  // as if it were not given
    out.set(key.name, result);
  }
  return out;
}

Value Builder::get_mixture_kwargs() const {
  const Value given = at(to_dict(), "mixture");
  const config::Section& table = config::section_of<data::MixtureConfig>();
  Value out = Value::map(), informs = Value::list();
  if (const Value list = at(given, "informs"); list.is_list())
    for (const Value& inform : list.items) informs.items.push_back(dataset_of(inform));
  out.set("informs", informs);
  static const Value kWorkers = Value::integer(2), kBuffer = Value::integer(4);
  for (const char* key : {"cache_dir", "streaming", "text_target_field", "image_target_field", "batch_size",
                          "shuffle_buffer_size", "seed", "prefetch_workers", "prefetch_buffer_size",
                          "cloud_max_retries", "cloud_retry_delay", "cache_remote_files", "cache_expiry_seconds"}) {
    const std::string_view name = key;
    const Value* const value = given.is_map() ? given.find(name) : nullptr;
    const Value other = name == "prefetch_workers"       ? kWorkers
                        : name == "prefetch_buffer_size" ? kBuffer
                                                         : config::find_key(table, name)->default_value;
    out.set(name, value ? *value : other);
  }
  for (const char* key : {"pack_tokens", "tokens_field_name", "pack_seq_length", "pack_eos_token_id", "pack_shuffle",
                          "pack_shuffle_buffer_factor", "dask_storage_options", "pack_on_the_fly", "tokenize_callback",
                          "block_mixture", "mixture_block_size", "stop_strategy", "mixture_weights"})
    if (const Value* value = given.is_map() ? given.find(key) : nullptr) out.set(key, *value);
  return out;
}

Value Builder::get_trainer_config() const {
  config::Problems problems(file_);
  const Value written = at(given_, "trainer");
  train::TrainerSection section;
  config::read_section(config::section_of<train::TrainerSection>(), written, &section, "trainer", problems);
  problems.throw_if_any();
  return with_derived_sizes(config::write(section));
}

}  // namespace easydel::elarge
