// `easydel describe model` of an adapter's folder.
#include <algorithm>
#include <filesystem>
#include <map>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/text_table.h"
#include "easydel/cli/commands.h"
#include "easydel/models/lora_config.h"
#include "easydel/weights/safetensors.h"

namespace easydel::cli {
namespace {

namespace fs = std::filesystem;

// The fields that differ from those of a plain adapter, as adapter_config.json has them: "use_dora: true".
std::vector<std::string> settings_of(const Value& config) {
  static const Value plain = models::written_adapter_config({}, "", "");
  std::vector<std::string> out;
  for (const auto& [name, value] : config.entries) {
    const bool shown_apart = name == "base_model_name_or_path" || name == "target_modules" || name == "peft_version" ||
                             name == "task_type" || name == "inference_mode" || name == "auto_mapping" || name == "r" ||
                             name == "lora_alpha" || name == "fan_in_fan_out" || name == "revision";
    const Value* const usual = plain.find(name);
    if (!shown_apart && !value.is_null() && !(usual && *usual == value))
      out.push_back(name + ": " + to_yaml_flow(value));
  }
  return out;
}

}  // namespace

int describe_adapter(const fs::path& folder, const DescribeModelOptions& options) {
  const models::AdapterConfig read = models::read_adapter_config(folder);
  const Value config = models::written_adapter_config(read.lora, read.base, "");
  const fs::path path = folder / models::adapter_weights_name;
  if (!files::is_file(path))
    refuse(folder.string(), str("has no ", models::adapter_weights_name),
           "give a folder that PEFT or easydel saved an adapter in");
  const auto file = weights::SafetensorsFile::open(path);
  struct Group {
    int64_t count = 0, elements = 0;
    std::string shape, dtype;
  };
  std::map<std::string, Group> groups;
  int64_t elements = 0;
  uint64_t bytes = 0;
  for (const std::string& name : file->names()) {
    const weights::TensorView view = file->at(name);
    Group& group = groups[options.parameters ? name : without_index(name)];
    const std::string shape = shape_text(view.shape), dtype(view.type_name());
    group.shape = group.count == 0 || group.shape == shape ? shape : "several";
    group.dtype = group.count == 0 || group.dtype == dtype ? dtype : "several";
    ++group.count, group.elements += view.elements();
    elements += view.elements(), bytes += view.bytes.size();
  }
  const std::string targets = to_yaml_flow(*config.find("target_modules"));
  std::string out = folder.string() + "\n";
  out += "adapter       LoRA, r " + to_yaml_flow(*config.find("r")) + ", alpha " +
         to_yaml_flow(*config.find("lora_alpha")) + "\n";
  out += "model         " + (read.base.empty() ? "not given (base_model_name_or_path)" : read.base) + "\n";
  out += "layers        " + targets + "\n";
  if (const auto settings = settings_of(config); !settings.empty())
    out += "settings      " + join(settings, ", ") + "\n";
  out += "parameters    " + std::to_string(elements) + " (" + count_text(elements) + "), " + bytes_text(bytes) + "\n";
  std::vector<std::vector<std::string>> rows;
  Value list = Value::list();
  for (const auto& [name, group] : groups) {
    rows.push_back({name, options.parameters ? "" : std::to_string(group.count) + " of", group.shape, group.dtype,
                    count_text(group.elements)});
    Value row = Value::map();
    row.set("name", Value::text(name));
    row.set("count", Value::integer(group.count));
    row.set("shape", Value::text(group.shape));
    row.set("dtype", Value::text(group.dtype));
    row.set("elements", Value::integer(group.elements));
    list.items.push_back(row);
  }
  if (!options.json) return print(out + text_table(rows)), 0;
  Value json = Value::map();
  json.set("folder", Value::text(folder.string()));
  json.set("adapter", config);
  json.set("model", read.base.empty() ? Value() : Value::text(read.base));
  json.set("parameters", Value::integer(elements));
  json.set("bytes", Value::integer(int64_t(bytes)));
  json.set("tensors", list);
  return print(to_json(json, 2) + "\n"), 0;
}

}  // namespace easydel::cli
