#include "easydel/train/sampler.h"

#include <gtest/gtest.h>

#include "easydel/generation/generator.h"
#include "support/data.h"

namespace easydel::train {
namespace {

using Ids = std::vector<int32_t>;

TEST(Sampler, ContinuesEachPromptAsItDoesAlone) {
  const auto folder = test::test_data("models/stories260K-hf");
  const std::shared_ptr<models::Model> model = models::load_model(folder, {});
  const Sampler sampler(model, nullptr);
  const std::vector<Ids> prompts = {{1, 403, 407}, {1, 410}};
  const generation::GenerationConfig config{
      .max_new_tokens = 6, .do_sample = true, .seed = 3, .num_return_sequences = 2, .temperature = 5.0};
  const std::vector<Ids> all = sampler.run(prompts, config);
  ASSERT_EQ(all.size(), 4u);
  for (const Ids& one : all) EXPECT_EQ(one.size(), 6u);
  EXPECT_NE(all[0], all[1]);
  EXPECT_EQ(sampler.run({prompts[1]}, config), (std::vector<Ids>{all[2], all[3]}));
}

TEST(Sampler, GivesTheEndTokenToo) {
  const std::shared_ptr<models::Model> model = models::load_model(test::test_data("models/stories260K-hf"), {});
  const Sampler sampler(model, nullptr);
  const Ids prompt = {1, 403, 407};
  const Ids plain = sampler.run({prompt}, {.max_new_tokens = 4}).at(0);
  const Ids ended = sampler.run({prompt}, {.max_new_tokens = 4, .eos_token_id = {plain[1]}}).at(0);
  EXPECT_EQ(ended, Ids(plain.begin(), plain.begin() + 2));
}

}  // namespace
}  // namespace easydel::train
