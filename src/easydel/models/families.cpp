// The model zoo, in alphabetical order. A family is one file and one line here.
#include <algorithm>
#include <array>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/models/family.h"

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
  const std::string type = config.text("model_type", "");
  const auto architectures = config.texts("architectures");
  std::vector<std::string> known;
  const Family* found = nullptr;
  for (const Family& family : families()) {
    known.emplace_back(family.model_type);
    if (family.model_type == type) found = &family;
  }
  if (type.empty()) config.refuse_key("model_type", "is missing", "it names the family: " + join(known, ", "));
  if (!found) config.refuse_key("model_type", str("'", type, "' is not built yet"), did_you_mean(type, known));
  for (const std::string& name : architectures)
    if (std::find(found->architectures.begin(), found->architectures.end(), name) == found->architectures.end()) {
      std::vector<std::string> built(found->architectures.begin(), found->architectures.end());
      config.refuse_key("architectures", str("'", name, "' is not built yet"), str("built for '", type, "': ", join(built, ", ")));
    }
  if (config.find("quantization_config"))
    config.refuse_key("quantization_config", "quantized checkpoints are not built yet", "load the unquantized model");
  if (const Value* pruned = config.find("pruned_heads"); pruned && !(pruned->is_map() && pruned->entries.empty()))
    config.refuse_key("pruned_heads", "pruned heads are not supported");
  return *found;
}

}  // namespace easydel::models
