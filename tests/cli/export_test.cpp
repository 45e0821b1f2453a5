// `easydel export`, and models in GGUF and torch's own files, through the program.
#include <gtest/gtest.h>

#include <algorithm>

#include "easydel/weights/folder.h"
#include "support/data.h"

namespace easydel {
namespace {

using test::run_program;

const std::string story = test::test_data("models/stories260K-hf").string();

struct Exported {
  Exported(const std::string& dtype) : file((folder / (dtype + ".gguf")).string()) {
    const auto ran = run_program({"export", story, "--dtype", dtype, "-o", file});
    EXPECT_EQ(ran.status, 0) << ran.err;
  }
  test::TemporaryFolder folder;
  std::string file;
};

std::string continued(const std::string& model) {
  const auto ran = run_program({"generate", model, "-p", "Once upon a time", "-n", "24", "--dtype", "fp32"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  return ran.out;
}

// Both folders' tensors, byte for byte.
void expect_equal(const weights::Folder& found, const weights::Folder& right) {
  ASSERT_EQ(found.names(), right.names());
  for (const std::string& name : found.names()) {
    EXPECT_EQ(found.at(name).shape, right.at(name).shape) << name;
    EXPECT_EQ(found.at(name).dtype, right.at(name).dtype) << name;
    EXPECT_TRUE(std::ranges::equal(found.at(name).bytes, right.at(name).bytes)) << name;
  }
}

TEST(Export, ToGgufAndBackKeepsEveryBit) {
  const Exported gguf("f32");
  expect_equal(weights::Folder::open(gguf.file), weights::Folder::open(story));
  const std::string back = (gguf.folder / "back").string();
  const auto ran = run_program({"export", gguf.file, "--format", "safetensors", "-o", back});
  ASSERT_EQ(ran.status, 0) << ran.err;
  expect_equal(weights::Folder::open(back), weights::Folder::open(story));
  const Value config = weights::read_config(back).document, own = weights::read_config(story).document;
  for (const char* key : {"model_type", "hidden_size", "head_dim", "num_key_value_heads", "rms_norm_eps", "vocab_size",
                          "tie_word_embeddings", "max_position_embeddings", "bos_token_id", "eos_token_id",
                          "hidden_act", "architectures"})
    EXPECT_EQ(*config.find(key), *own.find(key)) << key;
  EXPECT_EQ(continued(back), continued(story));
}

TEST(Export, InPartsHoldsTheSameTensors) {
  const test::TemporaryFolder work;
  const std::string parts = (work / "parts").string();
  const std::vector<std::string> write = {"export", story, "--format", "safetensors", "-o", parts, "--max-shard-size"};
  const auto with = [&](const char* size) {
    std::vector<std::string> words = write;
    words.emplace_back(size);
    return run_program(words);
  };
  EXPECT_EQ(with("much").err, "--max-shard-size: 'much' is not a size\n    write 500MB, 2GiB or a number of bytes\n");
  ASSERT_EQ(with("200kB").status, 0);
  EXPECT_FALSE(std::filesystem::exists(work / "parts/model.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(work / "parts/model.safetensors.index.json"));
  expect_equal(weights::Folder::open(parts), weights::Folder::open(story));
  EXPECT_EQ(continued(parts), continued(story));
}

TEST(Export, AFolderKeepsItsGenerationConfig) {
  const test::TemporaryFolder work;
  const auto model = work / "model", back = work / "back";
  std::filesystem::copy(story, model, std::filesystem::copy_options::recursive);
  const std::string said = "{\"_from_model_config\": true,  \"eos_token_id\": [2, 3], \"odd\": 1e-7}\n";
  test::write_file(model / "generation_config.json", said);
  const auto ran = run_program({"export", model.string(), "--format", "safetensors", "-o", back.string()});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(test::read_file(back / "generation_config.json"), said);
}

TEST(Export, AModelInGgufWritesTheSameText) {
  const Exported gguf("f32");
  EXPECT_EQ(continued(gguf.file), continued(story));
  // A folder that holds nothing else is such a model too.
  EXPECT_EQ(continued(gguf.folder.path().string()), continued(story));
}

TEST(Export, TokenizesTheSameOutOfGguf) {
  const Exported gguf("q8_0");
  // Not with a blank at the begin: before that one llama.cpp puts another, and transformers does not.
  for (const char* text :
       {"Once upon a time, there was a little girl.", "two  blanks ", "caf\xC3\xA9 \xE6\x97\xA5 1234", "", "</s>and"}) {
    const auto a = run_program({"tokenize", gguf.file, text}), b = run_program({"tokenize", story, text});
    EXPECT_EQ(a.out, b.out) << text;
    EXPECT_EQ(a.status, 0) << a.err;
  }
}

TEST(Export, WritesBlocksWhereRowsAllowThem) {
  const Exported gguf("q8_0");
  const auto model = weights::Folder::open(gguf.file);
  EXPECT_EQ(model.info("model.embed_tokens.weight").type_name(), "Q8_0");
  EXPECT_EQ(model.info("model.layers.0.self_attn.q_proj.weight").type_name(), "Q8_0");
  EXPECT_EQ(model.info("model.layers.0.mlp.down_proj.weight").type_name(), "F16");  // rows of 172
  EXPECT_EQ(model.info("model.norm.weight").type_name(), "F32");
}

TEST(Export, WritesTheSameBlocksAgain) {
  for (const std::string dtype : {"q8_0", "q4_0"}) {
    const Exported gguf(dtype);
    const std::string quantized = (gguf.folder / "quantized.gguf").string(), again = (gguf.folder / "b.gguf").string();
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"export", gguf.file, "-o", again},
          std::vector<std::string>{"quantize", gguf.file, "--to", dtype, "--out", quantized}}) {
      const auto ran = run_program(words);
      ASSERT_EQ(ran.status, 0) << ran.err;
    }
    expect_equal(weights::Folder::open(again), weights::Folder::open(gguf.file));
    expect_equal(weights::Folder::open(quantized), weights::Folder::open(gguf.file));
  }
}

TEST(Export, RefusesWhatHasNoForm) {
  const test::TemporaryFolder folder;
  const auto refused = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"export", story, "-o", (folder / "x.gguf").string()});
    const auto ran = run_program(arguments);
    EXPECT_EQ(ran.status, 2);
    return ran.err;
  };
  EXPECT_EQ(
      refused({"--dtype", "q3_k"}),
      "--dtype: 'q3_k' is not a dtype that GGUF files can be written in\n    known: f32, f16, bf16, q8_0, q4_0\n");
  EXPECT_EQ(refused({"--format", "onnx"}), "--format: 'onnx' is not a model format\n    known: gguf, safetensors\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "x.gguf"));
  test::write_file(folder / "model/config.json", R"({"model_type": "falcon", "hidden_size": 8})");
  test::write_file(folder / "model/model.safetensors", std::string("\x02\0\0\0\0\0\0\0{}", 10));
  const auto ran = run_program({"export", (folder / "model").string(), "-o", (folder / "x.gguf").string()});
  EXPECT_EQ(test::replaced(ran.err, folder.path().string(), "F"),
            "F/model/config.json: models of 'falcon' are not written as GGUF; that is not built yet\n    built: gemma, "
            "llama, mistral, qwen2, qwen3\n");
}

TEST(Gguf, IsDescribed) {
  const Exported gguf("q8_0");
  const auto ran = run_program({"describe", "model", gguf.file});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("172 x 64  Q8_0  55.0 k"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("codes         31 weights in Q8_0: 8.5 bits a value, 212 KiB"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("q8_0.gguf"), std::string::npos) << ran.out;
}

TEST(Gguf, RefusesAnArchitectureByName) {
  const Exported gguf("f32");
  std::string bytes = test::read_file(gguf.file);
  const size_t at = bytes.find("llama");
  bytes.replace(at, 5, "mamba");
  const std::string other = (gguf.folder / "other.gguf").string();
  test::write_file(other, bytes);
  const auto ran = run_program({"generate", other, "-p", "x"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err, other +
                         ": is a GGUF file of the architecture 'mamba', which is not built yet\n"
                         "    built: gemma, llama, mistral, qwen2, qwen3; other models load from safetensors\n");
}

TEST(Gguf, TrainsAndKeepsItsVocabulary) {
  const Exported gguf("f32");
  test::write_file(gguf.folder / "data.jsonl",
                   "{\"text\": \"Once upon a time there was a cat.\"}\n{\"text\": \"The cat was red.\"}\n");
  test::write_file(
      gguf.folder / "run.yaml",
      "model: {name_or_path: f32.gguf}\nmixture: {informs: [{type: jsonl, data_files: data.jsonl}], batch_size: 2}\n"
      "trainer: {trainer_type: sft, max_training_steps: 1, save_directory: out, total_batch_size: 2, max_length: "
      "32}\nactions: [train]\n");
  const auto ran = run_program({"elarge", "run.yaml"}, {.folder = gguf.folder.path()});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const std::string at = "saved in ";
  const size_t begin = ran.out.find(at);
  ASSERT_NE(begin, std::string::npos) << ran.out;
  const auto saved =
      gguf.folder.path() / ran.out.substr(begin + at.size(), ran.out.find('\n', begin) - begin - at.size());
  EXPECT_TRUE(std::filesystem::exists(saved / "model.safetensors"));
  EXPECT_LT(std::filesystem::file_size(saved / "tokenizer.gguf"), 32768u);
  EXPECT_EQ(run_program({"tokenize", saved.string(), "a red cat"}).out,
            run_program({"tokenize", story, "a red cat"}).out);
}

}  // namespace
}  // namespace easydel
