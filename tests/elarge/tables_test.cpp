// The field tables against the tables recorded of EasyDeL: every key there is a key here.
#include <gtest/gtest.h>

#include <algorithm>

#include <map>
#include <set>

#include "easydel/base/names.h"
#include "easydel/elarge/elarge.h"
#include "easydel/elarge/merge.h"
#include "support/data.h"

namespace easydel::elarge {
namespace {

std::optional<Value> table(const std::string& name, const char* tag) {
  const auto path = test::shared_data("easydel_vectors/table_" + name + "." + tag + ".json");
  return path ? std::optional(*parse_file(*path).find("data")) : std::nullopt;
}

const config::Section* section_of_class(const std::string& name) {
  static const std::map<std::string, std::string> places{{"ModelCfg", "model"},
                                                         {"LoaderCfg", "loader"},
                                                         {"ShardingCfg", "sharding"},
                                                         {"PlatformCfg", "platform"},
                                                         {"QuantizationCfg", "quantization"},
                                                         {"EasyDeLQuantizationCfg", "quantization.model"},
                                                         {"BaseCfg", "base_config"},
                                                         {"eSurgeCfg", "esurge"},
                                                         {"TextDatasetInformCfg", "mixture.informs"},
                                                         {"VisualDatasetInformCfg", "mixture.informs"},
                                                         {"TokenizationCfg", "mixture.tokenization"},
                                                         {"DatasetSaveCfg", "mixture.save"},
                                                         {"DatasetMixtureCfg", "mixture"},
                                                         {"DataMixtureCfg", "mixture"},
                                                         {"EvalKwargs", "eval"},
                                                         {"LossConfig", "trainer.loss_config"},
                                                         {"BaseTrainerCfg", "trainer"}};
  if (name == "ELMConfig" || name == "eLMConfig") return &config::section_of<Config>();
  if (const auto place = places.find(name); place != places.end())
    return config::find_key(config::section_of<Config>(), place->second)->section();
  return nullptr;
}

TEST(Tables, EveryKeyOfEasyDelsSectionsIsAKeyHere) {
  size_t keys = 0;
  for (const char* tag : {"v0201", "v0300"}) {
    const auto sections = table("elarge_sections", tag);
    if (!sections) GTEST_SKIP() << "no shared data";
    for (const auto& [name, rows] : sections->entries) {
      const config::Section* const section = section_of_class(name);
      if (!section) continue;
      for (const Value& row : rows.items) {
        EXPECT_NE(config::find_key(*section, row.find("key")->scalar), nullptr)
            << name << "." << row.find("key")->scalar;
        ++keys;
      }
    }
  }
  EXPECT_GT(keys, 500u);
}

// "DPOConfig" -> dpo, "OnPolicyDistillationConfig" -> on_policy_distillation.
std::string method_of(const std::string& name) {
  static const std::map<std::string, std::string> odd{{"NashMDConfig", "nash_md"},
                                                      {"SeqKDConfig", "seq_kd"},
                                                      {"AgenticMoshPitConfig", "agentic_moshpit"},
                                                      {"OnPolicyDistillationConfig", "on_policy_distillation"},
                                                      {"SparseDistillationConfig", "sparse_distillation"}};
  if (const auto found = odd.find(name); found != odd.end()) return found->second;
  return canonical(name.substr(0, name.size() - std::string("Config").size()));
}

TEST(Tables, EveryArgumentOfEasyDelsTrainersIsAKeyHere) {
  // Private to the Python objects.
  const std::set<std::string> theirs{"_can_log_metrics", "_im_a_hidden_checkpoint_manager"};
  const config::Section& trainer = config::section_of<train::TrainerSection>();
  for (const char* tag : {"v0201", "v0300"}) {
    const auto classes = table("trainer_arguments", tag);
    if (!classes) GTEST_SKIP() << "no shared data";
    for (const auto& [name, rows] : classes->entries)
      for (const Value& row : rows.items) {
        const std::string key = row.find("name")->scalar;
        const config::Section* section = &trainer;
        for (const config::Variant& variant : trainer.variants)
          if (name != "TrainingArguments" && variant.name == method_of(name) && config::find_key(*variant.section, key))
            section = variant.section;
        if (!theirs.contains(key)) {
          EXPECT_NE(config::find_key(*section, key), nullptr) << name << "." << key;
        }
      }
  }
}

TEST(Tables, EveryMethodOfEasyDelIsAMethodHereWithItsDefaults) {
  // On purpose; docs/differences.md gives the reasons.
  const std::set<std::string> other{"trainer_prefix",        "add_special_tokens",
                                    "label_smoothing",       "max_prompt_length",
                                    "ref_model_mixup_alpha", "ref_model_sync_steps",
                                    "num_return_sequences",  "remove_unused_columns",
                                    "entropy_coef",          "kl_coef"};
  const auto defaults = table("elarge_trainer_defaults", "v0201");
  if (!defaults) GTEST_SKIP() << "no shared data";
  const config::Section& trainer = config::section_of<train::TrainerSection>();
  for (const auto& [type, rows] : defaults->find("specific")->entries) {
    const auto variant = std::ranges::find(trainer.variants, canonical(type), &config::Variant::name);
    ASSERT_NE(variant, trainer.variants.end()) << type;
    for (const auto& [key, value] : rows.entries) {
      if (other.contains(key)) continue;
      const config::Key* own = config::find_key(*variant->section, key);
      if (!own) own = config::find_key(trainer, key);
      ASSERT_NE(own, nullptr) << type << "." << key;
      const auto number = value.as_double(), ours = own->default_value.as_double();
      EXPECT_TRUE(own->default_value == value || (number && ours && *number == *ours))
          << type << "." << key << ": " << to_json(own->default_value) << ", there " << to_json(value);
    }
  }
}

}  // namespace
}  // namespace easydel::elarge
