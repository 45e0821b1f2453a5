// The model zoo, in alphabetical order. A family is one file, one line here and one in family_configs.cpp.
#include <algorithm>
#include <array>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/models/family.h"
#include "easydel/models/family_configs.h"
#include "easydel/models/register_family.h"
#include "easydel/models/registry_config.h"

namespace easydel::models {

// clang-format off
namespace zoo {
namespace apertus { Family family(); }
namespace arcee { Family family(); }
namespace arctic { Family family(); }
namespace bamba { Family family(); }
namespace bert { Family family(); }
namespace bitnet { Family family(); }
namespace bloom { Family family(); }
namespace camembert { Family family(); }
namespace cohere { Family family(); }
namespace cohere2 { Family family(); }
namespace cwm { Family family(); }
namespace dbrx { Family family(); }
namespace deepseek_v2 { Family family(); }
namespace deepseek_v3 { Family family(); }
namespace deepseek_v32 { Family family(); }
namespace dots1 { Family family(); }
namespace ernie4_5 { Family family(); }
namespace ernie4_5_moe { Family family(); }
namespace exaone { Family family(); }
namespace exaone4 { Family family(); }
namespace exaone_moe { Family family(); }
namespace falcon { Family family(); }
namespace falcon_h1 { Family family(); }
namespace falcon_mamba { Family family(); }
namespace flex_olmo { Family family(); }
namespace gemma { Family family(); }
namespace gemma2 { Family family(); }
namespace gemma3_text { Family family(); }
namespace gemma3n_text { Family family(); }
namespace gemma4_text { Family family(); }
namespace glm { Family family(); }
namespace glm4 { Family family(); }
namespace glm4_moe { Family family(); }
namespace glm4_moe_lite { Family family(); }
namespace glm_moe_dsa { Family family(); }
namespace gpt2 { Family family(); }
namespace gpt_bigcode { Family family(); }
namespace gpt_neo { Family family(); }
namespace gpt_neox { Family family(); }
namespace gpt_oss { Family family(); }
namespace gptj { Family family(); }
namespace granite { Family family(); }
namespace granitemoe { Family family(); }
namespace granitemoehybrid { Family family(); }
namespace granitemoeshared { Family family(); }
namespace grok_1 { Family family(); }
namespace helium { Family family(); }
namespace hunyuan_v1_dense { Family family(); }
namespace hunyuan_v1_moe { Family family(); }
namespace hyperclovax { Family family(); }
namespace internlm2 { Family family(); }
namespace internlm3 { Family family(); }
namespace iquestcoder { Family family(); }
namespace jais2 { Family family(); }
namespace jamba { Family family(); }
namespace jetmoe { Family family(); }
namespace kimi_linear { Family family(); }
namespace lfm2 { Family family(); }
namespace lfm2_moe { Family family(); }
namespace llama { Family family(); }
namespace llama4_text { Family family(); }
namespace longcat_flash { Family family(); }
namespace mamba { Family family(); }
namespace mamba2 { Family family(); }
namespace mimo_v2_flash { Family family(); }
namespace minimax { Family family(); }
namespace minimax_m2 { Family family(); }
namespace ministral { Family family(); }
namespace ministral3 { Family family(); }
namespace mistral { Family family(); }
namespace mixtral { Family family(); }
namespace modernbert { Family family(); }
namespace mpt { Family family(); }
namespace nemotron { Family family(); }
namespace nemotron_h { Family family(); }
namespace olmo { Family family(); }
namespace olmo2 { Family family(); }
namespace olmo3 { Family family(); }
namespace olmoe { Family family(); }
namespace openelm { Family family(); }
namespace opt { Family family(); }
namespace persimmon { Family family(); }
namespace phi { Family family(); }
namespace phi3 { Family family(); }
namespace phimoe { Family family(); }
namespace qwen2 { Family family(); }
namespace qwen2_moe { Family family(); }
namespace qwen3 { Family family(); }
namespace qwen3_5_moe_text { Family family(); }
namespace qwen3_5_text { Family family(); }
namespace qwen3_moe { Family family(); }
namespace qwen3_next { Family family(); }
namespace roberta { Family family(); }
namespace rwkv { Family family(); }
namespace seed_oss { Family family(); }
namespace smollm3 { Family family(); }
namespace solar_open { Family family(); }
namespace stablelm { Family family(); }
namespace starcoder2 { Family family(); }
namespace vaultgemma { Family family(); }
namespace xerxes { Family family(); }
namespace xlm_roberta { Family family(); }
namespace xlstm { Family family(); }
namespace zamba2 { Family family(); }
}  // namespace zoo
// clang-format on

namespace {
std::vector<Family>& all_families() {
  static const std::array built = {
      zoo::apertus::family(),
      zoo::arcee::family(),
      zoo::arctic::family(),
      zoo::bamba::family(),
      zoo::bert::family(),
      zoo::bitnet::family(),
      zoo::bloom::family(),
      zoo::camembert::family(),
      zoo::cohere::family(),
      zoo::cohere2::family(),
      zoo::cwm::family(),
      zoo::dbrx::family(),
      zoo::deepseek_v2::family(),
      zoo::deepseek_v3::family(),
      zoo::deepseek_v32::family(),
      zoo::dots1::family(),
      zoo::ernie4_5::family(),
      zoo::ernie4_5_moe::family(),
      zoo::exaone::family(),
      zoo::exaone4::family(),
      zoo::exaone_moe::family(),
      zoo::falcon::family(),
      zoo::falcon_h1::family(),
      zoo::falcon_mamba::family(),
      zoo::flex_olmo::family(),
      zoo::gemma::family(),
      zoo::gemma2::family(),
      zoo::gemma3_text::family(),
      zoo::gemma3n_text::family(),
      zoo::gemma4_text::family(),
      zoo::glm::family(),
      zoo::glm4::family(),
      zoo::glm4_moe::family(),
      zoo::glm4_moe_lite::family(),
      zoo::glm_moe_dsa::family(),
      zoo::gpt2::family(),
      zoo::gpt_bigcode::family(),
      zoo::gpt_neo::family(),
      zoo::gpt_neox::family(),
      zoo::gpt_oss::family(),
      zoo::gptj::family(),
      zoo::granite::family(),
      zoo::granitemoe::family(),
      zoo::granitemoehybrid::family(),
      zoo::granitemoeshared::family(),
      zoo::grok_1::family(),
      zoo::helium::family(),
      zoo::hunyuan_v1_dense::family(),
      zoo::hunyuan_v1_moe::family(),
      zoo::hyperclovax::family(),
      zoo::internlm2::family(),
      zoo::internlm3::family(),
      zoo::iquestcoder::family(),
      zoo::jais2::family(),
      zoo::jamba::family(),
      zoo::jetmoe::family(),
      zoo::kimi_linear::family(),
      zoo::lfm2::family(),
      zoo::lfm2_moe::family(),
      zoo::llama::family(),
      zoo::llama4_text::family(),
      zoo::longcat_flash::family(),
      zoo::mamba::family(),
      zoo::mamba2::family(),
      zoo::mimo_v2_flash::family(),
      zoo::minimax::family(),
      zoo::minimax_m2::family(),
      zoo::ministral::family(),
      zoo::ministral3::family(),
      zoo::mistral::family(),
      zoo::mixtral::family(),
      zoo::modernbert::family(),
      zoo::mpt::family(),
      zoo::nemotron::family(),
      zoo::nemotron_h::family(),
      zoo::olmo::family(),
      zoo::olmo2::family(),
      zoo::olmo3::family(),
      zoo::olmoe::family(),
      zoo::openelm::family(),
      zoo::opt::family(),
      zoo::persimmon::family(),
      zoo::phi::family(),
      zoo::phi3::family(),
      zoo::phimoe::family(),
      zoo::qwen2::family(),
      zoo::qwen2_moe::family(),
      zoo::qwen3::family(),
      zoo::qwen3_5_moe_text::family(),
      zoo::qwen3_5_text::family(),
      zoo::qwen3_moe::family(),
      zoo::qwen3_next::family(),
      zoo::roberta::family(),
      zoo::rwkv::family(),
      zoo::seed_oss::family(),
      zoo::smollm3::family(),
      zoo::solar_open::family(),
      zoo::stablelm::family(),
      zoo::starcoder2::family(),
      zoo::vaultgemma::family(),
      zoo::xerxes::family(),
      zoo::xlm_roberta::family(),
      zoo::xlstm::family(),
      zoo::zamba2::family(),
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
