// `easydel describe ...` and `config-schema`: the contents of a model folder, the meaning of a key.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/base/text_table.h"
#include "easydel/cli/commands.h"
#include "easydel/elarge/actions.h"
#include "easydel/elarge/core.h"
#include "easydel/hub/resolve.h"
#include "easydel/models/family_configs.h"
#include "easydel/models/lora_config.h"
#include "easydel/models/parts_config.h"
#include "easydel/quant/coded_folder.h"
#include "easydel/quant/file_format.h"
#include "easydel/weights/dtype.h"
#include "easydel/weights/folder.h"

namespace easydel::cli {
namespace {

namespace fs = std::filesystem;

// Estimates the cost of a token in a forward, without attention: two operations for each element of the matrices that
// multiply it. Only as many experts count as config.json activates; an embedding is only looked up, but a tied one is
// the head as well.
class Work {
 public:
  explicit Work(const Value& config) {
    for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"})
      if (const Value* value = config.find(key)) experts_ = double(value->as_int().value_or(0));
    for (const char* key : {"num_experts_per_tok", "moe_top_k", "moe_k"})
      if (const Value* value = config.find(key)) chosen_ = double(value->as_int().value_or(0));
  }

  void add(const std::string& name, const std::vector<int64_t>& shape, int64_t elements) {
    if (shape.size() < 2) return;
    const bool in_layer = without_index(name) != name;
    // The embedding and the head have the same size, or are the same tensor.
    if (!in_layer) outside_ = std::max(outside_, double(elements));
    if (in_layer) layers_ = std::max(layers_, index_of(name) + 1);
    const bool expert = name.find(".experts.") != std::string::npos && experts_ > 0 && chosen_ > 0;
    // The layers that `quantization` covers: no norms, routers or experts.
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    if (in_layer && shape.size() == 2 && !has(".experts.") && !has("router") && !has("norm") && !has(".gate."))
      linear_ += elements;
    if (in_layer) inside_ += double(elements) * (expert ? std::min(1.0, chosen_ / experts_) : 1.0);
  }
  int64_t layers() const { return layers_; }
  double flops() const { return 2 * (inside_ + outside_); }
  // Bytes of `elements` elements if the linear layers have this many bits and the others are bf16.
  uint64_t quantized_bytes(int64_t elements, double bits) const {
    return uint64_t(double(elements - linear_) * 2 + double(linear_) * bits / 8);
  }

 private:
  static int64_t index_of(const std::string& name) {
    const size_t digit = name.find_first_of("0123456789", name.find('.'));
    return digit == std::string::npos ? 0 : std::strtoll(name.c_str() + digit, nullptr, 10);
  }

  double experts_ = 0, chosen_ = 0, inside_ = 0, outside_ = 0;
  int64_t layers_ = 0, linear_ = 0;
};

// The head; empty if the family or the architecture is not known.
std::string head_text(const Value& config) {
  const auto word = [](const Value* value) { return value ? value->as_string().value_or("") : std::string(); };
  const auto family =
      std::ranges::find(models::family_configs(), word(config.find("model_type")), &models::FamilyConfig::model_type);
  const Value* const architectures = config.find("architectures");
  if (family == models::family_configs().end() || !architectures || architectures->items.empty()) return "";
  const auto task = models::task_of(*family, word(&architectures->items.front()));
  if (!task) return "";
  const bool classes = task == models::Task::sequence_classification || task == models::Task::token_classification;
  const Value* const labels = config.find("id2label");
  return std::string(models::name_of(*task)) +
         (classes && labels ? ", " + std::to_string(labels->entries.size()) + " labels" : "");
}

struct Group {
  int64_t count = 0, elements = 0;
  uint64_t bytes = 0;
  std::string shape, dtype;
};

// Weights in codes of one format.
struct Coded {
  int64_t weights = 0, elements = 0, bytes = 0;
  void add(int64_t numbers, int64_t size) { ++weights, elements += numbers, bytes += size; }
  std::string bits() const { return str(std::round(double(bytes) * 800 / double(elements)) / 100); }
};

constexpr std::string_view blocks_ending = "_blocks", scales_ending = "_scales";

bool is_scale_of_blocks(const quant::CodedFolder& folder, const std::string& name) {
  return name.ends_with(scales_ending) &&
         folder.folder().has(name.substr(0, name.size() - scales_ending.size()) + std::string(blocks_ending));
}

// The weight of this name if it is in codes; of gpt_oss's experts, that of the blocks.
std::shared_ptr<const quant::CodedWeight> codes_of(const quant::CodedFolder& folder, const std::string& name) {
  if (auto weight = folder.codes(name)) return weight;
  if (!name.ends_with(blocks_ending)) return nullptr;
  const std::string scales = name.substr(0, name.size() - blocks_ending.size()) + std::string(scales_ending);
  return folder.folder().has(scales) ? quant::read_mxfp4(name, folder.at(name), folder.at(scales)) : nullptr;
}

}  // namespace

std::string without_index(const std::string& name) {
  std::string out;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    const bool index = !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    out += (begin > 0 ? "." : "") + (index ? "*" : part);
    begin = end + 1;
  }
  return out;
}

int run_describe_model(const DescribeModelOptions& options) {
  const fs::path folder = hub::resolve_model(options.model, "describe model");
  if (!weights::has_config(folder))
    for (const fs::path& adapter : {folder, folder / "adapter"})
      if (models::is_adapter(adapter)) return describe_adapter(adapter, options);
  if (!weights::has_config(folder)) refuse(folder.string(), "has no config.json", "give a Hugging Face model folder");
  const weights::ConfigFile read = weights::read_config(folder);
  const models::FamilyConfig* const whole = models::family_of_parts(read.document);
  const Value config = models::part_config(read.document, read.where, models::PartRole::text);
  std::map<std::string, Group> groups;
  std::vector<std::string> order;
  int64_t elements = 0;
  uint64_t weight_bytes = 0;
  Work work(config);
  const auto add = [&](const std::string& name, const std::vector<int64_t>& sizes, const std::string& dtype,
                       int64_t numbers, uint64_t bytes) {
    const std::string key = options.parameters ? name : without_index(name);
    if (!groups.contains(key)) order.push_back(key);
    Group& group = groups[key];
    const std::string shape = shape_text(sizes);
    group.shape = group.count == 0 || group.shape == shape ? shape : "several";
    group.dtype = group.count == 0 || group.dtype == dtype ? dtype : "several";
    ++group.count, group.elements += numbers, group.bytes += bytes;
    elements += numbers, weight_bytes += bytes;
    work.add(name, sizes, numbers);
  };
  std::map<std::string, Coded> codes;  // by format
  std::string unplanned;               // why there are neither weights nor a plan of them
  const bool planned = !weights::Folder::has_weights(folder);
  if (planned) {
    const weights::DType dtype = weights::dtype_of_weights(config);
    try {
      for (const auto& [name, shape] : elarge::core().plan_model(config, read.where)) {
        int64_t numbers = 1;
        for (const int64_t size : shape) numbers *= size;
        add(name, shape, std::string(weights::name_of(dtype)), numbers, uint64_t(numbers) * weights::size_of(dtype));
      }
    } catch (const UserError& error) {
      unplanned = error.what();
    }
  } else {
    const quant::CodedFolder opened = quant::open_coded(folder, config, read.where);
    for (const std::string& name : opened.names()) {
      if (const auto weight = codes_of(opened, name)) {
        const int64_t numbers = weight->rows() * weight->k();
        add(name, weight->shape, weight->format, numbers, uint64_t(weight->bytes()));
        codes[weight->format].add(numbers, weight->bytes());
      } else if (!is_scale_of_blocks(opened, name)) {
        const weights::TensorView view = opened.at(name);
        add(name, view.shape, std::string(view.type_name()), view.elements(), view.bytes.size());
      }
    }
  }
  const auto word = [&](const char* key) {
    const Value* value = config.find(key);
    return value && !value->is_null() ? (value->is_text() ? value->scalar : to_yaml_flow(*value)) : std::string();
  };
  Value json = Value::map(), list = Value::list(), files = Value::list();
  std::string out = folder.string() + "\n";
  const std::string architecture =
      config.find("architectures") ? to_yaml_flow(*config.find("architectures")) : "not given";
  out += "family        " + (word("model_type").empty() ? "not given" : word("model_type")) + ", architectures " +
         architecture + (whole ? ", the text part of " + std::string(whole->model_type) : "") + "\n";
  if (const std::string head = head_text(config); !head.empty()) out += "head          " + head + "\n";
  std::vector<std::string> sizes;
  for (const auto& [key, value] : config.entries)
    if (value.as_int() && !value.as_bool() && !key.ends_with("_token_id")) sizes.push_back(key + " " + value.scalar);
  out += "sizes         " + join(sizes, ", ") + "\n";
  out += order.empty() ? "parameters    none in the folder, and they cannot be planned: " + unplanned + "\n"
                       : "parameters    " + std::to_string(elements) + " (" + count_text(elements) + "), " +
                             bytes_text(weight_bytes) +
                             (planned ? ", planned from config.json; the folder has no weights" : "") + "\n";
  for (const auto& [format, of] : codes)
    out += str("codes         ", of.weights, " weights in ", format, ": ", of.bits(), " bits a value, ",
               bytes_text(uint64_t(of.bytes)), "\n");
  if (!order.empty()) {
    const auto as = [&](uint64_t bits) { return bytes_text(uint64_t(elements) * bits / 8); };
    out += "layers        " + std::to_string(work.layers()) + "\n";
    out += "memory        fp32 " + as(32) + ", bf16 " + as(16) + ", linear layers in 8bit " +
           bytes_text(work.quantized_bytes(elements, 8)) + ", in nf4 " +
           bytes_text(work.quantized_bytes(elements, 4.5)) + "; training in fp32 with adamw " + as(128) + "\n";
    out += "work          " + count_text(int64_t(work.flops())) +
           "FLOP per token in a forward pass, three times that in training; attention scores not included\n";
  }
  std::vector<std::vector<std::string>> rows;
  for (const std::string& key : order) {
    const Group& group = groups[key];
    rows.push_back({key, options.parameters ? "" : std::to_string(group.count) + " of", group.shape, group.dtype,
                    count_text(group.elements), bytes_text(group.bytes)});
    Value row = Value::map();
    row.set("name", Value::text(key));
    row.set("count", Value::integer(group.count));
    row.set("shape", Value::text(group.shape));
    row.set("dtype", Value::text(group.dtype));
    row.set("elements", Value::integer(group.elements));
    row.set("bytes", Value::integer(int64_t(group.bytes)));
    list.items.push_back(row);
  }
  out += text_table(rows) + "files\n";
  rows.clear();
  for (const fs::path& path : files::is_folder(folder) ? files::list(folder) : std::vector{folder}) {
    if (!files::is_file(path)) continue;
    const uint64_t bytes = files::size(path);
    rows.push_back({path.filename().string(), bytes_text(bytes)});
    Value file = Value::map();
    file.set("name", Value::text(path.filename().string()));
    file.set("bytes", Value::integer(int64_t(bytes)));
    files.items.push_back(file);
  }
  out += text_table(rows);
  if (!options.json) return print(out), 0;
  json.set("folder", Value::text(folder.string()));
  json.set("model_type", Value::text(word("model_type")));
  json.set("parameters", Value::integer(elements));
  json.set("bytes", Value::integer(int64_t(weight_bytes)));
  Value formats = Value::list();
  for (const auto& [format, of] : codes) {
    Value row = Value::map();
    row.set("format", Value::text(format));
    row.set("weights", Value::integer(of.weights));
    row.set("elements", Value::integer(of.elements));
    row.set("bits", Value::number(double(of.bytes) * 8 / double(of.elements)));
    row.set("bytes", Value::integer(of.bytes));
    formats.items.push_back(row);
  }
  json.set("codes", formats);
  json.set("planned", Value::boolean(planned));
  json.set("layers", Value::integer(work.layers()));
  json.set("flops_per_token", Value::number(work.flops()));
  json.set("tensors", list);
  json.set("files", files);
  json.set("config", config);
  return print(to_json(json, 2) + "\n"), 0;
}

std::string keys_markdown() {
  std::string out =
      "# Keys of a run\n\nGenerated by `easydel describe keys --markdown`; do not edit. A run is a YAML or JSON file "
      "with "
      "these sections (at the "
      "top, or below `config:`, `elarge_model:` or `elm:`) and `actions:`, the list of actions to run.\n\n## "
      "actions\n\n"
      "| action | also | meaning |\n|---|---|---|\n";
  for (const elarge::ActionEntry& entry : elarge::action_entries()) {
    std::vector<std::string> aliases(entry.aliases.begin(), entry.aliases.end());
    for (std::string& alias : aliases) alias = "`" + alias + "`";
    out += "| `" + std::string(entry.name) + "` | " + join(aliases, ", ") + " | " + std::string(entry.doc) +
           (entry.built ? "" : " *Not built yet.*") + " |\n";
  }
  out += "\n";
  for (const elarge::ActionEntry& entry : elarge::action_entries())
    if (entry.parameters && entry.alone != "path")
      out += config::markdown(*entry.parameters(), "actions: " + std::string(entry.name));
  out += config::markdown(config::section_of<elarge::Config>());
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

int run_describe_keys(const std::string& path, bool markdown) {
  const config::Section& root = config::section_of<elarge::Config>();
  if (path.empty()) return print(markdown ? keys_markdown() : config::help(root)), 0;
  const config::Key* const key = config::find_key(root, path);
  const size_t last = path.rfind('.');
  if (const config::Key* above =
          key || last == std::string::npos ? nullptr : config::find_key(root, path.substr(0, last));
      above && above->section)
    for (const config::Variant& variant : above->section()->variants)
      if (variant.name == canonical(path.substr(last + 1)))
        return print(markdown ? config::markdown(*variant.section, path) : config::help(*variant.section, path)), 0;
  if (!key) {
    // The first part of the path that does not exist, with the keys that do.
    const config::Section* section = &root;
    size_t begin = 0, end = path.find('.');
    for (; end != std::string::npos; begin = end + 1, end = path.find('.', begin)) {
      const config::Key* const above = config::find_key(root, path.substr(0, end));
      if (!above || !above->section) break;
      section = above->section();
    }
    std::vector<std::string> names;
    for (const config::Key& other : section->keys) names.push_back(other.name);
    refuse(path, "no such key", did_you_mean(path.substr(begin, end - begin), names));
  }
  if (key->section)
    return print(markdown ? config::markdown(*key->section(), path) : config::help(*key->section(), path)), 0;
  config::Section one{.doc = "", .keys = {*key}};
  const size_t cut = path.rfind('.');
  return print(markdown ? config::markdown(one)
                        : config::help(one, cut == std::string::npos ? "" : path.substr(0, cut))),
         0;
}

int run_config_schema() {
  Value run = config::json_schema(config::section_of<elarge::Config>());
  const Value config = run;
  Value names = Value::list(), item = Value::map(), word = Value::map(), actions = Value::map(), any = Value::list(),
        list = Value::map();
  Value properties = Value::map();
  for (const elarge::ActionEntry& entry : elarge::action_entries()) {
    std::vector<std::string_view> all = entry.aliases;
    all.insert(all.begin(), entry.name);
    for (const std::string_view name : all) {
      names.items.push_back(Value::text(std::string(name)));
      Value parameters = entry.parameters ? config::json_schema(*entry.parameters()) : Value::map();
      if (!entry.alone.empty()) {
        Value either = Value::map(), text = Value::map(), options = Value::list();
        text.set("type", Value::text("string"));
        options.items = {text, parameters};
        either.set("anyOf", options);
        parameters = either;
      }
      properties.set(name, parameters);
    }
  }
  word.set("enum", names);
  item.set("type", Value::text("object"));
  item.set("properties", properties);
  any.items = {word, item};
  Value one = Value::map();
  one.set("anyOf", any);
  list.set("type", Value::text("array"));
  list.set("items", one);
  any.items.push_back(list);
  actions.set("anyOf", any);
  Value* const keys = run.find("properties");
  keys->set("actions", actions);
  for (const char* wrapper : {"config", "elarge_model", "elm"}) keys->set(wrapper, config);
  // `model` is required only if no wrapper contains the configuration.
  std::erase_if(run.entries, [](const auto& entry) { return entry.first == "required"; });
  Value required = Value::list();
  required.items.push_back(Value::text("actions"));
  run.set("required", required);
  Value out = Value::map();
  out.set("$schema", Value::text("https://json-schema.org/draft/2020-12/schema"));
  out.set("title", Value::text("easydel run"));
  for (auto& [key, value] : run.entries) out.set(key, value);
  return print(to_json(out, 1) + "\n"), 0;
}

}  // namespace easydel::cli
