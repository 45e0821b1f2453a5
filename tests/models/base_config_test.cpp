#include "easydel/models/base_config.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "support/data.h"

namespace easydel::models {
namespace {

Value map(const char* json) { return parse_json(json); }

class Preset final : public BaseConfig {
 public:
  explicit Preset(const Value& given)
      : BaseConfig(map(R"({"blocksize_q": 77, "attn_mechanism": "sdpa", "hidden_size": 64})"), given) {}
  std::string model_type() const override { return "preset"; }
};

TEST(BaseConfig, KeepsWhatASubclassSetBefore) {
  const Preset config(map(R"({"blocksize_q": 5, "attn_mechanism": "ring", "foo": 1})"));
  EXPECT_EQ(config.at("blocksize_q").scalar, "77");
  EXPECT_EQ(config.at("attn_mechanism").scalar, "sdpa");
  EXPECT_EQ(config.at("foo").scalar, "1");
}

TEST(BaseConfig, FieldsFollowFromOthers) {
  const BaseConfig plain;
  EXPECT_EQ(plain.at("kvdtype").scalar, "bfloat16");
  EXPECT_EQ(plain.at("platform").scalar, "jax");
  EXPECT_EQ(plain.get_backend(), "cpu");
  EXPECT_EQ(BaseConfig(map(R"({"attn_dtype": "fp32"})")).at("kvdtype").scalar, "float32");
  EXPECT_EQ(BaseConfig(map(R"({"backend": "gpu"})")).at("platform").scalar, "triton");
  EXPECT_EQ(BaseConfig(map(R"({"backend": ""})")).get_backend(), "cpu");
  const BaseConfig axis(map(R"({"partition_axis": {"head_axis": "sp"}})"));
  EXPECT_EQ(axis.at("partition_axis").find("decode_head_axis")->scalar, "sp");
  EXPECT_EQ(BaseConfig(map(R"({"num_experts": 8})")).at("num_local_experts").scalar, "8");
}

TEST(BaseConfig, BasicConfigurationsOverwriteOnlyWhatIsGivenAlsoInside) {
  BaseConfig config(map(R"({"attn_dtype": "float16"})"));
  const auto inner = std::make_shared<BaseConfig>();
  config.add_sub_config("text_config", inner);
  config.add_basic_configurations(map(R"({"blocksize_q": 64, "foo": 3, "kvdtype": null})"));
  EXPECT_EQ(config.at("blocksize_q").scalar, "64");
  EXPECT_EQ(config.at("blocksize_k").scalar, "128");
  EXPECT_EQ(config.at("kvdtype").scalar, "float16");
  EXPECT_EQ(inner->at("blocksize_q").scalar, "64");
  EXPECT_EQ(inner->at("foo").scalar, "3");
  config.attach_custom_arguments(map(R"({"a": 1, "blocksize_q": 3})"));
  EXPECT_EQ(config.at("blocksize_q").scalar, "3");
}

TEST(BaseConfig, MeshIsCreatedOnceAndCanBeReplaced) {
  BaseConfig config(map(R"({"sharding_axis_dims": [2, -1, 1, 2, 1]})"));
  const auto inner = std::make_shared<BaseConfig>();
  config.add_sub_config("text_config", inner);
  const mesh::Mesh* const first = &config.mesh(8);
  EXPECT_EQ(first->describe(), "dp 2, fsdp 2, ep 1, tp 2, sp 1");
  EXPECT_EQ(&config.mesh(16), first);
  config.set_model_mesh(mesh::create_mesh({1, 4, 1, 1, 1}, mesh::default_axes(), 4));
  EXPECT_EQ(inner->mesh(1).describe(), "dp 1, fsdp 4, ep 1, tp 1, sp 1");
}

TEST(BaseConfig, SavesAndLoadsItselfWithCustomArguments) {
  const test::TemporaryFolder folder;
  BaseConfig config(map(R"({"model_type": "llama", "hidden_size": 8, "sharding_axis_dims": [1, 2, 1, 4, 1]})"));
  config.attach_custom_arguments(map(R"({"my_custom_param": "value", "another": [1, 2]})"));
  config.save_pretrained(folder / "m");
  const auto [again, unused] =
      BaseConfig::from_pretrained((folder / "m").string(), map(R"({"blocksize_q": 9, "zzz": 5})"));
  EXPECT_EQ(to_json(unused), R"({"zzz": 5})");
  EXPECT_EQ(again.at("blocksize_q").scalar, "9");
  EXPECT_EQ(to_json(again.at("another")), "[1, 2]");
  EXPECT_EQ(again.get_axis_dims(), (std::vector<int64_t>{1, 2, 1, 4, 1}));
  EXPECT_EQ(BaseConfig::from_pretrained((folder / "m/config.json").string()).first.model_type(), "llama");
  const Value differences = config.to_diff_dict();
  EXPECT_EQ(differences.find("is_decoder"), nullptr);
  EXPECT_NE(differences.find("scan_mlp_chunk_size"), nullptr);
}

TEST(BaseConfig, ErrorsSayThePlace) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "file", "x");
  test::write_file(folder / "bad/config.json", "{no");
  test::write_file(folder / "list/config.json", "[1]");
  std::filesystem::create_directories(folder / "empty");
  EXPECT_EQ(test::refusal([&] { BaseConfig().save_pretrained(folder / "file"); }),
            (folder / "file").string() + ": is a file, not a folder\n    give a folder for config.json");
  EXPECT_TRUE(test::refusal([&] {
                BaseConfig::from_pretrained((folder / "bad").string());
              }).starts_with((folder / "bad/config.json").string() + ": is not valid JSON: "));
  EXPECT_EQ(test::refusal([&] { BaseConfig::from_pretrained((folder / "list").string()); }),
            (folder / "list/config.json").string() +
                ": does not contain a configuration\n    a config.json is a JSON object");
  EXPECT_EQ(test::refusal([&] { BaseConfig::from_pretrained((folder / "empty").string()); }),
            "Can't load the configuration of '" + (folder / "empty").string() +
                "': it has no config.json\n    give a folder with a config.json");
  EXPECT_EQ(test::refusal([] { BaseConfig().get_partition_rules(); }),
            "get_partition_rules: is not given by this configuration\n    a family's configuration gives its rules");
  EXPECT_EQ(test::refusal([] { BaseConfig().granted_mask_max_position_embedding(); }),
            "mask_max_position_embeddings: is not given, nor is max_position_embeddings\n    give one of them");
}

TEST(BaseConfig, TransformersLoadsWhatIsWrittenAndKeepsWhatWasAttached) {
  const char* python = std::getenv("EASYDEL_TEST_PYTHON");
  if (!python || test::run({python, "-c", "import transformers"}).status != 0) GTEST_SKIP() << "no transformers";
  const test::TemporaryFolder folder;
  BaseConfig config(map(R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4})"));
  config.attach_custom_arguments(map(R"({"my_custom_param": "value"})"));
  config.save_pretrained(folder.path());
  const test::Ran ran = test::run({python, "-c",
                                   "import sys, transformers as t; c = t.AutoConfig.from_pretrained(sys.argv[1]); "
                                   "print(type(c).__name__, c.hidden_size, c.my_custom_param, c.scan_mlp_chunk_size); "
                                   "c.save_pretrained(sys.argv[1])",
                                   folder.path().string()});
  EXPECT_EQ(ran.out, "LlamaConfig 64 value 1024\n") << ran.err;
  const BaseConfig theirs = BaseConfig::from_pretrained(folder.path().string()).first;
  EXPECT_EQ(theirs.at("my_custom_param").scalar, "value");
  EXPECT_EQ(theirs.at("blocksize_q").scalar, "128");
}

TEST(CommitHash, IsReadFromAPathOfTheCache) {
  const std::string hash = "0123456789abcdef0123456789abcdef01234567";
  EXPECT_EQ(extract_commit_hash("x/snapshots/" + hash + "/config.json", std::nullopt), hash);
  EXPECT_EQ(extract_commit_hash("snapshots/" + hash + "/a", std::nullopt), hash);
  EXPECT_EQ(extract_commit_hash("snapshots/" + hash + "/", std::nullopt), std::nullopt);
  EXPECT_EQ(extract_commit_hash("snapshots/" + hash, std::nullopt), std::nullopt);
  EXPECT_EQ(extract_commit_hash("x/snapshots/abc/config.json", std::nullopt), std::nullopt);
  EXPECT_EQ(extract_commit_hash("x/snapshots/0123456789ABCDEF0123456789ABCDEF01234567/c.json", std::nullopt),
            std::nullopt);
  EXPECT_EQ(extract_commit_hash("x/snapshots/" + hash + "/c.json", "given"), "given");
  EXPECT_EQ(extract_commit_hash(std::nullopt, std::nullopt), std::nullopt);
}

TEST(BaseConfig, YesHasFiveWords) {
  for (const char* yes : {"true", "yes", "ok", "1", "easy", "TRUE"}) EXPECT_TRUE(is_yes(yes)) << yes;
  for (const char* no : {"0", "on", "", "false"}) EXPECT_FALSE(is_yes(no)) << no;
}

}  // namespace
}  // namespace easydel::models
