#include "easydel/quant/coded_folder.h"

#include <algorithm>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/quant/file_format.h"

namespace easydel::quant {
namespace {

bool ends_with_any(std::string_view name, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view ending) { return name.ends_with(ending); });
}

// The name by which configurations call the format; auto-round writes the files of two others.
bool is_method(const FileFormat& format, const std::string& method) {
  return format.name.empty()
             ? method == "compressed-tensors" || method == "fbgemm_fp8" || method == "modelopt" || method == "fp8"
             : format.name == method || (method == "auto-round" && format.name != "bitsandbytes") ||
                   (method == "modelopt" && format.name == "fp8");
}

}  // namespace

CodedFolder::CodedFolder(weights::Folder folder, const FileConfig& config, weights::DType dtype)
    : folder_(std::move(folder)) {
  std::set<std::string, std::less<>> used;
  std::map<std::string, std::string_view> format_of;
  bool warned = false;
  const std::vector<std::string> files = folder_.names();
  for (const std::string& name : files)
    for (const FileFormat& format : file_formats()) {
      if (!name.ends_with(format.ending) || used.contains(name)) continue;
      const std::string stem = name.substr(0, name.size() - format.ending.size());
      WeightTensors tensors(folder_, config, dtype, stem + std::string(format.replacement), stem);
      if (!format.claims(tensors)) continue;
      if (codes_.contains(tensors.values()))
        refuse(
            folder_.where(name),
            str(tensors.values(), " is in codes of two formats, ", format_of[tensors.values()], " and ", format.name),
            "keep the tensors of one of them");
      if (!config.method.empty() && !is_method(format, config.method) && !warned) {
        log::warning(config.where.text(), " says ", config.method, ", but the tensors are those of ",
                     format.name.empty() ? "scaled bytes" : format.name, "; they are read as what they are");
        warned = true;
      }
      const auto weight = format.read(tensors);
      for (const auto& [part, view] : weight->parts) used.insert(part);
      format_of[tensors.values()] = format.name;
      codes_[tensors.values()] = weight;
    }
  const bool blocks = std::ranges::any_of(files, [](const std::string& name) { return name.ends_with("_blocks"); });
  if (!config.method.empty() && config.method != "mxfp4" && codes_.empty() && !blocks)
    refuse(config.where, str("says ", config.method, ", but no weight of the folder is in codes"),
           "remove quantization_config, or fetch the files again");
  for (const std::string& name : files)
    if (!used.contains(name) &&
        !(ends_with_any(name, activation_scales()) && (!codes_.empty() || !config.method.empty())))
      names_.push_back(name);
  for (const auto& [name, weight] : codes_) {
    if (folder_.has(name) && !used.contains(name))
      refuse(folder_.where(name), "is there as values and as codes", "keep one of them");
    names_.push_back(name);
  }
  std::ranges::sort(names_);
}

std::vector<std::string> CodedFolder::names() const { return names_; }

weights::TensorView CodedFolder::info(std::string_view name) const {
  if (const auto weight = codes(name))
    return {.dtype = weight->dtype, .shape = weight->shape, .bytes = {}, .owner = {}};
  return folder_.info(name);
}

weights::TensorView CodedFolder::at(std::string_view name) const {
  check(!codes(name), "coded folder: ", name, " is in codes");
  return folder_.at(name);
}

std::shared_ptr<const CodedWeight> CodedFolder::codes(std::string_view name) const {
  const auto found = codes_.find(name);
  return found == codes_.end() ? nullptr : found->second;
}

const CodedWeight* CodedFolder::only_codes() const {
  for (const auto& [name, weight] : codes_)
    if (!weight->stands_for_values) return weight.get();
  return nullptr;
}

CodedFolder open_coded(const std::filesystem::path& model, const Value& config, const Where& where) {
  const FileConfig file = read_file_config(config, where);
  return {weights::Folder::open(model), file, weights::dtype_of_weights(config)};
}

}  // namespace easydel::quant
