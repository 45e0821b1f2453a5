// Every public name of EasyDeL's documents has a row in docs/names.md.
#include <gtest/gtest.h>

#include "architecture/source.h"

namespace easydel::test {
namespace {

TEST(Names, OfTheDocumentsHaveARow) {
  const std::string page = read_file(source_root() / "docs/names.md");
  for (const char* name :
       {"eLargeModel", "from_yaml", "from_json", "set_dtype", "set_sharding", "set_quantization", "set_operation_configs", "set_esurge",
        "set_mixture", "add_dataset", "set_eval", "set_trainer", "build_model", "build_tokenizer", "build_esurge", "build_dataset",
        "build_trainer", "build_training_arguments", "build_teacher_model", "build_reference_model", "validate", "clear_cache",
        "EasyDeLBaseConfig", "EasyDeLBaseConfigDict", "EasyMethod", "add_basic_configurations", "attach_custom_arguments",
        "read_basics_from_config", "set_attrs_smartly", "create_mesh", "mesh", "jax_mesh", "set_model_mesh", "partition_manager",
        "get_axis_dims", "get_axis_names", "get_backend", "get_partition_rules", "granted_freq_max_position_embedding",
        "granted_mask_max_position_embedding", "save_pretrained", "to_dict", "to_diff_dict", "to_json_file", "extract_commit_hash",
        "return_unused_kwargs", "push_to_hub", "EasyDeLBaseModule", "EasyDeLState", "register_config", "register_module",
        "AutoEasyDeLModelForCausalLM.from_pretrained", "PartitionAxis", "PartitionManager", "AttnShardingRules", "OperationMetadata",
        "LossConfig", "GenerationConfig", "TrainingArguments"})
    EXPECT_NE(page.find("`" + std::string(name) + "`"), std::string::npos) << name;
}

}  // namespace
}  // namespace easydel::test
