#include "easydel/models/load_config.h"

#include "easydel/base/error.h"

namespace easydel::models {

DTypeSetting dtype_setting(std::string_view word, const std::string& where) {
  if (const auto found = config::value_of<DTypeSetting>(word)) return *found;
  refuse(where, str("'", word, "' is not a dtype"), "known: auto, fp32, bf16, fp16");
}

DeviceSetting device_setting(std::string_view word, const std::string& where) {
  if (const auto found = config::value_of<DeviceSetting>(word)) return *found;
  refuse(where, str("'", word, "' is not a device"), "known: auto, cpu, gpu");
}

}  // namespace easydel::models
