// The program with AMX tiles (emulated if the machine has none), compared with the program without them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::test {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

class Tiles : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const fs::path counts_ = folder_ / "products";
  const Environment without_ = {{"EASYDEL_ISA", "avx512_vnni"}, {"EASYDEL_BF16_ORDER", "bf16_tile"}};
  const Environment with_ = {
      {"LD_PRELOAD", (program().parent_path().parent_path() / "lib/libeasydel_tiles.so").string()},
      {"EASYDEL_TEST_TILE_PRODUCTS", counts_.string()}};

  void SetUp() override {
    if (run_program({"doctor"}, {.environment = without_}).status != 0) GTEST_SKIP() << "no AVX-512 with VNNI";
    if (std::getenv("LD_PRELOAD")) GTEST_SKIP() << "something else is loaded first";
  }

  std::string generated(const Environment& environment, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"generate",         test_data("models/stories260K-hf").string(),
                                          "--prompt",         "The old prince went out to look for the sea",
                                          "--max-new-tokens", "12"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = run_program(arguments, {.environment = environment});
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.out;
  }

  // Whether it multiplied bf16, and bytes, by tiles. The processor's own are not counted.
  void expect_products(bool bf16, bool bytes) {
    if (run_program({"doctor"}, {.environment = {{"EASYDEL_ISA", "amx"}}}).status == 0) return;
    uint64_t counts[2] = {};
    const std::string read = read_file(counts_);
    ASSERT_EQ(read.size(), sizeof counts);
    std::memcpy(counts, read.data(), sizeof counts);
    EXPECT_EQ(counts[0] > 0, bf16);
    EXPECT_EQ(counts[1] > 0, bytes);
    fs::remove(counts_);
  }

  fs::path trained(const Environment& environment, const std::string& name) {
    write_file(folder_ / (name + ".yaml"),
               "model: {name_or_path: " + test_data("models/stories260K-hf").string() +
                   ", tokenizer: " + test_data("models/stories260K-chat").string() +
                   "}\nloader: {dtype: bf16, param_dtype: fp32}\nmixture: {informs: [{data_files: " +
                   test_data("columnar/texts.jsonl").string() +
                   "}]}\ntrainer: {total_batch_size: 4, max_training_steps: 4, max_length: 48, report_steps: 1, "
                   "save_directory: ., model_name: " +
                   name + "}\nactions: [train]\n");
    const Ran ran =
        run_program({"--quiet", "elarge", name + ".yaml"}, {.environment = environment, .folder = folder_.path()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    return folder_ / name;
  }
};

TEST_F(Tiles, GenerateTheSameText) {
  EXPECT_EQ(generated(with_, {"--dtype", "bf16"}), generated(without_, {"--dtype", "bf16"}));
  expect_products(true, false);
}

TEST_F(Tiles, GenerateTheSameTextFromQuantizedWeights) {
  for (const char* method : {"a8bit", "nf4"}) {
    const std::vector<std::string> quantized = {"--dtype", "bf16", "--set",
                                                std::string("quantization.model.quantization_method=") + method};
    EXPECT_EQ(generated(with_, quantized), generated(without_, quantized)) << method;
    expect_products(true, method == std::string_view("a8bit"));
  }
}

// Grouped heads, windows, soft-caps, sinks, v_dim different from head_dim, experts.
TEST_F(Tiles, GiveTheSameLogits) {
  for (const char* family :
       {"qwen3", "mistral", "gemma2", "gpt_oss", "deepseek_v3", "falcon_alibi", "random_llama_0"}) {
    const fs::path golden = test_data(std::string("hf_goldens/") + family), out = folder_ / "logits.safetensors";
    const auto logits = [&](const Environment& environment) {
      const Ran ran =
          run_program({"--quiet", "probe", "logits", golden.string(), "--inputs",
                       (golden / "expected.safetensors").string(), "--output", out.string(), "--dtype", "bf16"},
                      {.environment = environment});
      EXPECT_EQ(ran.status, 0) << ran.err;
      const weights::TensorView view = weights::SafetensorsFile::open(out)->at("logits");
      return std::string(reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size());
    };
    EXPECT_EQ(logits(with_), logits(without_)) << family;
    expect_products(true, false);
  }
}

// The first loss is computed before any gradient and has the same bits; later ones differ by the order of sums in
// gradients.
TEST_F(Tiles, TrainAsTheOtherSetsDo) {
  const auto with = metric(trained(with_, "with"), "loss"), without = metric(trained(without_, "without"), "loss");
  expect_products(true, false);
  ASSERT_EQ(with.size(), 4u);
  ASSERT_EQ(without.size(), 4u);
  EXPECT_EQ(with[0], without[0]);
  for (size_t i = 1; i < with.size(); ++i) EXPECT_NEAR(with[i], without[i], 1e-3 * without[i]);
}

}  // namespace
}  // namespace easydel::test
