// GGUF files as models: reading what was written, and errors.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "easydel/weights/folder.h"
#include "easydel/weights/gguf_checkpoint.h"
#include "easydel/weights/gguf_rope.h"
#include "easydel/weights/gguf_rows.h"
#include "easydel/weights/gguf_write.h"
#include "support/data.h"

namespace easydel::weights {
namespace {

using test::refusal;

// Llama's keys of one layer with 2 heads of 4 numbers; `change` may add or leave out.
struct Model {
  GgufWriter out;
  explicit Model(const std::string& architecture = "llama") {
    out.text("general.architecture", architecture);
    for (const auto& [key, value] : std::vector<std::pair<const char*, int64_t>>{{"context_length", 64},
                                                                                 {"embedding_length", 8},
                                                                                 {"block_count", 1},
                                                                                 {"feed_forward_length", 16},
                                                                                 {"attention.head_count", 2},
                                                                                 {"attention.head_count_kv", 1}})
      out.integer(architecture + "." + key, value);
    out.number(architecture + ".attention.layer_norm_rms_epsilon", 1e-5);
  }
  Model& tensor(const std::string& name, const std::vector<int64_t>& shape) {
    std::vector<float> values(
        static_cast<size_t>(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>())));
    std::iota(values.begin(), values.end(), 0.0f);
    out.tensor(name, GgmlType::f32, shape,
               [values](const GgufWriter::Sink& sink) { sink(values.data(), values.size() * sizeof(float)); });
    return *this;
  }
  std::string write() {
    out.write(folder / "m.gguf");
    return (folder / "m.gguf").string();
  }
  test::TemporaryFolder folder;
};

std::vector<float> floats(const TensorView& view) {
  std::vector<float> out(static_cast<size_t>(view.elements()));
  decode(ggml_type_of(view), view.bytes.data(), out.data(), view.elements());
  return out;
}

TEST(Gguf, IsReadUnderHuggingFacesNames) {
  Model model;
  const std::string file = model.tensor("token_embd.weight", {5, 8})
                               .tensor("output_norm.weight", {8})
                               .tensor("blk.0.ffn_gate.weight", {16, 8})
                               .write();
  const Folder folder = Folder::open(file);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"model.embed_tokens.weight",
                                                      "model.layers.0.mlp.gate_proj.weight", "model.norm.weight"}));
  EXPECT_EQ(folder.at("model.layers.0.mlp.gate_proj.weight").shape, (std::vector<int64_t>{16, 8}));
  EXPECT_EQ(folder.where("model.norm.weight"), file + ": model.norm.weight");
  const ConfigFile config = read_config(file);
  EXPECT_EQ(config.where.text(), file);
  EXPECT_EQ(
      to_json(config.document),
      R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false, "dtype": "float32", "head_dim": 4, "hidden_act": "silu", )"
      R"("hidden_size": 8, "intermediate_size": 16, "max_position_embeddings": 64, "mlp_bias": false, "model_type": "llama", )"
      R"("num_attention_heads": 2, "num_hidden_layers": 1, "num_key_value_heads": 1, "rms_norm_eps": 1e-05, )"
      R"("rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}, "tie_word_embeddings": true, "vocab_size": 5})");
}

TEST(Gguf, HasLlamasRowsTurnedAndOthersNot) {
  const std::vector<float> turned = {0, 2, 1, 3, 4, 6, 5, 7};  // order of the file's rows, 2 heads of 4
  for (const char* architecture : {"llama", "qwen2"}) {
    Model model(architecture);
    const Folder folder =
        Folder::open(model.tensor("token_embd.weight", {5, 8}).tensor("blk.0.attn_q.weight", {8, 1}).write());
    const std::vector<float> found = floats(folder.at("model.layers.0.self_attn.q_proj.weight"));
    for (size_t i = 0; i < 8; ++i)
      EXPECT_EQ(found[i], architecture == std::string("llama") ? turned[i] : static_cast<float>(i))
          << architecture << i;
  }
}

TEST(Gguf, TurnsRowsThereAndBack) {
  std::vector<float> values(48);
  std::iota(values.begin(), values.end(), 0.0f);
  const TensorView view{DType::f32, {24, 2}, std::as_bytes(std::span(values)), nullptr};
  EXPECT_EQ(floats(with_reordered_rows(with_reordered_rows(view, 3, false), 3, true)), values);
  EXPECT_NE(floats(with_reordered_rows(view, 3, false)), values);
  EXPECT_EQ(floats(with_reordered_rows(view, 5, false)), values);  // no such heads
  EXPECT_EQ(floats(with_reordered_rows(view, 0, false)), values);
}

TEST(Gguf, HasGemmasNormsWithoutTheirOne) {
  Model model("gemma");
  const Folder folder =
      Folder::open(model.tensor("token_embd.weight", {5, 8}).tensor("output_norm.weight", {3}).write());
  EXPECT_EQ(floats(folder.at("model.norm.weight")), (std::vector<float>{-1, 0, 1}));
}

TEST(Gguf, KnowsLlama3sFactorsAndKeepsOthers) {
  const auto parameters = [](std::vector<float> factors, int64_t original) {
    Value out = Value::map();
    out.set("rope_theta", Value::number(500000.0));
    set_rope_factors(out, factors, original);
    return to_json(out);
  };
  EXPECT_EQ(
      parameters(llama3_rope_factors(500000, 64, 8, 1, 4, 8192), 131072),
      R"({"rope_theta": 5e+05, "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, )"
      R"("original_max_position_embeddings": 8192})");
  EXPECT_EQ(
      parameters({1, 3, 2}, 99),
      R"({"rope_theta": 5e+05, "rope_type": "longrope", "factor": 1.0, "attention_factor": 1.0, )"
      R"("original_max_position_embeddings": 99, "short_factor": [1.0, 3.0, 2.0], "long_factor": [1.0, 3.0, 2.0]})");
}

TEST(Gguf, RefusesWhatItDoesNotKnow) {
  const auto refused = [](Model& model) {
    const std::string file = model.tensor("token_embd.weight", {5, 8}).write();
    return test::replaced(refusal([&] { GgufCheckpoint::open(file)->config(); }), file, "F");
  };
  constexpr const char* again = "\n    fetch the file again";
  Model tensor, experts, split, rope, partial, missing("llama");
  tensor.tensor("blk.0.ssm_a", {4});
  EXPECT_EQ(refused(tensor),
            "F: has the tensor 'blk.0.ssm_a', which models of 'llama' do not have" + std::string(again));
  experts.out.integer("llama.expert_count", 8);
  EXPECT_EQ(refused(experts),
            "F: is a mixture of experts; that is not built yet for GGUF\n    load the model from safetensors");
  split.out.integer("split.count", 3);
  EXPECT_EQ(refused(split),
            "F: is one of 3 parts of a model\n    keep the names of the parts: NAME-00001-of-0000N.gguf");
  rope.out.text("llama.rope.scaling.type", "longrope");
  EXPECT_EQ(refused(rope),
            "F: llama.rope.scaling.type is 'longrope', which is not built yet\n    built: none, linear, yarn");
  partial.out.integer("llama.rope.dimension_count", 2);
  EXPECT_EQ(refused(partial), "F: rotates 2 of 4 dimensions of a head; that is not built for this family");
  GgufWriter nothing;
  nothing.text("general.architecture", "qwen3");
  nothing.write(missing.folder / "n.gguf");
  EXPECT_EQ(refusal([&] { GgufCheckpoint::open(missing.folder / "n.gguf")->config(); }),
            (missing.folder / "n.gguf").string() + ": has no token_embd.weight of two dimensions" + again);
}

// Keys in the first part, a tensor in each.
struct Parts {
  test::TemporaryFolder folder;
  Model first;
  std::string path(int part) const {
    return (folder / ("big-0000" + std::to_string(part) + "-of-00002.gguf")).string();
  }
  void write(int64_t second_number, int64_t tensors) {
    first.tensor("token_embd.weight", {5, 8});
    const std::pair<const char*, int64_t> keys[] = {
        {"split.no", 0}, {"split.count", 2}, {"split.tensors.count", tensors}};
    for (const auto& [key, value] : keys) first.out.integer(key, value);
    first.out.write(path(1));
    Model second;
    second.out = GgufWriter();
    second.out.integer("split.no", second_number);
    second.out.integer("split.count", 2);
    second.tensor("output_norm.weight", {8}).out.write(path(2));
  }
};

TEST(Gguf, IsReadFromAllItsPartsWhicheverIsNamed) {
  Parts parts;
  parts.write(1, 2);
  const std::vector<std::string> names = {"model.embed_tokens.weight", "model.norm.weight"};
  for (const std::string& model : {parts.path(1), parts.path(2), parts.folder.path().string()}) {
    const Folder folder = Folder::open(model);
    EXPECT_EQ(folder.names(), names) << model;
    EXPECT_EQ(floats(folder.at("model.norm.weight")), (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(*read_config(model).document.find("vocab_size")->as_int(), 5);
  }
}

TEST(Gguf, RefusesPartsThatAreNotOneModel) {
  const auto refused = [](int64_t number, int64_t tensors, bool without_second) {
    Parts parts;
    parts.write(number, tensors);
    if (without_second) std::filesystem::remove(parts.path(2));
    return test::replaced(refusal([&] { Folder::open(parts.path(1)); }), parts.folder.path().string(), "F");
  };
  EXPECT_EQ(refused(1, 2, true),
            "F/big-00001-of-00002.gguf: its part big-00002-of-00002.gguf is missing\n    fetch all parts of the model");
  EXPECT_EQ(refused(0, 2, false),
            "F/big-00002-of-00002.gguf: is not part 2 of 2 of big-00001-of-00002.gguf\n    fetch the file again");
  EXPECT_EQ(refused(1, 3, false),
            "F/big-00001-of-00002.gguf: its parts hold 2 tensors, and it says 3\n    fetch the file again");
}

TEST(Gguf, RefusesDamagedFiles) {
  Model model;
  const std::string file = model.tensor("token_embd.weight", {5, 8}).tensor("output_norm.weight", {8}).write();
  const std::string good = test::read_file(file);
  const auto refused = [](const std::string& bytes) {
    return refusal([&] { GgufFile(std::as_bytes(std::span(bytes)), "F"); });
  };
  EXPECT_EQ(refused(good), "(nothing was refused)");
  EXPECT_EQ(
      refused(good.substr(0, good.size() - 33)),
      "F: tensor 'output_norm.weight' reaches beyond the end of the file\n    the file is truncated; fetch it again");
  const size_t name = good.find("token_embd.weight"), dimensions = name + 17, sizes = dimensions + 4, type = sizes + 16,
               offset = type + 4;
  const auto changed = [&](size_t at, const std::string& bytes) {
    std::string out = good;
    return refused(out.replace(at, bytes.size(), bytes));
  };
  constexpr const char* again = "\n    fetch the file again";
  EXPECT_EQ(changed(dimensions, "\x09"), "F: tensor 'token_embd.weight' has 9 dimensions" + std::string(again));
  EXPECT_EQ(changed(sizes, std::string(7, '\xff') + "\x0f"),
            "F: tensor 'token_embd.weight' has a size that is out of range" + std::string(again));
  EXPECT_EQ(changed(type, "\x63"),
            "F: tensor 'token_embd.weight' has ggml type 99, which is not supported\n"
            "    supported: F32, F16, BF16, F64, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K to Q6_K, IQ4_NL, IQ4_XS, "
            "TQ1_0, TQ2_0, MXFP4, NVFP4; convert it with llama-quantize");
  EXPECT_EQ(changed(type, "\x08"),
            "F: tensor 'token_embd.weight' has rows of 8, which are not whole blocks of Q8_0" + std::string(again));
  EXPECT_EQ(changed(offset, "\x20"),
            "F: tensors 'token_embd.weight' and 'output_norm.weight' overlap" + std::string(again));
  for (size_t size = 0; size < good.size() - 32; ++size)
    EXPECT_NE(refused(good.substr(0, size)), "(nothing was refused)") << size;
}

TEST(Folder, NamesTheGgufFilesOfWhichOneIsMeant) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "a.gguf", "x");
  test::write_file(folder / "b.gguf", "x");
  test::write_file(folder / "tokenizer.gguf", "x");  // a vocabulary alone
  EXPECT_EQ(refusal([&] { Folder::open(folder.path()); }),
            folder.path().string() + ": has 2 GGUF files\n    give one of them: " + (folder / "a.gguf").string());
}

}  // namespace
}  // namespace easydel::weights
