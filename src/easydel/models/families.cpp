// The model zoo, in alphabetical order. A family is one file, one line here and one in family_configs.cpp.
#include <algorithm>
#include <array>

#include "easydel/base/error.h"
#include "easydel/models/family.h"
#include "easydel/models/family_configs.h"

namespace easydel::models {

Family apertus();
Family arcee();
Family bamba();
Family bitnet();
Family bloom();
Family cohere();
Family cohere2();
Family ernie4_5();
Family exaone4();
Family falcon();
Family falcon_h1();
Family falcon_mamba();
Family gemma();
Family gemma2();
Family gemma3_text();
Family glm();
Family glm4();
Family gpt2();
Family gpt_bigcode();
Family gpt_neo();
Family gpt_neox();
Family gptj();
Family granite();
Family helium();
Family hunyuan_v1_dense();
Family lfm2();
Family llama();
Family mamba();
Family mamba2();
Family ministral();
Family ministral3();
Family mistral();
Family mixtral();
Family mpt();
Family nemotron();
Family olmo();
Family olmo2();
Family olmo3();
Family opt();
Family persimmon();
Family phi();
Family phi3();
Family qwen2();
Family qwen2_moe();
Family qwen3();
Family qwen3_5_text();
Family qwen3_moe();
Family rwkv();
Family seed_oss();
Family smollm3();
Family stablelm();
Family starcoder2();
Family vaultgemma();
Family xlstm();

std::span<const Family> families() {
  static const std::array all = {
      apertus(), arcee(), bamba(), bitnet(), bloom(), cohere(), cohere2(), ernie4_5(), exaone4(), falcon(),
      falcon_h1(), falcon_mamba(), gemma(), gemma2(), gemma3_text(), glm(), glm4(), gpt2(), gpt_bigcode(),
      gpt_neo(), gpt_neox(), gptj(), granite(), helium(), hunyuan_v1_dense(), lfm2(), llama(), mamba(), mamba2(),
      ministral(), ministral3(), mistral(), mixtral(), mpt(), nemotron(), olmo(), olmo2(), olmo3(), opt(),
      persimmon(), phi(), phi3(), qwen2(), qwen2_moe(), qwen3(), qwen3_5_text(), qwen3_moe(), rwkv(), seed_oss(),
      smollm3(), stablelm(), starcoder2(), vaultgemma(), xlstm(),
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
