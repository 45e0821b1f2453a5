// Methods that learn from a completion and its opponent while they train: online_dpo, xpo, nash_md.
#include "easydel/train/online_pairs.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "easydel/train/online_losses.h"
#include "train/sampled_run.h"

namespace easydel::train {
namespace {

using test::LogLines, test::TemporaryFolder;

using test::FinishedRun;

TrainerParts online_run(const std::filesystem::path& folder, const std::string& keys) {
  return test::sampled_run(folder,
                           "total_batch_size: 4, rewards: [{type: contains, words: [a, the, he]}, {type: repetition, "
                           "weight: 0.5}]",
                           keys);
}

FinishedRun run(const std::filesystem::path& folder, const std::string& name, const std::string& keys) {
  return test::finished(online_run(folder, keys + ", model_name: " + name), folder, name);
}

double metric(const Value& line, const std::string& name) { return test::metric_of(line, name).value_or(NAN); }

TEST(OnlinePairs, ARunThatIsCutGoesOnToTheByte) {
  const TemporaryFolder folder;
  for (const std::string method : {"online_dpo", "xpo", "nash_md"}) {
    const std::string keys = "trainer_type: " + method + ", sync_ref_model: true, ref_model_sync_steps: 1";
    const FinishedRun whole = run(folder.path(), method, keys + ", max_training_steps: 3");
    run(folder.path(), method + "_cut", keys + ", max_training_steps: 1");
    const FinishedRun rest = run(folder.path(), method + "_cut", keys + ", max_training_steps: 3");
    EXPECT_TRUE(rest.weights == whole.weights) << method;
    EXPECT_EQ(rest.rollouts, whole.rollouts) << method;
  }
}

TEST(OnlinePairs, SeveralMicroBatchesAreOneBatch) {
  const TemporaryFolder folder;
  for (const std::string method : {"online_dpo", "xpo", "nash_md"}) {
    const auto norm = [&](const std::string& name, const std::string& more) {
      const std::string keys = "clip_grad: null, max_training_steps: 1, trainer_type: " + method;
      return metric(run(folder.path(), name + method, keys + more).metrics.at(0), "grad_norm");
    };
    const double whole = norm("one", "");
    EXPECT_NEAR(norm("two", ", gradient_accumulation_steps: 2"), whole, 1e-5 * whole) << method;
  }
}

// The reference is the model as it starts, so at the first step both completions of xpo have a log-ratio of 0, and
// nash_md's divergence is 0.
TEST(OnlinePairs, ReportWhatTrlReports) {
  const TemporaryFolder folder;
  const auto first = [&](const std::string& method, const std::string& keys) {
    return run(folder.path(), method, "max_training_steps: 1, trainer_type: " + method + keys).metrics.at(0);
  };
  const Value dpo = first("online_dpo", ", beta: [0.3, 0.1]"), xpo = first("xpo", ", alpha: 0.5"),
              nash = first("nash_md", ", mixture_coef: 0.25");
  EXPECT_NEAR(metric(dpo, "loss"), std::log(2.0), 1e-6);
  EXPECT_EQ(metric(dpo, "beta"), 0.3);
  EXPECT_NEAR(metric(dpo, "objective/scores_margin"), std::abs(metric(dpo, "objective/scores_margin")), 0);
  EXPECT_NEAR(metric(xpo, "loss/dpo"), std::log(2.0), 1e-6);
  EXPECT_NEAR(metric(xpo, "loss"), metric(xpo, "loss/dpo") + metric(xpo, "loss/xpo"), 1e-5);
  EXPECT_LT(metric(xpo, "loss/xpo"), 0);
  EXPECT_NEAR(metric(nash, "loss/kl"), 0, 1e-5);
  EXPECT_NEAR(metric(nash, "loss"), -metric(nash, "loss/score"), 1e-5);
  EXPECT_EQ(metric(nash, "mixture_coef"), 0.25);
}

// Formulas by hand, with one pair: log-ratios 0.5 of the first and -0.25 of the second completion.
TEST(OnlinePairs, LossesAreTheFormulas) {
  const auto numbers = [](std::initializer_list<double> list) { return at::tensor(at::ArrayRef<double>(list)); };
  const CompletionLogps first{numbers({-1.0}), numbers({-1.5})}, second{numbers({-2.0}), numbers({-1.75})};
  const Tensor wins = at::ones({1}, at::kBool);
  const double log_loss = std::log1p(std::exp(-0.2 * 0.75));
  const auto value = [](const Tensor& t) { return t.item<double>(); };
  EXPECT_NEAR(value(online_loss(OnlineLoss::sigmoid, 0.2, online_margins(first, second, wins))), log_loss, 1e-12);
  EXPECT_NEAR(value(online_loss(OnlineLoss::sigmoid, 0.2, online_margins(first, second, wins.logical_not()))),
              log_loss + 0.2 * 0.75, 1e-12);
  EXPECT_NEAR(value(online_loss(OnlineLoss::ipo, 0.2, online_margins(first, second, wins))),
              (0.75 - 2.5) * (0.75 - 2.5), 1e-12);
  EXPECT_NEAR(value(exploration_loss(0.3, second)), -0.6, 1e-12);
  // Two tokens of one completion that wins with probability 0.8.
  const CompletionLogps tokens{numbers({-1.0, -3.0}), numbers({-1.5, -2.0})};
  const NashLoss nash = nash_loss(0.1, tokens, at::zeros({2}, at::kLong), numbers({0.8}));
  EXPECT_NEAR(value(nash.score), 0.3 * -4, 1e-12);
  EXPECT_NEAR(value(nash.divergence), 0.5 - 1, 1e-12);
  EXPECT_NEAR(value(nash.loss), 0.1 * (0.5 * -1 + -1 * -3) + 1.2, 1e-12);
}

// Greedily, a mixture's next token is the largest of (1 - weight) * p + weight * r.
TEST(OnlinePairs, AMixtureOfTwoModelsIsThatOfTheirLogits) {
  const TemporaryFolder folder;
  const LogLines log;
  const TrainerParts parts = test::small_run(folder.path());
  const auto other = models::copy_model(*parts.model);
  {
    const c10::AutoGradMode no_grad(false);
    for (nn::Entry& entry : other->parameters().entries())
      if (entry.path.find("down_proj") != std::string::npos) entry.shard.mul_(-0.7), entry.written();
  }
  const Sampler policy(parts.model, parts.tokenizer), opponent(other, parts.tokenizer);
  generation::GenerationConfig config;
  config.max_new_tokens = 10;
  const std::vector<int32_t> prompt{1, 403, 407, 261, 378};
  const c10::AutoGradMode no_grad(false);
  for (const double weight : {0.0, 0.3, 0.7, 1.0}) {
    const std::vector<int32_t> ids = policy.mixed_with(opponent, weight).run({prompt}, config).at(0);
    ASSERT_EQ(ids.size(), 10u);
    std::vector<int32_t> known = prompt;
    for (const int32_t id : ids) {
      const data::Example example = learned_example(known, std::vector<int32_t>{0});
      const data::Example* const one[] = {&example};
      const Batch batch = flat_batch(one);
      const auto logits_of = [&](const models::Model& model) {
        nn::Pass pass;
        const Tensor hidden = Forwarding().run(model, batch, pass).hidden;
        return model.head().logits(labelled_rows(hidden, batch).first, pass)[0];
      };
      const Tensor mixed = (1 - weight) * logits_of(*parts.model) + weight * logits_of(*other);
      EXPECT_EQ(mixed.argmax().item<int64_t>(), id) << weight;
      known.push_back(id);
    }
  }
}

TEST(OnlinePairs, AMissingEndLowersTheReward) {
  const TemporaryFolder folder;
  const auto scores = [&](const std::string& name, const std::string& keys) {
    return run(folder.path(), name, "trainer_type: online_dpo, max_training_steps: 1" + keys).metrics.at(0);
  };
  const Value plain = scores("plain", ""), lowered = scores("lowered", ", missing_eos_penalty: 2");
  const double ended = metric(plain, "val/contain_eos_token");
  EXPECT_LT(ended, 1);
  EXPECT_NEAR(metric(lowered, "objective/scores"), metric(plain, "objective/scores") - 2 * (1 - ended), 1e-5);
}

TEST(OnlinePairs, RefusesWhatIsNoPair) {
  const TemporaryFolder folder;
  const LogLines log;
  const auto refused = [&](const std::string& keys) {
    return test::refusal([&] { Trainer trainer(online_run(folder.path(), keys)); });
  };
  EXPECT_EQ(refused("trainer_type: xpo, num_return_sequences: 4"),
            "trainer.num_return_sequences: is 4, and a pair has two completions\n    leave it out, or give 2");
  EXPECT_EQ(refused("trainer_type: online_dpo, beta: []"),
            "trainer.beta: is an empty list\n    give a number, or one for each epoch");
}

}  // namespace
}  // namespace easydel::train
