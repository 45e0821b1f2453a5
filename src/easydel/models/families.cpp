// The model zoo, in alphabetical order. A family is one file, one line here and one in family_configs.cpp.
#include <algorithm>
#include <array>

#include "easydel/base/error.h"
#include "easydel/models/family.h"
#include "easydel/models/family_configs.h"

namespace easydel::models {

Family gpt2();
Family llama();
Family mistral();
Family mixtral();
Family qwen2();
Family qwen2_moe();
Family qwen3();
Family qwen3_moe();

std::span<const Family> families() {
  static const std::array all = {
      gpt2(), llama(), mistral(), mixtral(), qwen2(), qwen2_moe(), qwen3(), qwen3_moe(),
  };
  return all;
}

const Family& family_of(const ConfigReader& config) {
  const std::string_view type = family_config_of(config.document(), config.where()).model_type;
  const auto found = std::ranges::find(families(), type, &Family::model_type);
  check(found != families().end(), "family ", type, " is named in family_configs.cpp, but is not in families.cpp");
  return *found;
}

}  // namespace easydel::models
