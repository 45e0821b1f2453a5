// The model zoo, in alphabetical order. A family is one file, one line here and one in family_configs.cpp.
#include <algorithm>
#include <array>

#include "easydel/base/error.h"
#include "easydel/models/family.h"
#include "easydel/models/family_configs.h"

namespace easydel::models {

Family bamba();
Family falcon_h1();
Family falcon_mamba();
Family gpt2();
Family lfm2();
Family llama();
Family mamba();
Family mamba2();
Family mistral();
Family mixtral();
Family qwen2();
Family qwen2_moe();
Family qwen3();
Family qwen3_5_text();
Family qwen3_moe();
Family rwkv();
Family xlstm();

std::span<const Family> families() {
  static const std::array all = {
      bamba(), falcon_h1(), falcon_mamba(), gpt2(), lfm2(), llama(), mamba(), mamba2(), mistral(), mixtral(),
      qwen2(), qwen2_moe(), qwen3(), qwen3_5_text(), qwen3_moe(), rwkv(), xlstm(),
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
