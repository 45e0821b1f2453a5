// Folders of models that also see or hear: configuration and tensors of their language model, and saving.
#include "easydel/models/parts_config.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "easydel/models/model.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::models {
namespace {

Value parsed(const std::string& text) { return parse_json(text, "test"); }

Value part(const std::string& text, PartRole role = PartRole::text) {
  return part_config(parsed(text), FilePlace{"config.json"}, role);
}

std::string said(const Value& config, const char* key) { return to_json(*config.find(key)); }

TEST(TextPart, OfALanguageModelIsAllOfIt) {
  for (const char* const config :
       {R"({"model_type": "llama"})", R"({"model_type": "gemma3_text", "text_config": {}})"}) {
    EXPECT_EQ(to_json(part(config)), to_json(parsed(config)));
    EXPECT_EQ(family_of_parts(parsed(config)), nullptr);
  }
}

TEST(TextPart, SaysWhatTheLanguageModelsOwnFileWouldSay) {
  const Value config =
      part(R"({"model_type": "mistral3", "architectures": ["Mistral3ForConditionalGeneration"], "dtype": "bfloat16",
    "eos_token_id": 2, "text_config": {"hidden_size": 64, "eos_token_id": 7}, "vision_config": {"hidden_size": 9}})");
  EXPECT_EQ(said(config, "model_type"), "\"mistral\"");
  EXPECT_EQ(said(config, "architectures"), "[\"MistralForCausalLM\"]");
  EXPECT_EQ(said(config, "hidden_size"), "64");
  EXPECT_EQ(said(config, "dtype"), "\"bfloat16\"");
  EXPECT_EQ(said(config, "eos_token_id"), "7");
  EXPECT_EQ(said(config, "tie_word_embeddings"), "true");  // the class's default
  EXPECT_FALSE(config.find("vision_config"));
}

TEST(TextPart, KeepsTheLanguageModelThatItNames) {
  EXPECT_EQ(said(part(R"({"model_type": "mistral3", "text_config": {"model_type": "ministral3"}})"), "architectures"),
            "[\"Ministral3ForCausalLM\"]");
}

TEST(TextPart, TiesAsTheClassOfTheWholeDoes) {
  const auto tied = [](const char* type, const char* keys, const char* text) {
    return said(part(str("{\"model_type\": \"", type, "\", ", keys, "\"text_config\": {", text, "}}")),
                "tie_word_embeddings");
  };
  EXPECT_EQ(tied("gemma3", "", ""), "true");
  EXPECT_EQ(tied("gemma3", "\"tie_word_embeddings\": false, ", "\"tie_word_embeddings\": true"), "false");
  EXPECT_EQ(tied("llava", "", ""), "false");
  EXPECT_EQ(tied("llava", "", "\"tie_word_embeddings\": true"), "true");
}

TEST(TextPart, LeavesTheHeadsScaleToTheClassOfTheWhole) {
  EXPECT_EQ(said(part(R"({"model_type": "aya_vision", "text_config": {"logit_scale": 0.25}})"), "logit_scale"), "1.0");
  EXPECT_EQ(said(part(R"({"model_type": "gemma4", "text_config": {"final_logit_softcapping": 30.0}})"),
                 "final_logit_softcapping"),
            "30.0");
}

TEST(TextPart, RefusesWhatHasNone) {
  const auto refused = [](const char* text) { return test::refusal([&] { part(text); }); };
  EXPECT_EQ(refused(R"({"model_type": "mistral3"})"),
            "config.json: text_config: is missing\n    it contains the language model's keys");
  EXPECT_EQ(refused(R"({"model_type": "llava", "text_config": 3})"),
            "config.json: text_config: 3 is not a mapping\n    it contains the language model's keys");
  EXPECT_EQ(refused(R"({"model_type": "gemma3", "architectures": ["Gemma3Vision"], "text_config": {}})"),
            "config.json: architectures: 'Gemma3Vision' is not built yet\n    only the text part of a multimodal model "
            "is built: ...ForConditionalGeneration");
}

TEST(VisionPart, IsWhatTheFamilySays) {
  const char* const config = R"({"model_type": "mistral3", "text_config": {}, "vision_config": {"hidden_size": 9}})";
  EXPECT_EQ(to_json(part(config, PartRole::vision)), to_json(parsed(R"({"hidden_size": 9, "model_type": "pixtral"})")));
  EXPECT_EQ(test::refusal([&] { part(config, PartRole::audio); }),
            "config.json: model_type: a model of this type has no audio part");
}

// Every tensor of a stored model with several parts belongs to exactly one of them: to its text, or to another part by
// its prefix.
TEST(Parts, SayWhoseEachTensorIs) {
  int models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::test_data("hf_goldens"))) {
    const FamilyConfig* const family = family_of_parts(parse_file(entry.path() / "config.json"));
    if (!family) continue;
    ++models;
    for (const std::string& name : weights::Folder::open(entry.path()).names()) {
      int owners = 0;
      for (const FamilyPart& part : family->parts) owners += !part_tensor_name(name, part, "model").empty();
      EXPECT_EQ(owners, 1) << family->model_type << ": " << name;
    }
  }
  EXPECT_GE(models, 5);
}

TEST(TextTensor, HasTheNameThatTheLanguageModelGivesIt) {
  const auto name = [](const char* of_file, const char* family = "gemma3") {
    const FamilyPart& text =
        *part_of(*family_of_parts(parsed(str("{\"model_type\": \"", family, "\"}"))), PartRole::text);
    return part_tensor_name(of_file, text, "model");
  };
  EXPECT_EQ(name("model.language_model.layers.0.mlp.up_proj.weight"), "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(name("language_model.model.layers.0.mlp.up_proj.weight"), "model.layers.0.mlp.up_proj.weight");
  EXPECT_EQ(name("model.text_model.norm.weight", "idefics3"), "model.norm.weight");
  EXPECT_EQ(name("language_model.lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(name("lm_head.weight"), "lm_head.weight");
  for (const char* other :
       {"model.vision_tower.layers.0.weight", "vision_tower.text_model.weight", "multi_modal_projector.linear_1.bias",
        "model.visual.blocks.0.attn.qkv.weight", "mtp.layers.0.weight"})
    EXPECT_EQ(name(other), "") << other;
}

std::vector<std::string> names_of(const std::filesystem::path& folder) {
  return weights::SafetensorsFile::open(folder / "model.safetensors")->names();
}

TEST(TextPart, IsSavedAsALanguageModelOnceItHasAnotherHead) {
  LoadOptions options;
  options.task = Task::sequence_classification;
  const test::TemporaryFolder work;
  save_model(*load_model(test::test_data("hf_goldens/random_mistral3_0"), options), work.path());
  const Value config = parse_file(work / "config.json");
  EXPECT_EQ(said(config, "model_type"), "\"mistral\"");
  EXPECT_EQ(said(config, "architectures"), "[\"MistralForSequenceClassification\"]");
  const auto names = names_of(work.path());
  EXPECT_EQ(names.front(), "model.embed_tokens.weight");
  EXPECT_EQ(names.back(), "score.weight");
}

TEST(SharingLayers, MayHaveKeysAndValuesInTheFileThatNobodyReads) {
  for (const char* const name : {"gemma3n_text", "gemma4_text"}) {
    const auto golden = test::test_data(str("hf_goldens/", name));
    const test::TemporaryFolder work;
    const Value config = parse_file(golden / "config.json");
    ASSERT_GT(*config.find("num_kv_shared_layers")->as_int(), 0);
    test::write_file(work / "config.json", to_json(config));
    const auto before = weights::SafetensorsFile::open(golden / "model.safetensors");
    std::vector<weights::OutTensor> tensors;
    for (const std::string& tensor : before->names())
      tensors.push_back(tensor::to_file(tensor, tensor::from_view(before->at(tensor)), at::kFloat));
    const std::string last =
        str("model.layers.", *config.find("num_hidden_layers")->as_int() - 1, ".self_attn.k_proj.weight");
    ASSERT_FALSE(before->has(last));
    tensors.push_back(tensor::to_file(last, at::zeros({2, 2}), at::kFloat));
    weights::write_safetensors(work / "model.safetensors", tensors);
    EXPECT_NO_THROW(load_model(work.path(), {})) << name;
  }
}

TEST(Ties, AreLeftWhereHeadAndEmbeddingDiffer) {
  const auto golden = test::test_data("hf_goldens/qwen2");
  const test::TemporaryFolder work;
  const auto before = weights::SafetensorsFile::open(golden / "model.safetensors");
  Value config = parse_file(golden / "config.json");
  config.set("tie_word_embeddings", Value::boolean(true));
  test::write_file(work / "config.json", to_json(config));
  std::vector<weights::OutTensor> tensors;
  for (const std::string& name : before->names())
    if (name != "lm_head.weight")
      tensors.push_back(tensor::to_file(name, tensor::from_view(before->at(name)), at::kFloat));
  const Tensor embedding = tensor::from_view(before->at("model.embed_tokens.weight"));
  const auto tied_with = [&](const Tensor& head) {
    std::vector<weights::OutTensor> all = tensors;
    all.push_back(tensor::to_file("lm_head.weight", head, at::kFloat));
    weights::write_safetensors(work / "model.safetensors", all);
    return said(load_model(work.path(), {})->config(), "tie_word_embeddings");
  };
  EXPECT_EQ(tied_with(embedding), "true");
  EXPECT_EQ(tied_with(embedding * 2), "false");
}

}  // namespace
}  // namespace easydel::models
