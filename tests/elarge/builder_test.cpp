#include "easydel/elarge/builder.h"

#include <gtest/gtest.h>

#include "easydel/elarge/merge.h"
#include "easydel/elarge/push.h"
#include "support/data.h"

namespace easydel::elarge {
namespace {

Builder guide() {
  return Builder::from_pretrained("org/model")
      .set_dtype("bf16", "bf16")
      .set_sharding({{"axis_dims", {1, -1, 1, 1, 1}}})
      .set_operation_configs({{"attn_mechanism", "flash"}})
      .set_esurge({{"max_model_len", 4096}, {"enable_prefix_caching", true}})
      .set_mixture({{"pack_tokens", true}})
      .add_dataset("train.json", {{"max_length", 2048}})
      .set_eval({{"max_new_tokens", 512}, {"temperature", 0.0}})
      .set_trainer("sft", {{"learning_rate", 2e-5}, {"total_batch_size", 32}});
}

TEST(Builder, TheGuidesCallsMakeAConfigurationThatIsValid) {
  const Config config = guide().config();
  EXPECT_EQ(config.model.name_or_path, "org/model");
  EXPECT_EQ(config.sharding.axis_dims, (std::vector<int64_t>{1, -1, 1, 1, 1}));
  EXPECT_EQ(config.base_config.values.attn_mechanism, AttentionMechanism::flash_attn2);
  EXPECT_EQ(config.esurge.max_model_len, 4096);
  EXPECT_EQ(config.mixture.tokenization.max_length, 2048);
  ASSERT_EQ(config.mixture.informs.size(), 1u);
  EXPECT_EQ(config.mixture.informs[0].split, "train");
  EXPECT_EQ(config.trainer.common.learning_rate, 2e-5);
}

TEST(Builder, WhatIsWrittenReadsBack) {
  const test::TemporaryFolder folder;
  const Builder built = guide();
  built.to_yaml(folder / "a.yaml");
  built.to_json(folder / "a.json");
  EXPECT_TRUE(Builder::from_yaml(folder / "a.yaml").to_dict() == built.to_dict());
  EXPECT_TRUE(Builder::from_json(folder / "a.json").to_dict() == built.to_dict());
}

TEST(Builder, ACallChangesNoOtherConfiguration) {
  Builder first = guide(), second = first;
  second.set_dtype("fp32");
  second.add_dataset("more.json");
  EXPECT_EQ(first.config().loader.dtype, DTypeSetting::bf16);
  EXPECT_EQ(first.config().mixture.informs.size(), 1u);
  EXPECT_EQ(Builder().to_dict().find("loader")->find("dtype")->scalar, "bf16");
}

TEST(Builder, ShowsDefaultsUnderTheNameThatWasGiven) {
  const Value shown = Builder(parse_yaml("model: {name_or_path: x}\nquantization: {block_size: 64}\n")).to_dict();
  EXPECT_EQ(shown.find("quantization")->find("block_size")->scalar, "64");
  EXPECT_EQ(shown.find("quantization")->find("group_size"), nullptr);
  EXPECT_EQ(shown.find("quantization")->find("linear_group_size")->scalar, "64");
}

TEST(Builder, ServesAsLongSequencesAsTablesAreMadeFor) {
  Builder built = Builder::from_pretrained("x");
  built.update_config(
      {{"base_config", Arguments{{"values", Arguments{{"freq_max_position_embeddings", 256}}.map()}}.map()}});
  EXPECT_EQ(built.get_esurge_kwargs().find("max_model_len")->scalar, "256");
  EXPECT_EQ(built.get_base_config().find("mask_max_position_embeddings")->scalar, "256");
}

TEST(Builder, ALengthOfZeroServesAsIfItWereNotGiven) {
  const Builder built = Builder(parse_yaml("model: {name_or_path: x}\nesurge: {max_model_len: 0}\n"));
  EXPECT_EQ(built.get_esurge_kwargs().find("max_model_len")->scalar, "8192");
}

TEST(Builder, NamesNoModelOfATextInTheSectionsPlace) {
  const Builder built = Builder(parse_yaml("model: {name_or_path: x}\nreference_model: abc\n"));
  EXPECT_EQ(test::refusal([&] { (void)built.reference_model_name(); }),
            "reference_model: \"abc\" is not a section\n    write reference_model: {name_or_path: ...}");
}

TEST(Builder, BaseConfigPrefersWhatItIsTold) {
  Builder built = Builder::from_pretrained("x").set_dtype("bf16");
  built.update_config({{"base_config", Arguments{{"values", Arguments{{"attn_dtype", "fp32"}}.map()}}.map()}});
  EXPECT_EQ(built.get_base_config(Prefer::base).find("attn_dtype")->scalar, "float32");
  EXPECT_EQ(built.get_base_config(Prefer::sections).find("attn_dtype")->scalar, "bfloat16");
  EXPECT_EQ(built.get_base_config().find("attn_softmax_dtype")->scalar, "float32");
}

TEST(Builder, TaskComesFromTheModelsFiles) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "config.json",
                   R"({"architectures": ["T5ForConditionalGeneration"], "is_encoder_decoder": true})");
  EXPECT_EQ(Builder::from_pretrained(folder.path().string()).task(), "sequence-to-sequence");
  EXPECT_EQ(Builder::from_pretrained(folder.path().string(), "causal-lm").task(), "causal-language-model");
  EXPECT_EQ(Builder::from_pretrained("nowhere").task(), "causal-language-model");
  EXPECT_EQ(Builder::from_pretrained("nowhere").text(),
            "eLargeModel(model='nowhere', task=causal-language-model, dtype='bf16')");
}

TEST(Builder, RefusesOtherDocuments) {
  EXPECT_EQ(test::refusal([] { Builder(parse_yaml("[1]")); }),
            "config: a list is not a configuration\n    expected keys, at least 'model:'");
  EXPECT_EQ(test::refusal([] { Builder(parse_yaml("loader: {dtype: bf16}")); }),
            "config: names no model\n    give model.name_or_path: a folder or a name on the Hugging Face Hub");
  EXPECT_EQ(test::refusal([] {
              Builder::from_pretrained("x").set_esurge({{"max_modl_len", 5}}).validate();
            }),
            "config: esurge.max_modl_len: no such key\n    did you mean 'max_model_len'?\n1 problem in config; nothing "
            "was run.");
}

TEST(Builder, TakesAMappingAsArgumentsAndNothingElse) {
  const Builder built = Builder::from_pretrained("x").set_esurge(parse_yaml("{max_model_len: 5}"));
  EXPECT_EQ(built.get_esurge_kwargs().find("max_model_len")->scalar, "5");
  EXPECT_EQ(test::refusal([] { Builder::from_pretrained("x").set_esurge(parse_yaml("[5]")); }),
            "arguments: a list is not a mapping\n    give keys and their values");
}

TEST(Builder, BuildsNothingWhereThereIsNoSection) {
  Builder built = Builder::from_pretrained("nowhere");
  EXPECT_EQ(built.build_teacher_model(), nullptr);
  EXPECT_EQ(built.build_reference_model(), nullptr);
  EXPECT_EQ(built.build_reward_model(), nullptr);
  EXPECT_EQ(built.build_dataset(), nullptr);
  EXPECT_EQ(built.set_trainer("dpo", {{"beta", 0.2}}).build_training_arguments().common.trainer_type, "dpo");
}

TEST(Builder, ChecksTheKeysOfAnEvaluationBeforeItBegins) {
  Builder built = Builder::from_pretrained("x");
  built.set_eval({{"limit", 3}});
  EXPECT_EQ(test::refusal([&] {
              built.eval({{"tasks", {"copa"}}, {"samples", Value::map()}});
            }),
            "eval: eval.samples: limit and samples cannot be given together\n    give one of them\n1 problem in eval; "
            "nothing was "
            "run.");
}

TEST(Push, FollowsFromTheActionOrTheTrainer) {
  PushConfig action;
  action.repo_id = "owner/name";
  action.is_private = action.create_pr = true;
  action.commit_message = "trained";
  const hub::PushOptions options = push_options(action);
  EXPECT_EQ(options.repository, "owner/name");
  EXPECT_TRUE(options.is_private && options.pull_request);
  EXPECT_EQ(options.message, "trained");
  train::TrainerConfig trainer;
  trainer.hub_model_id = "a/b";
  trainer.hub_revision = "dev";
  EXPECT_EQ(push_options(trainer).repository + "@" + push_options(trainer).revision, "a/b@dev");
  EXPECT_EQ(pushed_text("a/b", {.commit = "c", .url = "http://hub/c", .sent = {"x"}, .unchanged = 2}),
            "sent 1 file to a/b (2 unchanged): http://hub/c\n");
  EXPECT_EQ(pushed_text("a/b", {.commit = "", .url = "", .sent = {}, .unchanged = 3}), "a/b is already up to date\n");
}

TEST(Merge, LaysOneDocumentOverAnother) {
  EXPECT_EQ(to_json(deep_merge(parse_json(R"({"a": {"b": 1, "c": 2}, "d": [1]})"),
                               parse_json(R"({"a": {"b": null}, "d": [2, 3]})"))),
            R"({"a": {"b": null, "c": 2}, "d": [2, 3]})");
  EXPECT_EQ(to_json(without_nulls(parse_json(R"({"a": null, "b": {"c": null}, "d": [null, {"e": null}]})"))),
            R"({"b": {}, "d": [null, {}]})");
}

TEST(Merge, NumberTypesHaveManyWordsAndNoUnknownOnes) {
  for (const auto& [word, type] :
       {std::pair{"f16", "float16"}, {"torch.bfloat16", "bfloat16"}, {"BF16", "bfloat16"}, {"mxfp4", "float4_e2m1fn"}})
    EXPECT_EQ(number_type(word, "dtype"), type) << word;
  EXPECT_EQ(test::refusal([] { number_type("bf17", "loader.dtype"); }),
            "loader.dtype: 'bf17' is not a dtype\n    did you mean 'bf16'?");
}

}  // namespace
}  // namespace easydel::elarge
