#include "easydel/quant/file_config.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "easydel/base/names.h"

namespace easydel::quant {
namespace {

constexpr std::array<std::string_view, 10> readable = {"auto-round",         "awq",        "bitnet", "bitsandbytes",
                                                       "compressed-tensors", "fbgemm_fp8", "fp8",    "gptq",
                                                       "modelopt",           "mxfp4"};
std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return text;
}

// Layouts of awq and gptq whose tensors are those of `gemm` and of `gptq`.
constexpr std::array<std::string_view, 3> awq_versions = {"gemm", "exllama", "ipex"};
constexpr std::array<std::string_view, 3> gptq_layouts = {"gptq", "gptq_v2", ""};

std::string readable_methods() {
  const std::vector<std::string> names(readable.begin(), readable.end());
  return "read: " + join(names, ", ") + "; or load the unquantized model";
}

// The method that files without quant_method mean.
std::string implied_method(const FileConfig& config) {
  if (config.boolean("load_in_4bit").value_or(false) || config.boolean("load_in_8bit").value_or(false))
    return "bitsandbytes";
  if (config.values.find("config_groups")) return "compressed-tensors";
  if (config.values.find("quant_algo") || config.values.find("quantization")) return "modelopt";
  if (config.values.find("weight_block_size")) return "fp8";
  return config.values.find("desc_act") || config.values.find("checkpoint_format") ? "gptq" : "";
}

void refuse_layouts(const FileConfig& config) {
  const auto refuse_word = [&](const char* key, const std::string& word) {
    refuse(config.where.below(key), "'" + word + "' is not built yet",
           "load a checkpoint of the same model in the usual layout, or the unquantized model");
  };
  if (config.method == "awq")
    if (const std::string version = config.word("version");
        !version.empty() && std::ranges::find(awq_versions, version) == awq_versions.end())
      refuse_word("version", version);
  if (config.method == "gptq") {
    if (const std::string layout = config.word("checkpoint_format");
        std::ranges::find(gptq_layouts, layout) == gptq_layouts.end())
      refuse_word("checkpoint_format", layout);
    if (config.boolean("is_marlin_format").value_or(false)) refuse_word("is_marlin_format", "true");
  }
  if (config.method == "auto-round")
    if (const std::string packing = config.word("packing_format");
        packing.find("awq") == std::string::npos && packing.find("gptq") == std::string::npos)
      refuse_word("packing_format", packing);
  if (config.method == "compressed-tensors") {
    const std::string format = config.word("format");
    if (format.starts_with("marlin") || format.starts_with("sparse") || format.starts_with("mxfp6"))
      refuse_word("format", format);
    if (const Value* const sparsity = config.values.find("sparsity_config"); sparsity && sparsity->is_map())
      if (const Value* const kind = sparsity->find("format"); kind && kind->scalar != "dense")
        refuse_word("sparsity_config.format", kind->scalar);
  }
}

}  // namespace

std::optional<int64_t> FileConfig::integer(std::string_view key) const {
  const Value* const found = values.find(key);
  return found ? found->as_int() : std::nullopt;
}

std::optional<bool> FileConfig::boolean(std::string_view key) const {
  const Value* const found = values.find(key);
  return found ? found->as_bool() : std::nullopt;
}

std::string FileConfig::word(std::string_view key) const {
  const Value* const found = values.find(key);
  return found ? lower_case(found->as_string().value_or("")) : "";
}

FileConfig read_file_config(const Value& config, const Where& where) {
  FileConfig out;
  const auto present = [&](const char* key) -> const Value* {
    const Value* const found = config.find(key);
    return found && !found->is_null() ? found : nullptr;
  };
  const Value *const usual = present("quantization_config"), *const old = present("compression_config");
  if (!usual && !old) return out;
  out.where = where.below(usual ? "quantization_config" : "compression_config");
  if (usual && old) refuse(out.where, "compression_config describes codes, too", "keep the one that fits the weights");
  const Value& section = usual ? *usual : *old;
  if (!section.is_map()) refuse(out.where, to_json(section) + " is not a mapping", readable_methods());
  out.values = section;
  // Files of llm-compressor hold their own section in that of transformers.
  if (const Value* const inner = section.find("quantization_config"); inner && inner->is_map()) out.values = *inner;
  out.method = out.word("quant_method");
  if (out.method.empty()) out.method = implied_method(out);
  if (out.method.empty()) refuse(out.where.below("quant_method"), "is missing", readable_methods());
  if (std::ranges::find(readable, out.method) == readable.end())
    refuse(out.where.below("quant_method"), "'" + out.method + "' is not built yet", readable_methods());
  refuse_layouts(out);
  return out;
}

}  // namespace easydel::quant
