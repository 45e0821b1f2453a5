#include "easydel/probe/logits.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "easydel/tensor/mapped.h"
#include "support/data.h"

namespace easydel::probe {
namespace {

TEST(ProbeLogits, RefusesAnInputThatTheModelCannotUse) {
  const test::TemporaryFolder work;
  const auto refused = [&](const char* golden, const char* name) {
    const Tensor tokens = at::ones({1, 4}, at::kLong);
    weights::write_safetensors(work / "in.safetensors", std::vector{tensor::to_file("input_ids", tokens, at::kLong),
                                                                    tensor::to_file(name, tokens, at::kLong)});
    return test::replaced(test::refusal([&] {
                            logits(test::test_data(str("hf_goldens/", golden)), work / "in.safetensors",
                                   work / "out.safetensors");
                          }),
                          work.path().string(), "W");
  };
  EXPECT_EQ(refused("llama", "pixel_values"),
            "W/in.safetensors: has the input 'pixel_values', which the model cannot use\n    inputs of this model: "
            "input_ids, attention_mask, prompt_ids, prompt_mask, max_new_tokens, labels");
  EXPECT_FALSE(std::filesystem::exists(work / "out.safetensors"));
  // A folder of a model that sees is loaded as its text part.
  EXPECT_TRUE(refused("random_gemma3_0", "pixel_values").find("'pixel_values', which") != std::string::npos);
  EXPECT_TRUE(refused("llama", "token_type_ids").find("'token_type_ids', which") != std::string::npos);
  EXPECT_TRUE(refused("bert_mlm", "start_positions").find("'start_positions', which") != std::string::npos);
  EXPECT_EQ(refused("bert_mlm", "token_type_ids"), "(nothing was refused)");
  // An answer that was recorded beside the inputs.
  EXPECT_EQ(refused("llama", "last_hidden_state"), "(nothing was refused)");
}

}  // namespace
}  // namespace easydel::probe
