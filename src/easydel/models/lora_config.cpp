#include "easydel/models/lora_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/base/regular_expression.h"
#include "easydel/config/problems.h"
#include "easydel/weights/folder.h"

namespace easydel::config {

bool Codec<models::LoraStart>::read(const Value& value, models::LoraStart& out, const At& at) {
  constexpr std::string_view randomized = "pissa_niter_";
  if (value.as_string() && value.scalar.starts_with(randomized)) {
    const std::string_view digits = std::string_view(value.scalar).substr(randomized.size());
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.iterations);
    if (error != std::errc() || end != digits.data() + digits.size() || out.iterations < 1)
      return at.wrong(value, shown(value) + " has no number of iterations", "for example: pissa_niter_16");
    return out.kind = models::LoraInit::pissa, true;
  }
  out.iterations = 0;
  return Codec<models::LoraInit>::read(value, out.kind, at);
}

Value Codec<models::LoraStart>::write(const models::LoraStart& start) {
  if (start.iterations > 0) return Value::text(str("pissa_niter_", start.iterations));
  return Codec<models::LoraInit>::write(start.kind);
}

}  // namespace easydel::config

namespace easydel::models {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view peft_version = "0.21.2";

// A field of adapter_config.json that has no key in the section `lora`.
struct PeftField {
  const char* name;
  const char* usual;  // JSON: the only value that means the same here
};
// Of the file without a section's keys; in their order, which is alphabetical.
constexpr PeftField only_usual[] = {
    {"alora_invocation_tokens", "null"}, {"arrow_config", "null"},   {"corda_config", "null"},
    {"ensure_weight_tying", "false"},    {"eva_config", "null"},     {"kasa_config", "null"},
    {"layer_replication", "null"},       {"lora_ga_config", "null"}, {"megatron_config", "null"},
    {"monteclora_config", "null"},       {"use_bdlora", "null"},     {"use_qalora", "false"},
    {"velora_config", "null"},
};
// Read and passed over: they change nothing about what an adapter computes.
constexpr const char* passed_over[] = {
    "auto_mapping",  "base_model_name_or_path", "inference_mode", "megatron_core",  "peft_type",
    "peft_version",  "qalora_group_size",       "revision",       "runtime_config", "task_type",
    "fan_in_fan_out"};
// A field and the key of the section that it is.
constexpr std::pair<const char*, const char*> keys[] = {{"alpha_pattern", "alpha_pattern"},
                                                        {"bias", "bias"},
                                                        {"exclude_modules", "exclude_modules"},
                                                        {"init_lora_weights", "init_lora_weights"},
                                                        {"layers_pattern", "layers_pattern"},
                                                        {"layers_to_transform", "layers_to_transform"},
                                                        {"loftq_config", "loftq_config"},
                                                        {"lora_alpha", "alpha"},
                                                        {"lora_bias", "lora_bias"},
                                                        {"lora_dropout", "dropout"},
                                                        {"modules_to_save", "modules_to_save"},
                                                        {"r", "r"},
                                                        {"rank_pattern", "rank_pattern"},
                                                        {"target_modules", "target_modules"},
                                                        {"target_parameters", "target_parameters"},
                                                        {"trainable_token_indices", "trainable_token_indices"},
                                                        {"use_dora", "use_dora"},
                                                        {"use_rslora", "use_rslora"}};

// PEFT's get_pattern_key: the first pattern that matches the path, or its end after a dot.
const Value* find_pattern(const Value& patterns, std::string_view path) {
  if (!patterns.is_map()) return nullptr;
  for (const auto& [pattern, value] : patterns.entries)
    if (RegularExpression("(?:.*\\.)?(?:" + pattern + ")").matches(path)) return &value;
  return nullptr;
}

void check_pattern(config::Keys& keys, const char* name, const Value& patterns, bool whole) {
  if (patterns.is_null()) return;
  if (!patterns.is_map()) return keys.refuse(name, "is not a mapping", str("give patterns and numbers: {q_proj: 8}"));
  for (const auto& [pattern, value] : patterns.entries) {
    const bool good = whole ? value.as_int().value_or(0) >= 1 : value.as_double().value_or(0) > 0;
    if (!good)
      keys.refuse(name,
                  str("'", to_yaml_flow(value), "' is not a ", whole ? "rank" : "value of alpha", " (", pattern, ")"),
                  whole ? "give a whole number of at least 1" : "give a number above 0");
    try {
      RegularExpression parsed("(?:" + pattern + ")");
    } catch (const InvalidRegularExpression&) {
      keys.refuse(name, "'" + pattern + "' is not a regular expression", "give the end of a layer's path: q_proj");
    }
  }
}

void check_ids(config::Keys& keys, const Value& ids) {
  const char* const name = "trainable_token_indices";
  if (!ids.is_list() || ids.items.empty())
    return keys.refuse(name, "is not a list of token ids", "for example: [32000, 32001]");
  std::set<int64_t> seen;
  for (const Value& id : ids.items) {
    const auto number = id.as_int();
    if (!number || *number < 0)
      return keys.refuse(name, str("'", to_yaml_flow(id), "' is not a token id"), "give whole numbers from 0 on");
    if (!seen.insert(*number).second)
      return keys.refuse(name, str(*number, " is there twice"), "leave one of them out");
  }
}

void check_expression(config::Keys& keys, const char* name, const LayerNames& names) {
  const auto* const text = std::get_if<std::string>(&names);
  if (!text || *text == all_linear) return;
  try {
    RegularExpression parsed(*text);
  } catch (const InvalidRegularExpression&) {
    keys.refuse(name, "'" + *text + "' is not a regular expression", "for example: \".*\\.(q|v)_proj\"");
  }
}

Value written_names(const LayerNames& names) {
  if (const auto* const text = std::get_if<std::string>(&names)) return Value::text(*text);
  Value out = Value::list();
  for (const std::string& name : std::get<std::vector<std::string>>(names)) out.items.push_back(Value::text(name));
  return out;
}

Value written_words(const std::vector<std::string>& words) { return words.empty() ? Value{} : written_names(words); }

Value written_number(double value) {
  return value == std::floor(value) && std::fabs(value) < 1e15 ? Value::integer(int64_t(value)) : Value::number(value);
}

}  // namespace

void LoftqConfig::settle(config::Keys& keys) {
  if (loftq_bits != 4 && loftq_bits != 8)
    keys.refuse("loftq_bits", str(loftq_bits, " bits are not known"), "write 4 or 8");
}

void LoraConfig::settle(config::Keys& keys) {
  check_expression(keys, "target_modules", target_modules);
  if (exclude_modules) check_expression(keys, "exclude_modules", *exclude_modules);
  check_pattern(keys, "rank_pattern", rank_pattern, true);
  check_pattern(keys, "alpha_pattern", alpha_pattern, false);
  if (target_parameters) {
    // Without target_modules there are no others.
    if (!given.contains("target_modules")) target_modules = std::vector<std::string>{};
    if (use_dora || lora_bias || dropout > 0)
      keys.refuse("target_parameters", "does not work with use_dora, lora_bias or dropout", "leave these out");
  }
  if (trainable_token_indices.is_map())
    for (const auto& [layer, ids] : trainable_token_indices.entries) check_ids(keys, ids);
  else if (!trainable_token_indices.is_null())
    check_ids(keys, trainable_token_indices);
  for (size_t i = 0; i < added_tokens.size(); ++i) {
    if (added_tokens[i].empty()) keys.refuse("added_tokens", "a token is empty", "give its text");
    if (std::ranges::count(added_tokens, added_tokens[i]) > 1 &&
        std::ranges::find(added_tokens, added_tokens[i]) - added_tokens.begin() == std::ptrdiff_t(i))
      keys.refuse("added_tokens", "'" + added_tokens[i] + "' is there twice", "leave one of them out");
  }
  const auto* const names = std::get_if<std::vector<std::string>>(&target_modules);
  if (names && names->empty() && !target_parameters)
    keys.refuse("target_modules", "is empty", "name at least one layer, or write all-linear");
  if (std::holds_alternative<std::string>(target_modules) && !layers_to_transform.empty() &&
      std::get<std::string>(target_modules) != all_linear)
    keys.refuse("layers_to_transform", "needs target_modules as a list of names", "write target_modules: [q_proj]");
  if (layers_to_transform.empty() && !layers_pattern.empty())
    keys.refuse("layers_pattern", "has no effect without layers_to_transform", "give layers_to_transform, too");
  if (lora_bias && use_dora) keys.refuse("lora_bias", "is not known together with use_dora", "use one of them");
  const bool plain = init_lora_weights.kind == LoraInit::usual || init_lora_weights.kind == LoraInit::random;
  if (lora_bias && !plain)
    keys.refuse("lora_bias", "starts from default or random values only", "write init_lora_weights: default");
}

int64_t LoraConfig::rank_of(std::string_view path) const {
  const Value* const other = find_pattern(rank_pattern, path);
  return other ? other->as_int().value_or(r) : r;
}

double LoraConfig::scale_of(std::string_view path) const {
  const Value* const other = find_pattern(alpha_pattern, path);
  const double numerator = other ? other->as_double().value_or(alpha) : alpha;
  const auto rank = double(rank_of(path));
  return numerator / (use_rslora ? std::sqrt(rank) : rank);
}

std::vector<int64_t> LoraConfig::token_rows(std::string_view path, bool input) const {
  const Value* ids = nullptr;
  if (trainable_token_indices.is_map()) {
    for (const auto& [layer, own] : trainable_token_indices.entries)
      if (path == layer || path.ends_with("." + layer)) ids = &own;
  } else if (input && !trainable_token_indices.is_null()) {
    ids = &trainable_token_indices;
  }
  std::vector<int64_t> out;
  if (ids)
    for (const Value& id : ids->items) out.push_back(id.as_int().value_or(0));
  return out;
}

std::vector<std::string> LoraConfig::token_layers() const {
  std::vector<std::string> out;
  for (const auto& [layer, ids] : trainable_token_indices.entries) out.push_back(layer);
  return out;
}

bool is_adapter(const fs::path& folder) { return files::is_file(folder / adapter_config_name); }

AdapterConfig read_adapter_config(const fs::path& folder) {
  const fs::path file = folder / adapter_config_name;
  if (!files::is_file(file))
    refuse(folder.string(), "has no adapter_config.json", "give a folder that PEFT or easydel saved an adapter in");
  const Value document = parse_file(file);
  const std::string where = file.string();
  if (!document.is_map()) refuse(where, "is not a mapping", "save the adapter again");
  const Value* const type = document.find("peft_type");
  if (!type || type->is_null()) refuse(where, "has no peft_type", "save the adapter again");
  if (type->scalar != "LORA") refuse(where, str("peft_type ", type->scalar, " is not built yet"), "built: LORA");
  Value section = Value::map();
  for (const auto& [name, value] : document.entries) {
    const auto key = std::ranges::find_if(keys, [&](const auto& pair) { return name == pair.first; });
    if (key != std::end(keys)) {
      const bool empty = value.is_null() || (value.is_list() && value.items.empty()) ||
                         (name == "loftq_config" && value.is_map() && value.entries.empty());
      if (!empty) section.set(key->second, value);
      continue;
    }
    const auto fixed = std::ranges::find_if(only_usual, [&](const PeftField& field) { return name == field.name; });
    if (fixed != std::end(only_usual)) {
      const bool empty = value.is_null() || (value.is_map() && value.entries.empty());
      if (!empty && !(value == parse_json(fixed->usual)))
        refuse(where, str(name, ": ", to_json(value), " is not built yet"), str("built: ", fixed->usual));
      continue;
    }
    if (std::ranges::find(passed_over, name) != std::end(passed_over) || value.is_null()) continue;
    refuse(where, str(name, ": ", to_json(value), " is a field that is not known here"),
           str("it comes from a version of PEFT after ", peft_version, "; save the adapter without it"));
  }
  if (!section.find("target_modules") && !section.find("target_parameters"))
    refuse(where, "has no target_modules", "save the adapter again");
  if (const Value* const init = section.find("init_lora_weights"); init && init->is_text()) {
    const std::string& word = init->scalar;
    for (const char* other : {"corda", "lora_ga"})
      if (word.starts_with(other))
        refuse(where, str("init_lora_weights: ", word, " changes the base's weights, which is not built yet"),
               "convert the adapter with PEFT: save_pretrained(..., path_initial_model_for_weight_conversion=...)");
    // These only chose the first values of A and B.
    if (word == "eva" || word == "orthogonal") section.set("init_lora_weights", Value::text("default"));
  }
  // PEFT's own defaults, where a file of an earlier version leaves fields out.
  if (!section.find("r")) section.set("r", Value::integer(8));
  if (!section.find("alpha")) section.set("alpha", Value::integer(8));
  AdapterConfig out;
  config::Problems problems(where);
  config::read_section(config::section_of<LoraConfig>(), section, &out.lora, "", problems);
  problems.throw_if_any();
  if (const Value* const base = document.find("base_model_name_or_path"); base && base->is_text())
    out.base = base->scalar;
  return out;
}

Value written_adapter_config(const LoraConfig& lora, const std::string& base, const std::string& task) {
  Value out = Value::map();
  const auto flag = [](bool value) { return Value::boolean(value); };
  const auto pattern = [](const Value& given) { return given.is_map() ? given : Value::map(); };
  for (const PeftField& field : only_usual) out.set(field.name, parse_json(field.usual));
  out.set("alpha_pattern", pattern(lora.alpha_pattern));
  out.set("auto_mapping", Value{});
  out.set("base_model_name_or_path", base.empty() ? Value{} : Value::text(base));
  out.set("bias", config::Codec<LoraBias>::write(lora.bias));
  out.set("exclude_modules", lora.exclude_modules ? written_names(*lora.exclude_modules) : Value{});
  out.set("fan_in_fan_out", flag(lora.fan_in_fan_out));
  out.set("inference_mode", flag(true));
  const LoraInit start = lora.init_lora_weights.kind;
  const bool is_flag = start == LoraInit::usual || start == LoraInit::random;
  out.set("init_lora_weights",
          is_flag ? flag(start == LoraInit::usual) : config::Codec<LoraStart>::write(lora.init_lora_weights));
  out.set("layers_pattern", written_words(lora.layers_pattern));
  Value layers = Value::list();
  for (const int64_t layer : lora.layers_to_transform) layers.items.push_back(Value::integer(layer));
  out.set("layers_to_transform", layers.items.empty() ? Value{} : layers);
  out.set("loftq_config",
          start == LoraInit::loftq ? config::write(lora.loftq_config.value_or(LoftqConfig{})) : Value::map());
  out.set("lora_alpha", written_number(lora.alpha));
  out.set("lora_bias", flag(lora.lora_bias));
  out.set("lora_dropout", Value::number(lora.dropout));
  out.set("megatron_core", Value::text("megatron.core"));
  out.set("modules_to_save", written_words(lora.modules_to_save));
  out.set("peft_type", Value::text("LORA"));
  out.set("peft_version", Value::text(std::string(peft_version)));
  out.set("qalora_group_size", Value::integer(16));
  out.set("r", Value::integer(lora.r));
  out.set("rank_pattern", pattern(lora.rank_pattern));
  out.set("revision", Value{});
  const auto* const listed = std::get_if<std::vector<std::string>>(&lora.target_modules);
  out.set("target_modules", listed && listed->empty() ? Value{} : written_names(lora.target_modules));
  out.set("target_parameters", lora.target_parameters ? written_names(*lora.target_parameters) : Value{});
  out.set("task_type", task.empty() ? Value{} : Value::text(task));
  out.set("trainable_token_indices", lora.trainable_token_indices);
  out.set("use_dora", flag(lora.use_dora));
  out.set("use_rslora", flag(lora.use_rslora));
  std::ranges::sort(out.entries, {}, [](const auto& entry) { return entry.first; });
  return out;
}

AdapterOptions adapter_in(const fs::path& folder) {
  AdapterConfig read = read_adapter_config(folder);
  return {.config = std::move(read.lora), .folder = folder, .where = folder.string()};
}

FoundModel find_base(const fs::path& folder, const std::string& where, hub::ModelFiles files) {
  fs::path adapter = folder;
  if (weights::has_config(folder)) return {folder, {}};
  if (!is_adapter(adapter)) adapter /= "adapter";  // of a checkpoint
  if (!is_adapter(adapter)) return {folder, {}};
  const AdapterConfig config = read_adapter_config(adapter);
  const std::string file = (adapter / adapter_config_name).string();
  if (config.base.empty())
    refuse(file, "base_model_name_or_path is null, so its model is not known",
           "name the model, and the adapter with --adapter");
  fs::path base = config.base;
  if (!files::exists(base) && base.is_relative() && files::exists(adapter / base)) base = adapter / base;
  if (!files::exists(base) && !hub::is_on_hub(config.base))
    refuse(where, str("'", folder.string(), "' is an adapter of '", config.base, "', which is not there"),
           "name the model itself, and the adapter with --adapter");
  base = hub::resolve_model(base.string(), where, "main", files);
  if (!weights::has_config(base))
    refuse(where, str("'", folder.string(), "' is an adapter of '", config.base, "', which has no config.json"),
           "name the model itself, and the adapter with --adapter");
  return {base, adapter};
}

}  // namespace easydel::models
