// Each source of data, nn and train has a test of its name, or this page says which test holds it.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "architecture/source.h"

namespace easydel::test {
namespace {

// Sources without a test of their name: which test file covers them, and why there.
const std::map<std::string, std::string>& covered_elsewhere() {
  static const std::map<std::string, std::string> all{
      // Adapters and codes are seen on whole models.
      {"nn/adapted_weight.cpp", "models/adapter_test.cpp"},
      {"nn/adapter_slots.cpp", "models/adapters_test.cpp"},
      {"nn/quantization.cpp", "models/quantization_test.cpp"},
      // Parts of one class or one path, of which the test needs all.
      {"nn/cache.cpp", "nn/memory_test.cpp"},
      {"nn/page_layout.cpp", "nn/memory_test.cpp"},
      {"nn/page_pool.cpp", "nn/memory_test.cpp"},
      {"nn/pass_rows.cpp", "nn/pass_test.cpp"},
      {"nn/indexer.cpp", "nn/mla_test.cpp"},
      {"nn/region.cpp", "nn/gather_test.cpp"},
      // What a kind of file reads is one test for all text files, one for all files of columns.
      {"data/source_arrow.cpp", "data/columnar_test.cpp"},
      {"data/source_csv.cpp", "data/delimited_test.cpp"},
      {"data/source_json.cpp", "data/rows_test.cpp"},
      {"data/source_jsonl.cpp", "data/rows_test.cpp"},
      {"data/source_parquet.cpp", "data/columnar_test.cpp"},
      {"data/source_tsv.cpp", "data/delimited_test.cpp"},
      {"data/source_txt.cpp", "data/rows_test.cpp"},
      // Rows that are read without a dataset are read in these.
      {"data/inform_reader.cpp", "data/check_rows_test.cpp"},
      {"data/example_block.cpp", "data/example_blocks_test.cpp"},
      // What a token store is made of.
      {"data/file_digests.cpp", "data/token_store_test.cpp"},
      {"data/inform_examples.cpp", "data/token_store_test.cpp"},
      {"data/token_shard.cpp", "data/token_store_test.cpp"},
      {"train/row_notes.cpp", "train/row_mistakes_test.cpp"},
      // Formats are small, and one test compares them.
      {"data/format_alpaca.cpp", "data/row_formats_test.cpp"},
      {"data/format_dolly.cpp", "data/row_formats_test.cpp"},
      {"data/format_hh.cpp", "data/row_formats_test.cpp"},
      {"data/format_kto.cpp", "data/row_formats_test.cpp"},
      {"data/format_openai.cpp", "data/row_formats_test.cpp"},
      {"data/format_segments.cpp", "data/row_formats_test.cpp"},
      {"data/format_sharegpt.cpp", "data/row_formats_test.cpp"},
      // Archives are what these read.
      {"data/archive.cpp", "data/source_webdataset_test.cpp"},
      // Tables of keys hold no code; the keys are read in these.
      {"data/tables.cpp", "data/mixture_config_test.cpp"},
      {"train/dpo_config.cpp", "train/method_configs_test.cpp"},
      {"train/method_tables.cpp", "train/method_configs_test.cpp"},
      {"train/tables.cpp", "train/trainer_config_test.cpp"},
      {"data/row_fields.cpp", "data/rows_test.cpp"},
      {"data/row_kind_names.cpp", "data/row_kinds_test.cpp"},
      // Methods: rows against TRL's, whole runs against TRL's recorded ones, runs on ranks and after a kill.
      {"train/bco.cpp", "train/answer_methods_test.cpp"},
      {"train/cpo.cpp", "probe/replay_core_test.cpp"},
      {"train/kto.cpp", "train/answer_methods_test.cpp"},
      {"train/kto_config.cpp", "train/method_configs_test.cpp"},
      {"train/marked_answers.cpp", "train/prepared_answers_test.cpp"},
      {"train/orpo.cpp", "probe/replay_core_test.cpp"},
      {"train/pairs.cpp", "train/prepared_answers_test.cpp"},
      {"train/prm.cpp", "train/prepared_answers_test.cpp"},
      {"train/reference.cpp", "train/answer_methods_test.cpp"},
      {"train/reward.cpp", "train/answer_methods_test.cpp"},
      {"train/separate_answers.cpp", "train/prepared_answers_test.cpp"},
      {"train/tpo.cpp", "probe/replay_core_test.cpp"},
      {"train/dpo.cpp", "probe/replay_core_test.cpp"},
      {"train/sft.cpp", "train/prepare_test.cpp"},
      {"train/methods.cpp", "train/registered_method_test.cpp"},
      {"train/language_rows.cpp", "train/prepare_test.cpp"},
      // The distilling methods: their common loss, their samples, whole runs.
      {"train/completion_source.cpp", "train/teaching_test.cpp"},
      {"train/distillation.cpp", "train/teaching_test.cpp"},
      {"train/distillation_config.cpp", "train/teaching_test.cpp"},
      {"train/gkd.cpp", "train/teaching_test.cpp"},
      {"train/on_policy_distillation.cpp", "train/teaching_test.cpp"},
      {"train/seq_kd.cpp", "train/teaching_test.cpp"},
      {"train/sparse_distillation.cpp", "train/teaching_test.cpp"},
      // One class follows the other.
      {"train/plateau.cpp", "train/best_model_test.cpp"},
      {"train/schedule_config.cpp", "train/transformation_test.cpp"},
      {"train/advantages.cpp", "probe/replay_core_test.cpp"},
      {"train/grpo.cpp", "probe/replay_core_test.cpp"},
      {"train/policy_loss.cpp", "probe/replay_core_test.cpp"},
      {"train/rloo.cpp", "probe/replay_core_test.cpp"},
      {"train/group_rollouts.cpp", "train/group_policy_test.cpp"},
      {"train/gspo.cpp", "train/group_policy_test.cpp"},
      {"train/rollout_source.cpp", "train/group_policy_test.cpp"},
      {"train/sampling_method.cpp", "train/group_policy_test.cpp"},
      {"train/model_reward.cpp", "train/model_rewards_test.cpp"},
      {"train/reward_http.cpp", "train/model_rewards_test.cpp"},
      {"train/rlvr.cpp", "train/gfpo_test.cpp"},
      {"train/ppo_terms.cpp", "probe/recorded_vectors_test.cpp"},
      {"train/value_head.cpp", "train/ppo_test.cpp"},
      // What answers a model in an episode, up to whole runs.
      {"train/environment.cpp", "train/agentic_moshpit_test.cpp"},
      {"train/environment_config.cpp", "train/agentic_moshpit_test.cpp"},
      {"train/episode_advantages.cpp", "train/agentic_moshpit_test.cpp"},
      {"train/model_tools.cpp", "train/episodes_test.cpp"},
      {"train/shared_environment.cpp", "train/agentic_moshpit_test.cpp"},
      {"train/turn_template.cpp", "train/episodes_test.cpp"},
      // Adapters against PEFT's, and training over codes against the model that is quantized afterwards.
      {"nn/adapted_rows.cpp", "models/adapter_parts_test.cpp"},
      {"nn/adapted_stack.cpp", "models/adapter_parts_test.cpp"},
      {"nn/quantized_training.cpp", "train/quantized_training_test.cpp"},
      // What methods find wrong with rows.
      {"data/row_mistakes.cpp", "train/row_mistakes_test.cpp"},
      // A model's own task, by what follows its stack.
      {"train/answer_learning.cpp", "train/own_task_test.cpp"},
      {"train/base.cpp", "train/own_task_test.cpp"},
      {"train/class_learning.cpp", "train/own_task_test.cpp"},
      {"train/encoded_texts.cpp", "train/own_task_test.cpp"},
      {"train/masked_learning.cpp", "train/own_task_test.cpp"},
      // Completions and their opponents.
      {"train/nash_md.cpp", "train/online_pairs_test.cpp"},
      {"train/online_dpo.cpp", "train/online_pairs_test.cpp"},
      {"train/online_losses.cpp", "train/online_pairs_test.cpp"},
      {"train/xpo.cpp", "train/online_pairs_test.cpp"},
      {"train/line_programs.cpp", "train/rewards_test.cpp"},
      {"train/reward_program.cpp", "train/rewards_test.cpp"},
      {"train/rewards_config.cpp", "train/rewards_test.cpp"},
      {"train/rloo_config.cpp", "train/method_configs_test.cpp"},
      // Parts of one class, of which each test needs all.
      {"train/trainer_run.cpp", "train/trainer_test.cpp"},
      {"train/trainer_setup.cpp", "train/trainer_test.cpp"},
      {"train/trainer_resume.cpp", "train/resume_test.cpp"},
      {"train/resume_changes.cpp", "train/resume_test.cpp"},
      // What several ranks do together needs several ranks; what routers do, a mixture of experts that trains.
      {"train/ranks.cpp", "train/parallel_test.cpp"},
      {"train/router_watch.cpp", "train/trainer_test.cpp"},
      // Updates against torch's and the authors' recorded ones, and their checkpoints.
      {"train/update_rules.cpp", "probe/recorded_vectors_test.cpp"},
      {"train/update_rules_averaged.cpp", "probe/recorded_vectors_test.cpp"},
      {"train/update_rules_kron.cpp", "probe/recorded_vectors_test.cpp"},
      {"train/update_rules_soap.cpp", "probe/recorded_vectors_test.cpp"},
      {"train/update_rules_torch.cpp", "probe/recorded_vectors_test.cpp"},
  };
  return all;
}

TEST(Tests, MirrorTheSourcesOfDataNnAndTrain) {
  std::set<std::string> tests, needed;
  for (const SourceFile& file : source_files("tests", {"_test.cpp"})) tests.insert(file.path.substr(6));
  for (const char* layer : {"data", "nn", "train"})
    for (const SourceFile& file : source_files(std::string("src/easydel/") + layer, {".cpp"})) {
      const std::string source = file.path.substr(12), stem = source.substr(0, source.size() - 4);
      if (tests.contains(stem + "_test.cpp")) continue;
      const auto elsewhere = covered_elsewhere().find(source);
      needed.insert(source);
      if (elsewhere == covered_elsewhere().end())
        ADD_FAILURE() << file.path << " has no tests/" << stem << "_test.cpp";
      else
        EXPECT_TRUE(tests.contains(elsewhere->second)) << source << ": there is no tests/" << elsewhere->second;
    }
  for (const auto& [source, test] : covered_elsewhere())
    EXPECT_TRUE(needed.contains(source)) << source << " has a test of its name, or is gone: take its line out";
}

}  // namespace
}  // namespace easydel::test
