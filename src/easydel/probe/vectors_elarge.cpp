// Recorded cases of eLargeModel's configuration: words, normalised documents, arguments of its parts, trainers.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/elarge/builder.h"
#include "easydel/elarge/merge.h"
#include "easydel/probe/vectors.h"
#include "easydel/probe/vectors_elarge.h"

namespace easydel::probe {
namespace {

using elarge::Builder;

Value document_of(const VectorCase& vector) { return parse_yaml(member(vector.body, "yaml").scalar, vector.id); }

// Whether the document itself has problems: a part that is not built yet does not count.
bool refused(const config::Problems& problems) {
  return std::ranges::any_of(problems.sorted(), [](const config::Problem& problem) {
    return problem.what.find("not built yet") == std::string::npos;
  });
}

std::string validity(const Value& document) {
  config::Problems problems;
  if (std::optional<Value> config = elarge::config_of(document, problems)) elarge::read_config(*config, problems);
  return refused(problems) ? "refused" : "valid";
}

// Defaults that EasyDeL's documents show; if ours differs, it replaces theirs.
const std::map<std::string, std::set<std::string, std::less<>>, std::less<>>& upstream_defaults() {
  static const std::map<std::string, std::set<std::string, std::less<>>, std::less<>> keys{
      {"loader", {"dtype", "param_dtype", "verbose"}},
      {"sharding",
       {"axis_dims", "axis_names", "auto_shard_model", "use_ring_of_experts", "fsdp_is_ep_bound", "sp_is_ep_bound"}},
      {"quantization",
       {"block_size", "group_size", "quantize_tensors", "apply_quantization", "linear_pattern", "linear_block_size",
        "linear_group_size", "use_qmm_best_config", "qmm_platform_override", "qmm_tpu_path_override"}},
      {"esurge",
       {"min_input_pad", "max_num_seqs", "hbm_utilization", "page_size", "enable_prefix_caching", "verbose",
        "bind_graphstate_for_aot", "enable_window_aware_runtime_cap", "extra_stops"}},
      {"mixture",
       {"cache_dir", "streaming", "text_target_field", "image_target_field", "batch_size", "shuffle_buffer_size",
        "seed", "use_fast_loader", "num_workers", "prefetch_size", "enable_caching"}},
      {"eval",
       {"max_new_tokens", "hard_max_new_tokens", "enable_thinking", "ignore_benchmark_eos_flags", "temperature",
        "top_p", "use_tqdm"}}};
  return keys;
}

Value given_config(const VectorCase& vector) {
  config::Problems aside;
  return elarge::config_of(document_of(vector), aside).value_or(Value::map());
}

}  // namespace

Value member(const Value& map, std::string_view key) {
  const Value* const value = map.find(key);
  return value ? *value : Value{};
}

Value with_our_defaults(Value recorded, const Value& given, const Value& ours) {
  for (auto& [name, section] : recorded.entries) {
    const auto known = upstream_defaults().find(name);
    if (known == upstream_defaults().end() || !section.is_map()) continue;
    const Value written = member(given, name);
    std::erase_if(section.entries, [&](const auto& entry) {
      return known->second.contains(entry.first) && !(written.is_map() && written.find(entry.first));
    });
  }
  // Replaces what was left out by our values.
  for (const auto& [name, keys] : upstream_defaults()) {
    const Value section = member(ours, name);
    if (!section.is_map() || !recorded.find(name) || !recorded.find(name)->is_map()) continue;
    for (const auto& [key, value] : section.entries)
      if (keys.contains(key) && !recorded.find(name)->find(key)) recorded.find(name)->set(key, value);
  }
  return recorded;
}

namespace {

Value normalized_expectation(const VectorCase& vector, const VectorFile&) {
  const Value recorded = member(vector.body, "expect");
  if (!recorded.find("ok")) return recorded;
  const Value given = given_config(vector);
  const Value config = with_our_defaults(*recorded.find("ok"), given, Builder(given).to_dict());
  Value both = Value::map(), out = Value::map();
  both.set("config", config);
  both.set("validate", Value::text(member(member(vector.body, "validate"), "error").is_null() ? "valid" : "refused"));
  out.set("ok", both);
  return out;
}

Value normalize(const VectorCase& vector, const VectorFile&) {
  const Value document = document_of(vector);
  Value out = Value::map();
  out.set("config", Builder(document).to_dict());
  out.set("validate", Value::text(validity(document)));
  return out;
}

Value scalar(const VectorCase& vector, const VectorFile&) {
  const std::string op = member(vector.body, "op").scalar;
  const Value input = member(vector.body, "input");
  if (op == "deep_merge") {
    if (input.items.size() != 2) refuse("input", to_json(input) + " is not a pair", "give a list of two");
    return elarge::deep_merge(input.items[0], input.items[1]);
  }
  if (op == "prune_nones") return elarge::without_nulls(input);
  if (op == "coerce_dtype") {
    if (input.is_null()) refuse("dtype", "null is not a dtype", "leave the key out");
    return Value::text(elarge::number_type(input.scalar, "dtype"));
  }
  if (op == "coerce_precision") {
    const auto word = elarge::precision_of(input, "precision");
    std::string upper = word.value_or("");
    std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
    return word ? Value::text(upper) : Value{};
  }
  if (op != "normalize_task") throw VectorNotBuilt("the operation '" + op + "'");
  const auto task = input.is_null() ? std::nullopt : elarge::task_of(input.scalar);
  return task ? Value::text(*task) : Value{};
}

constexpr std::array derived_parts{"task",    "base_config", "base_config_sections", "from_pretrained", "esurge",
                                   "mixture", "names"};

template <class Make>
Value attempt(Make make) {
  Value out = Value::map();
  try {
    out.set("ok", make());
  } catch (const UserError& refusal) {
    out.set("error", Value::text(refusal.what()));
  }
  return out;
}

Value derive(const VectorCase& vector, const VectorFile&) {
  Builder builder(document_of(vector));
  const auto text = [](const std::optional<std::string>& word) { return word ? Value::text(*word) : Value{}; };
  Value out = Value::map();
  out.set("task", attempt([&] { return Value::text(builder.task()); }));
  out.set("base_config", attempt([&] { return builder.get_base_config(); }));
  out.set("base_config_sections", attempt([&] { return builder.get_base_config(elarge::Prefer::sections); }));
  out.set("from_pretrained", attempt([&] { return builder.get_from_pretrained_kwargs(); }));
  out.set("esurge", attempt([&] { return builder.get_esurge_kwargs(); }));
  out.set("mixture", attempt([&] { return builder.get_mixture_kwargs(); }));
  out.set("names", attempt([&] {
            Value names = Value::list();
            names.items = {text(builder.model_name()), text(builder.teacher_model_name()),
                           text(builder.reference_model_name())};
            return names;
          }));
  return out;
}

Value derived_expectation(const VectorCase& vector, const VectorFile&) {
  Value all = Value::map(), out = Value::map();
  for (const char* part : derived_parts) {
    Value recorded = member(vector.body, part);
    if (recorded.is_text()) recorded = member(vector.body, "base_config");  // "same as base_config"
    all.set(part, recorded);
  }
  // Our own defaults: how a model is sharded, and keys whose default is another key's value.
  const Value given = given_config(vector);
  const auto missing = [&](const char* section, const char* key) {
    const Value written = member(given, section);
    return !written.is_map() || !written.find(key);
  };
  if (Value* kwargs = all.find("from_pretrained")->find("ok")) {
    if (missing("sharding", "axis_dims"))
      kwargs->set("sharding_axis_dims", list_of(std::vector<int64_t>{1, -1, 1, 1, 1}));
    if (const Value number = member(*kwargs, "precision"); number.as_int())
      kwargs->set("precision", Value::text(std::array{"default", "high", "highest"}.at(size_t(*number.as_int()))));
    if (const Value* quantize = kwargs->find("quantize_tensors")) kwargs->set("apply_quantization", *quantize);
    std::erase_if(kwargs->entries, [](const auto& entry) { return entry.first == "quantize_tensors"; });
    std::erase_if(kwargs->find("config_kwargs")->entries,
                  [](const auto& entry) { return entry.first == "use_qmm_best_config"; });
  }
  for (const char* part : {"base_config", "base_config_sections"})
    if (Value* config = all.find(part)->find("ok"))
      std::erase_if(config->entries, [](const auto& entry) { return entry.first == "use_qmm_best_config"; });
  const Value values = member(member(given, "base_config"), "values");
  const bool softmax = values.is_map() && values.find("attn_softmax_dtype");
  const auto keep_softmax = [&](Value* config, bool values_win) {
    if (config && (!softmax || !values_win)) config->set("attn_softmax_dtype", Value::text("float32"));
  };
  keep_softmax(all.find("base_config")->find("ok"), true);
  keep_softmax(all.find("base_config_sections")->find("ok"), false);
  if (Value* kwargs = all.find("from_pretrained")->find("ok")) keep_softmax(kwargs->find("config_kwargs"), true);
  if (Value* mixture = all.find("mixture")->find("ok"))
    for (const char* key : {"cache_dir", "batch_size", "seed"})
      if (missing("mixture", key) && mixture->find(key))
        mixture->set(key, *Builder(given).get_mixture_kwargs().find(key));
  if (Value* esurge = all.find("esurge")->find("ok"))
    for (auto& [key, value] : esurge->entries)
      if (value.scalar.starts_with("<eformer.")) value = Value{};  // "not given"
  out.set("ok", all);
  return out;
}

std::string derived_difference(const Value& expected, const Value& got) {
  for (const char* part : derived_parts) {
    const Value want = member(expected, part);
    Value have = member(got, part);
    if (want.find("error") && have.find("error")) continue;
    // The engine has the keys of both versions of EasyDeL; a recording has those of its own.
    if (std::string_view(part) == "esurge" && have.find("ok") && want.find("ok"))
      std::erase_if(have.find("ok")->entries, [&](const auto& entry) { return !want.find("ok")->find(entry.first); });
    const std::string text = difference_of(want, have, 1e-6, 0);
    if (!text.empty()) return std::string(part) + ": " + text;
  }
  return "";
}

// The document's trainer with every default filled in, under the canonical names.
Value train_with(const VectorCase& vector, const VectorFile&) {
  config::Problems problems;
  Value given = member(given_config(vector), "trainer");
  const Value type = member(given, "trainer_type");
  train::TrainerSection section;
  config::read_section(config::section_of<train::TrainerSection>(), given, &section, "trainer", problems);
  if (refused(problems)) refuse("trainer", problems.text());
  const std::string word = type.is_null() ? section.common.trainer_type : canonical(type.scalar);
  const train::MethodConfig* const method = train::find_method_config(word);
  check(method, "a method that was read before");
  Value out = Value::map();
  out.set("trainer_type", Value::text(word));
  // What was written, under the tables' names, followed by what results from it.
  const config::Section& table = config::section_of<train::TrainerSection>();
  const config::Section* variant = nullptr;
  for (const config::Variant& one : table.variants)
    if (one.name == method->name) variant = one.section;
  const auto value_of = [&](std::string_view name) {
    for (const auto& [key, value] : given.entries)
      if (const config::Key* row =
              config::find_key(*variant, key) ? config::find_key(*variant, key) : config::find_key(table, key);
          row && row->name == name)
        return value;
    const config::Key* const row =
        config::find_key(*variant, name) ? config::find_key(*variant, name) : config::find_key(table, name);
    return row ? row->default_value : Value{};
  };
  for (const config::Section* rows : {variant, &table})
    for (const config::Key& key : rows->keys)
      if (key.name != "trainer_type" && !out.find(key.name)) out.set(key.name, value_of(key.name));
  return elarge::with_derived_sizes(std::move(out));
}

Value trainer_expectation(const VectorCase& vector, const VectorFile&) {
  Value out = Value::map();
  const Value recorded = member(vector.body, "trainer_config");
  if (recorded.find("error")) return recorded;
  out.set("ok", member(recorded, "ok_beyond_defaults"));
  return out;
}

// Whatever EasyDeL has besides its defaults, ours must have, too (if it is a key here).
std::string trainer_difference(const Value& expected, const Value& got) {
  for (const auto& [key, value] : expected.entries) {
    const Value* const ours = got.find(key);
    if (!ours) continue;                     // the key of another method, kept without effect
    if (value.is_map() && ours->is_map()) {  // theirs is a section with all defaults, ours only what was written
      for (const auto& [inner, written] : ours->entries)
        if (const std::string text = difference_of(member(value, inner), written, 1e-9, 0); !text.empty())
          return key + "." + inner + ": " + text;
      continue;
    }
    const bool word = key == "trainer_type";
    const Value want = word ? Value::text(canonical(value.scalar)) : value;
    if (const std::string text = difference_of(want, *ours, 1e-9, 0); !text.empty()) return key + ": " + text;
  }
  return "";
}

}  // namespace

VectorKind elarge_scalars_vectors() { return {.name = "elarge_scalars", .answer = scalar}; }
VectorKind elarge_normalize_vectors() {
  return {.name = "elarge_normalize", .answer = normalize, .expected = normalized_expectation};
}
VectorKind elarge_derived_vectors() {
  return {.name = "elarge_derived", .answer = derive, .expected = derived_expectation, .compare = derived_difference};
}
VectorKind elarge_trainer_vectors() {
  return {
      .name = "elarge_trainer", .answer = train_with, .expected = trainer_expectation, .compare = trainer_difference};
}

}  // namespace easydel::probe
