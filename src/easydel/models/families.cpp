// The model zoo, in alphabetical order. A family is one file, one line here and one in family_configs.cpp.
#include <algorithm>
#include <array>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/models/family.h"
#include "easydel/models/family_configs.h"
#include "easydel/models/plugin.h"
#include "easydel/models/registry_config.h"

namespace easydel::models {

Family apertus();
Family arcee();
Family arctic();
Family bamba();
Family bert();
Family bitnet();
Family bloom();
Family camembert();
Family cohere();
Family cohere2();
Family cwm();
Family dbrx();
Family deepseek_v2();
Family deepseek_v3();
Family deepseek_v32();
Family dots1();
Family ernie4_5();
Family ernie4_5_moe();
Family exaone();
Family exaone4();
Family exaone_moe();
Family falcon();
Family falcon_h1();
Family falcon_mamba();
Family flex_olmo();
Family gemma();
Family gemma2();
Family gemma3_text();
Family gemma3n_text();
Family gemma4_text();
Family glm();
Family glm4();
Family glm4_moe();
Family glm4_moe_lite();
Family glm_moe_dsa();
Family gpt2();
Family gpt_bigcode();
Family gpt_neo();
Family gpt_neox();
Family gpt_oss();
Family gptj();
Family granite();
Family granitemoe();
Family granitemoehybrid();
Family granitemoeshared();
Family grok_1();
Family helium();
Family hunyuan_v1_dense();
Family hunyuan_v1_moe();
Family hyperclovax();
Family internlm2();
Family internlm3();
Family iquestcoder();
Family jais2();
Family jamba();
Family jetmoe();
Family kimi_linear();
Family lfm2();
Family lfm2_moe();
Family llama();
Family llama4_text();
Family longcat_flash();
Family mamba();
Family mamba2();
Family mimo_v2_flash();
Family minimax();
Family minimax_m2();
Family ministral();
Family ministral3();
Family mistral();
Family mixtral();
Family modernbert();
Family mpt();
Family nemotron();
Family nemotron_h();
Family olmo();
Family olmo2();
Family olmo3();
Family olmoe();
Family openelm();
Family opt();
Family persimmon();
Family phi();
Family phi3();
Family phimoe();
Family qwen2();
Family qwen2_moe();
Family qwen3();
Family qwen3_5_moe_text();
Family qwen3_5_text();
Family qwen3_moe();
Family qwen3_next();
Family roberta();
Family rwkv();
Family seed_oss();
Family smollm3();
Family solar_open();
Family stablelm();
Family starcoder2();
Family vaultgemma();
Family xerxes();
Family xlm_roberta();
Family xlstm();
Family zamba2();

namespace {
std::vector<Family>& all_families() {
  static const std::array built = {
      apertus(),
      arcee(),
      arctic(),
      bamba(),
      bert(),
      bitnet(),
      bloom(),
      camembert(),
      cohere(),
      cohere2(),
      cwm(),
      dbrx(),
      deepseek_v2(),
      deepseek_v3(),
      deepseek_v32(),
      dots1(),
      ernie4_5(),
      ernie4_5_moe(),
      exaone(),
      exaone4(),
      exaone_moe(),
      falcon(),
      falcon_h1(),
      falcon_mamba(),
      flex_olmo(),
      gemma(),
      gemma2(),
      gemma3_text(),
      gemma3n_text(),
      gemma4_text(),
      glm(),
      glm4(),
      glm4_moe(),
      glm4_moe_lite(),
      glm_moe_dsa(),
      gpt2(),
      gpt_bigcode(),
      gpt_neo(),
      gpt_neox(),
      gpt_oss(),
      gptj(),
      granite(),
      granitemoe(),
      granitemoehybrid(),
      granitemoeshared(),
      grok_1(),
      helium(),
      hunyuan_v1_dense(),
      hunyuan_v1_moe(),
      hyperclovax(),
      internlm2(),
      internlm3(),
      iquestcoder(),
      jais2(),
      jamba(),
      jetmoe(),
      kimi_linear(),
      lfm2(),
      lfm2_moe(),
      llama(),
      llama4_text(),
      longcat_flash(),
      mamba(),
      mamba2(),
      mimo_v2_flash(),
      minimax(),
      minimax_m2(),
      ministral(),
      ministral3(),
      mistral(),
      mixtral(),
      modernbert(),
      mpt(),
      nemotron(),
      nemotron_h(),
      olmo(),
      olmo2(),
      olmo3(),
      olmoe(),
      openelm(),
      opt(),
      persimmon(),
      phi(),
      phi3(),
      phimoe(),
      qwen2(),
      qwen2_moe(),
      qwen3(),
      qwen3_5_moe_text(),
      qwen3_5_text(),
      qwen3_moe(),
      qwen3_next(),
      roberta(),
      rwkv(),
      seed_oss(),
      smollm3(),
      solar_open(),
      stablelm(),
      starcoder2(),
      vaultgemma(),
      xerxes(),
      xlm_roberta(),
      xlstm(),
      zamba2(),
  };
  static std::vector<Family> all(built.begin(), built.end());
  return all;
}
}  // namespace

std::span<const Family> families() { return all_families(); }

void register_family(const Family& family, const FamilyConfig& config) {
  check(family.model_type == config.model_type && family.build, "a family and its configuration name one model_type");
  register_family_config(config);
  all_families().push_back(family);
}

const Family& family_of(const ConfigReader& config) {
  const std::string_view type = family_config_of(config.document(), config.where()).model_type;
  const auto found = std::ranges::find(families(), type, &Family::model_type);
  check(found != families().end(), "family ", type, " is named in family_configs.cpp, but is not in families.cpp");
  return *found;
}

}  // namespace easydel::models
