// What the tests of adapters share: settings as a document has them, and the folders of tiny models.
#pragma once

#include <filesystem>
#include <string>

#include "easydel/base/document.h"
#include "easydel/config/fields.h"
#include "easydel/models/lora_config.h"
#include "support/data.h"

namespace easydel::test {

// UserError as reading the section `lora`.
inline models::LoraConfig lora(const std::string& yaml) {
  models::LoraConfig out;
  config::read(parse_yaml(yaml), out, "lora").throw_if_any();
  return out;
}

inline std::filesystem::path golden(const std::string& model) { return test_data("hf_goldens/" + model); }

}  // namespace easydel::test
