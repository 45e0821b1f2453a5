// The families as config.json names them, known without torch: what can be said of a folder before anything is loaded.
// How a family is built is families.cpp's.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::models {

struct FamilyConfig {
  std::string_view model_type;
  std::vector<std::string_view> architectures;  // those that are built
  bool reads_mxfp4 = false;                     // quantization_config may say mxfp4
};

std::span<const FamilyConfig> family_configs();

// The family of a config.json that errors call `where`. UserError "where: key: what" where model_type or an architecture
// is unknown or not built yet, or where a key asks for what no family here has (quantized weights, pruned heads).
const FamilyConfig& family_config_of(const Value& config, const std::string& where);

}  // namespace easydel::models
