// Rotary frequencies that depend on a sequence's length: a token keeps those of the length at which it first came, also
// when it is computed again after a preemption.
#include <gtest/gtest.h>

#include <array>

#include "easydel/base/error.h"
#include "easydel/generation/generator.h"
#include "esurge/same_bits.h"
#include "esurge/wrapped_model.h"
#include "support/data.h"

namespace easydel::esurge {
namespace {

// With as many positions as wanted, beyond those that the frequencies were trained for.
class Unlimited final : public WrappedModel {
 public:
  explicit Unlimited(std::shared_ptr<const models::Model> inner) : WrappedModel(inner), inner_(std::move(inner)) {}
  int64_t max_positions() const override { return 0; }
  int64_t restart_length() const override { return inner_->restart_length(); }
  int64_t turning_length() const override { return inner_->turning_length(); }

 private:
  std::shared_ptr<const models::Model> inner_;
};

class LengthFrequencies : public SameBits {
 protected:
  void SetUp() override {
    model_ = std::make_shared<Unlimited>(models::load_model(test::test_data(GetParam().folder), {}));
  }
};

TEST_P(LengthFrequencies, AreTheSameAfterPreemption) {
  const int64_t turning = model_->turning_length();
  ASSERT_GT(turning, 0);
  int64_t preempted = 0, recomputed = 0, beyond = 0, drafted = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Random random(seed);
    std::vector<Request> asked = requests(random, 10);
    for (Request& request : asked)
      request.sampling.max_tokens = std::max(random.from(5, 40), request.sampling.min_tokens);
    const std::vector<std::string> expected = alone(asked);
    EngineSetup own = setup(std::array{1, 4, 16}[seed % 3], std::nullopt);
    own.config.max_num_batched_tokens = random.from(1, 60);
    own.config.enable_prefix_caching = seed % 2 == 0;
    own.config.num_speculative_tokens = seed % 3 == 0 ? 3 : 0;
    own.config.prompt_lookup_min = 1;
    const std::unique_ptr<StepEngine> engine = engine_for(own, asked, 200 / own.config.page_size, false);
    std::vector<std::string> found(asked.size());
    for (size_t i = 0; i < asked.size(); ++i) {
      engine->add(asked[i], [&, i](const RequestOutput& output) {
        found[i] = bits_of(output);
        for (const CompletionOutput& one : output.outputs)
          beyond += int64_t(output.prompt_token_ids.size()) <= turning &&
                    int64_t(output.prompt_token_ids.size() + one.token_ids.size()) > turning;
      });
      if (random.chance(50)) engine->step();
    }
    while (engine->step()) {
    }
    EXPECT_EQ(engine->requests(), 0) << "a step that only preempts is not the last one";
    for (size_t i = 0; i < asked.size(); ++i) EXPECT_EQ(found[i], expected[i]) << "schedule " << seed << ", " << i;
    preempted += engine->metrics().preemptions, recomputed += engine->metrics().recomputed_tokens;
    drafted += engine->metrics().draft_tokens;
  }
  EXPECT_GT(preempted, 0);
  EXPECT_GT(recomputed, 0);
  EXPECT_GT(drafted, 0);
  EXPECT_GT(beyond, 10) << "answers that grow beyond the length at which frequencies change";
}

TEST_P(LengthFrequencies, AreThoseOfTheGenerator) {
  Random random(2);
  StepEngine engine(setup(4, 200));
  for (int i = 0; i < 6; ++i) {
    Request request;
    std::vector<TokenId> prompt;
    for (int64_t left = random.from(1, 40); left > 0; --left)
      prompt.push_back(TokenId(random.from(3, model_->vocabulary() - 1)));
    request.prompt = prompt;
    request.sampling.temperature = 0, request.sampling.max_tokens = 30, request.sampling.ignore_eos = true;
    request.sampling.return_token_ids = true;
    std::vector<TokenId> found;
    engine.add(request, [&](const RequestOutput& output) { found = output.outputs.at(0).token_ids; });
    while (engine.step()) {
    }
    const auto expected = generation::Generator(*model_, nullptr).run({{prompt, request.sampling.generation()}});
    EXPECT_EQ(found, expected.at(0).tokens);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, LengthFrequencies,
                         testing::Values(Subject{"phi3_longrope", "hf_goldens/phi3_longrope", "fp32"},
                                         Subject{"llama_rope_dynamic", "hf_goldens/llama_rope_dynamic", "fp32"}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace easydel::esurge
