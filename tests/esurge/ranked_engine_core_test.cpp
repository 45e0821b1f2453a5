// The engine on two ranks: the tokens of one, and how it ends when a rank dies, hangs, fails or computes other scores.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "esurge/on_ranks.h"
#include "esurge/wrapped_model.h"

namespace easydel::esurge {
namespace {

const char* const moe =
    R"({"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "vocab_size": 96, "hidden_size": 32,
        "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 8, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16,
        "tie_word_embeddings": false, "max_position_embeddings": 512, "initializer_range": 0.3})";
// Compressed attention (MLA), a dense layer and one of experts in groups.
const char* const mla =
    R"({"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "vocab_size": 96, "hidden_size": 32,
        "intermediate_size": 48, "moe_intermediate_size": 16, "num_hidden_layers": 2, "first_k_dense_replace": 1,
        "num_attention_heads": 4, "num_key_value_heads": 4, "q_lora_rank": 12, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
        "qk_rope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2,
        "n_group": 4, "topk_group": 2, "norm_topk_prob": true, "routed_scaling_factor": 2.5,
        "tie_word_embeddings": false, "max_position_embeddings": 512, "initializer_range": 0.3})";

// Counts the passes, and does something in one of them.
class Faulty final : public WrappedModel {
 public:
  Faulty(std::shared_ptr<const models::Model> inner, int pass, std::function<void()> fault)
      : WrappedModel(std::move(inner)), pass_(pass), fault_(std::move(fault)) {}
  models::Outputs forward(const models::Inputs& inputs, nn::Pass& pass) const override {
    if (passes_++ == pass_) fault_();
    return WrappedModel::forward(inputs, pass);
  }
  int passes() const { return passes_; }

 private:
  int pass_;
  mutable int passes_ = 0;
  std::function<void()> fault_;
};

void expect_tokens_of_one(const char* model_config, const std::vector<int64_t>& sizes = by_tensor) {
  test::TemporaryFolder folder;
  const fs::path path = write_model(folder, model_config);
  const int ranks = int(mesh::Mesh(mesh::default_axes(), sizes).ranks());
  test::run_ranks(ranks, [&](const Meeting& meeting) {
    const auto team = join(meeting, 20, sizes);
    const auto model = std::make_shared<Faulty>(load(path, team), -1, nullptr);
    on_ranks(*team, meeting, model, config_of(), [&](EngineSetup setup) {
      Answers two;
      {
        StepEngine engine(std::move(setup));
        two = run(engine, requests());
        EXPECT_EQ(run(engine, requests()).tokens, two.tokens);  // from the prefix cache, and with other pages
      }
      const Answers one = alone(path);
      EXPECT_EQ(two.tokens, one.tokens);
      EXPECT_EQ(two.errors, one.errors);
      EXPECT_EQ(two.tokens.size(), 7u);
      ASSERT_EQ(two.prompt_logprobs.size(), one.prompt_logprobs.size());
      EXPECT_GT(two.prompt_logprobs.size(), 10u);
      for (size_t i = 0; i < one.prompt_logprobs.size(); ++i)
        EXPECT_NEAR(two.prompt_logprobs[i], one.prompt_logprobs[i], 1e-4);
      if (team->mesh().size("tp") == 1) {
        EXPECT_EQ(two.prompt_logprobs, one.prompt_logprobs);  // bit by bit
      }
    });
    EXPECT_GT(model->passes(), 20);  // this rank computes, too
  });
}

TEST(RankedEngine, TwoRanksGiveTheTokensOfOne) { expect_tokens_of_one(llama); }
TEST(RankedEngine, TwoRanksOfExpertsGiveTheTokensOfOne) { expect_tokens_of_one(moe); }
TEST(RankedEngine, TwoRanksOfCompressedAttentionGiveTheTokensOfOne) { expect_tokens_of_one(mla); }
TEST(RankedEngine, TwoDataPartsOfCompressedAttentionGiveTheTokensOfOne) { expect_tokens_of_one(mla, by_data); }
TEST(RankedEngine, TwoDataPartsGiveTheTokensOfOne) { expect_tokens_of_one(llama, by_data); }
TEST(RankedEngine, FourRanksInTwoDataPartsGiveTheTokensOfOne) { expect_tokens_of_one(llama, by_both); }

// Overlapped and speculated steps are sent to the other rank as others are.
TEST(RankedEngine, OverlapsAndSpeculatesOnRanks) {
  test::TemporaryFolder folder;
  const fs::path path = write_model(folder, llama);
  for (const bool speculates : {false, true}) {
    SCOPED_TRACE(speculates);
    test::run_ranks(2, [&](const Meeting& meeting) {
      EsurgeConfig config = config_of();
      config.overlap_execution = true;
      config.num_speculative_tokens = speculates ? 3 : 0;
      const auto team = join(meeting);
      on_ranks(*team, meeting, load(path, team), config, [&](EngineSetup setup) {
        StepEngine engine(std::move(setup));
        EXPECT_EQ(run(engine, requests()).tokens, alone(path).tokens);
      });
    });
  }
}

// In the fifth pass of the second rank something happens; returns the errors of all requests of the first one.
void with_fault(const std::function<void()>& fault, double step_seconds, const std::vector<int>& exits,
                const std::function<void(const Answers& answers, const std::string& later)>& check) {
  test::TemporaryFolder folder;
  const fs::path path = write_model(folder, llama);
  const auto body = [&](const Meeting& meeting) {
    const auto team = join(meeting, step_seconds);
    std::shared_ptr<const models::Model> model = load(path, team);
    if (!team->first()) model = std::make_shared<Faulty>(std::move(model), 5, fault);
    on_ranks(*team, meeting, model, config_of(step_seconds), [&](EngineSetup setup) {
      StepEngine engine(std::move(setup));
      const Clock::time_point begin = Clock::now();
      const Answers answers = run(engine, requests());
      EXPECT_LT(seconds_since(begin), step_seconds + 2);
      std::string later;
      try {
        engine.add(requests()[0], {});
      } catch (const UserError& error) {
        later = error.what();
      }
      check(answers, later);
    });
  };
  EXPECT_EQ(test::exits_of_ranks(2, body), exits);
}

void expect_error(const Answers& answers, const std::string& later, const std::string& error) {
  EXPECT_EQ(answers.errors, std::vector<std::string>(6, error));
  EXPECT_EQ(later, "esurge: " + error + "\n    start all ranks again");
}

TEST(RankedEngine, ARankThatIsKilledEndsAllRequests) {
  with_fault(
      [] { raise(SIGKILL); }, 20, {0, 128 + SIGKILL},
      [](const Answers& answers, const std::string& later) { expect_error(answers, later, "rank 1 has ended"); });
}

TEST(RankedEngine, TheOthersEndWithTheFirstRank) {
  test::TemporaryFolder folder;
  const fs::path path = write_model(folder, llama);
  const auto body = [&](const Meeting& meeting) {
    const auto team = join(meeting);
    on_ranks(*team, meeting, load(path, team), config_of(), [&](EngineSetup setup) {
      StepEngine engine(std::move(setup));
      engine.add(requests()[0], {});
      engine.step();
      raise(SIGKILL);
    });
  };
  EXPECT_EQ(test::exits_of_ranks(2, body), (std::vector<int>{128 + SIGKILL, 1}));
}

TEST(RankedEngine, ARankThatHangsEndsAllRequestsWithinTheLimit) {
  with_fault([] { sleep(4); }, 1, {0, 1},
             [](const Answers& answers, const std::string& later) {
               ASSERT_EQ(answers.errors.size(), 6u);
               EXPECT_EQ(answers.errors[0].find("the first rank failed: collective: all_"), 0u) << answers.errors[0];
               EXPECT_NE(answers.errors[0].find("imed out"), std::string::npos) << answers.errors[0];
               EXPECT_TRUE(answers.errors[0].ends_with("; rank 1 does not answer")) << answers.errors[0];
               expect_error(answers, later, answers.errors[0]);
             });
}

TEST(RankedEngine, ARankThatFailsSaysWhy) {
  with_fault([] { throw std::bad_alloc(); }, 20, {0, 1},
             [](const Answers& answers, const std::string& later) {
               expect_error(answers, later, "rank 1 failed: std::bad_alloc");
             });
}

// Without a mesh both ranks compute the whole model, the second one with other weights.
TEST(RankedEngine, RanksThatComputeOtherScoresStopTheEngine) {
  test::TemporaryFolder folder;
  const fs::path path = write_model(folder, llama);
  for (const bool verify : {true, false}) {
    SCOPED_TRACE(verify);
    test::run_ranks(2, [&](const Meeting& meeting) {
      const auto team = join(meeting);
      EsurgeConfig config = config_of();
      config.distributed_verify_sampling_digest = verify;
      const auto model = load(path, Team::alone(), team->first() ? 7 : 8);
      on_ranks(*team, meeting, model, config, [&](EngineSetup setup) {
        StepEngine engine(std::move(setup));
        const Answers answers = run(engine, requests());
        if (verify)
          EXPECT_EQ(answers.errors,
                    std::vector<std::string>(6, "rank 1 computed other scores than the first rank in step 1"));
        else
          EXPECT_EQ(answers.tokens, alone(path).tokens);
      });
    });
  }
}

TEST(RankedEngine, RanksOfOtherModelsDoNotBegin) {
  test::TemporaryFolder folder, other_folder;
  const fs::path path = write_model(folder, llama), other = write_model(other_folder, llama);
  test::write_file(other / "config.json", test::replaced(llama, "\"vocab_size\": 96", "\"vocab_size\": 97"));
  const auto body = [&](const Meeting& meeting) {
    const auto team = join(meeting);
    const auto model = load(team->first() ? path : other, Team::alone());
    on_ranks(*team, meeting, model, config_of(), [&](EngineSetup setup) {
      std::string error;
      try {
        StepEngine engine(std::move(setup));
      } catch (const UserError& refused) {
        error = refused.headline();
      }
      EXPECT_EQ(error,
                "esurge: the ranks do not compute the same: the vocabulary is 96 on the first rank, 97 on rank 1");
    });
  };
  EXPECT_EQ(test::exits_of_ranks(2, body), (std::vector<int>{0, 0}));
}

}  // namespace
}  // namespace easydel::esurge
