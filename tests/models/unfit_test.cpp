// Errors about tensors that do not fit: the nearest name, and the keys that determine a size.
#include "easydel/models/unfit.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "easydel/models/model.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::models {
namespace {

const char* const kLlama = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 48,
  "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 6, "num_key_value_heads": 2, "vocab_size": 96,
  "max_position_embeddings": 64})";

TEST(NearestTensor, DiffersInOnePartOrByAPrefix) {
  const std::vector<std::string> known = {"model.layers.0.self_attn.qproj.weight",
                                          "model.layers.1.self_attn.q_prj.weight", "model.layers.0.self_attn.o.weight",
                                          "model.final_norm.weight", "base.lm_head.weight"};
  EXPECT_EQ(nearest_tensor("model.layers.0.self_attn.q_proj.weight", known), known[0]);
  EXPECT_EQ(nearest_tensor("model.norm.weight", known), known[3]);
  EXPECT_EQ(nearest_tensor("lm_head.weight", known), known[4]);
  EXPECT_EQ(nearest_tensor("model.layers.2.self_attn.k_proj.weight", known), "");
  EXPECT_EQ(nearest_tensor("score.weight", {"lm_head.weight"}), "");
}

// The refusal of a folder whose tensors were saved with one configuration and are read with another.
std::string refusal_of(const std::string& saved, const std::string& read) {
  const test::TemporaryFolder work;
  const auto folder = work / "model";
  test::write_file(folder / "config.json", saved);
  save_model(*load_model(folder, {}), folder);
  test::write_file(folder / "config.json", read);
  return test::replaced(test::refusal([&] { load_model(folder, {}); }), folder.string(), "M");
}

TEST(Unfit, TensorsAreSaidWithTheKeysThatDecideTheirSizes) {
  EXPECT_EQ(
      refusal_of(kLlama, test::replaced(kLlama, "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3")),
      "M: the weights do not fit config.json\n    wrong shape (2):\n      model.layers.0.self_attn.k_proj.weight: the "
      "file has [16, 48], config.json requires [24, 48] by hidden_size, num_attention_heads, num_key_value_heads\n     "
      " model.layers.0.self_attn.v_proj.weight: the file has [16, 48], config.json requires [24, 48] by hidden_size, "
      "num_attention_heads, num_key_value_heads");
  EXPECT_EQ(refusal_of(kLlama, test::replaced(kLlama, "\"vocab_size\": 96", "\"vocab_size\": 97")),
            "M: the weights do not fit config.json\n    wrong shape (2):\n      model.embed_tokens.weight: the file "
            "has [96, 48], config.json requires [97, 48] by vocab_size\n      lm_head.weight: the file has [96, 48], "
            "config.json requires [97, 48] by vocab_size");
  // More than the machine's memory: nothing is allocated for tensors that do not fit.
  EXPECT_EQ(
      refusal_of(kLlama, test::replaced(kLlama, "\"intermediate_size\": 64", "\"intermediate_size\": 2147483647")),
      "M: the weights do not fit config.json\n    wrong shape (3):\n      model.layers.0.mlp.gate_proj.weight: the "
      "file has [64, 48], config.json requires [2147483647, 48] by intermediate_size\n      "
      "model.layers.0.mlp.up_proj.weight: the file has [64, 48], config.json requires [2147483647, 48] by "
      "intermediate_size\n      model.layers.0.mlp.down_proj.weight: the file has [48, 64], config.json requires [48, "
      "2147483647] by intermediate_size");
}

TEST(Unfit, TensorsAreSaidWithTheNearestName) {
  const test::TemporaryFolder work;
  const auto folder = work / "model", odd = work / "odd";
  test::write_file(folder / "config.json", kLlama);
  save_model(*load_model(folder, {}), folder);
  test::write_file(odd / "config.json", kLlama);
  const auto file = weights::SafetensorsFile::open(folder / "model.safetensors");
  std::vector<weights::OutTensor> tensors;
  for (const std::string& name : file->names())
    tensors.push_back(
        tensor::to_file(test::replaced(name, "q_proj", "qproj"), tensor::from_view(file->at(name)), at::kFloat));
  weights::write_safetensors(odd / "model.safetensors", tensors);
  EXPECT_EQ(test::replaced(test::refusal([&] { load_model(odd, {}); }), odd.string(), "M"),
            "M: the weights do not fit config.json\n    missing (1):\n"
            "      model.layers.0.self_attn.q_proj.weight; the file has model.layers.0.self_attn.qproj.weight\n"
            "    not in the model (1):\n"
            "      model.layers.0.self_attn.qproj.weight; nearest is model.layers.0.self_attn.q_proj.weight");
}

// An expert's tensor is one of many that form a parameter: the error names only that one.
TEST(Unfit, OneExpertsTensorIsSaidByItself) {
  const test::TemporaryFolder work;
  const auto folder = work / "model", odd = work / "odd";
  const std::string config = R"({"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "hidden_size": 48,
    "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 6, "num_key_value_heads": 2,
    "vocab_size": 96, "num_local_experts": 4})";
  test::write_file(folder / "config.json", config);
  save_model(*load_model(folder, {}), folder);
  test::write_file(odd / "config.json", config);
  const auto file = weights::SafetensorsFile::open(folder / "model.safetensors");
  const std::string name = "model.layers.0.block_sparse_moe.experts.2.w1.weight";
  const auto refusal_with = [&](const Tensor& instead) {
    std::vector<weights::OutTensor> tensors;
    for (const std::string& other : file->names())
      if (other != name)
        tensors.push_back(tensor::to_file(other, tensor::from_view(file->at(other)), at::kFloat));
      else if (instead.defined())
        tensors.push_back(tensor::to_file(other, instead, at::kFloat));
    weights::write_safetensors(odd / "model.safetensors", tensors);
    return test::replaced(test::refusal([&] { load_model(odd, {}); }), odd.string(), "M");
  };
  EXPECT_EQ(refusal_with({}), "M: the weights do not fit config.json\n    missing (1):\n      " + name);
  EXPECT_EQ(refusal_with(at::zeros({65, 48})),
            "M: the weights do not fit config.json\n    wrong shape (1):\n      " + name +
                ": the file has [65, 48], config.json requires [64, 48] by intermediate_size");
}

// A folder like the first, except that q_proj has another dtype.
void save_with_type(const std::filesystem::path& from, const std::filesystem::path& to, at::ScalarType type) {
  test::write_file(to / "config.json", kLlama);
  const auto file = weights::SafetensorsFile::open(from / "model.safetensors");
  std::vector<weights::OutTensor> tensors;
  for (const std::string& name : file->names()) {
    const Tensor value = tensor::from_view(file->at(name));
    const bool other = name.find("q_proj") != std::string::npos;
    tensors.push_back(tensor::to_file(name, other ? value.to(type) : value, other ? type : at::kFloat));
  }
  weights::write_safetensors(to / "model.safetensors", tensors);
}

TEST(Unfit, EveryFloatingNumberIsAWeightAndNoIntegerIs) {
  const test::TemporaryFolder work;
  const auto folder = work / "model", odd = work / "odd";
  test::write_file(folder / "config.json", kLlama);
  save_model(*load_model(folder, {}), folder);
  const auto weight_of = [](const std::filesystem::path& model) {
    return load_model(model, {})->parameters().find("model.layers.0.self_attn.q_proj.weight")->shard;
  };
  const Tensor plain = weight_of(folder);
  for (const at::ScalarType type : {at::kDouble, at::kHalf, at::kBFloat16, at::kFloat8_e4m3fn, at::kFloat8_e5m2}) {
    save_with_type(folder, odd, type);
    EXPECT_TRUE(weight_of(odd).equal(plain.to(type).to(at::kFloat))) << c10::toString(type);
  }
  const std::vector<std::pair<at::ScalarType, std::string>> integers = {
      {at::kBool, "BOOL"},  {at::kByte, "U8"}, {at::kChar, "I8"},    {at::kShort, "I16"},
      {at::kUInt16, "U16"}, {at::kInt, "I32"}, {at::kUInt32, "U32"}, {at::kLong, "I64"}};
  for (const auto& [type, name] : integers) {
    save_with_type(folder, odd, type);
    EXPECT_EQ(test::replaced(test::refusal([&] { load_model(odd, {}); }), odd.string(), "M"),
              "M: the weights do not fit config.json\n"
              "    codes of a quantized model, or no weights; a weight is F64, F32, F16, BF16 or F8 (1):\n"
              "      model.layers.0.self_attn.q_proj.weight: " +
                  name);
  }
}

}  // namespace
}  // namespace easydel::models
