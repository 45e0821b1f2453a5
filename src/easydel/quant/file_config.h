// What config.json says about the codes of a checkpoint: its quantization_config.
#pragma once

#include <optional>
#include <string>

#include "easydel/base/document.h"
#include "easydel/base/error.h"

namespace easydel::quant {

struct FileConfig {
  std::string method;  // "gptq"; empty: config.json says nothing about codes
  Value values = Value::map();
  Where where;  // config.json: quantization_config

  std::optional<int64_t> integer(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::string word(std::string_view key) const;  // lower case; empty: there is none
};

// UserError for methods, layouts and numbers of bits that are not read, with what would work.
FileConfig read_file_config(const Value& config, const Where& where);

}  // namespace easydel::quant
