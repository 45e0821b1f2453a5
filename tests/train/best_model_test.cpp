#include "easydel/train/best_model.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::train {
namespace {

BestModel best_of(const std::string& keys) {
  TrainerConfig config;
  config::read(parse_yaml(keys), config, "trainer").throw_if_any();
  return BestModel(config);
}

EvaluationReport evaluation(int64_t step, double loss, double accuracy = 0) {
  EvaluationReport out;
  out.step = step, out.loss = loss;
  out.metrics = {{"mean_token_accuracy", accuracy}};
  return out;
}

constexpr const char* early = "do_eval: true, early_stopping_patience: 2, early_stopping_threshold: 0.1";

TEST(BestModel, StopsAfterEvaluationsThatAreNotBetterByTheThreshold) {
  BestModel best = best_of(str("{", early, "}"));
  const double losses[] = {3.0, 2.5, 2.45, 2.6};
  const bool is_best[] = {true, true, true, false}, stops[] = {false, false, false, true};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(best.evaluated(evaluation(i + 1, losses[i])), is_best[i]) << i;
    EXPECT_EQ(best.stops(), stops[i]) << i;
  }
  EXPECT_EQ(best.step(), 3) << "a little better is better, but does not keep the run going";
}

TEST(BestModel, GoesOnFromItsState) {
  const std::string keys = str("{", early, ", scheduler: reduce_on_plateau, scheduler_kwargs: {patience: 0}}");
  BestModel before = best_of(keys), after = best_of(keys);
  for (const double loss : {2.0, 2.1}) before.evaluated(evaluation(4, loss));
  after.restore(before.state());
  EXPECT_EQ(after.rate_scale(), before.rate_scale());
  EXPECT_LT(after.rate_scale(), 1);
  EXPECT_FALSE(after.stops());
  EXPECT_FALSE(after.evaluated(evaluation(6, 2.2)));
  EXPECT_TRUE(after.stops());
  EXPECT_EQ(after.step(), 4);
}

TEST(BestModel, FollowsTheMetricThatWasNamed) {
  BestModel best =
      best_of("{do_eval: true, load_best_model_at_end: true, metric_for_best_model: eval_mean_token_accuracy}");
  EXPECT_TRUE(best.evaluated(evaluation(1, 2.0, 0.3)));
  EXPECT_FALSE(best.evaluated(evaluation(2, 1.0, 0.2)));
  EXPECT_TRUE(best.evaluated(evaluation(3, 3.0, 0.4))) << "greater is better, as the name does not end in loss";
  BestModel perplexity = best_of("{do_eval: true, load_best_model_at_end: true, metric_for_best_model: perplexity}");
  for (const double value : {9.0, 8.0}) {
    EvaluationReport report = evaluation(1, 2.0);
    report.metrics = {{"perplexity", value}};
    EXPECT_TRUE(perplexity.evaluated(report)) << "smaller is better";
  }
  BestModel unknown = best_of("{do_eval: true, load_best_model_at_end: true, metric_for_best_model: margin}");
  EXPECT_EQ(test::refusal([&] { unknown.evaluated(evaluation(1, 2.0)); }),
            "trainer.metric_for_best_model: 'margin' is not reported by the evaluations\n"
            "    they report loss, mean_token_accuracy");
}

TEST(BestModel, NeedsEvaluations) {
  EXPECT_EQ(test::refusal([] { best_of("{early_stopping_patience: 3}"); }),
            "trainer:1:27: early_stopping_patience: early stopping needs evaluations\n"
            "    set do_eval: true or evaluation_steps, and give held-out data\n"
            "1 problem in trainer; nothing was run.");
}

// torch 2.13.0: ReduceLROnPlateau(SGD(lr=0.1), factor=0.5, patience=1, cooldown=1, min_lr=0.02, threshold=0.01), the
// rate after each of these metrics.
TEST(Plateau, LowersTheRateAsTorchDoes) {
  SchedulerArguments arguments;
  arguments.factor = 0.5, arguments.patience = 1, arguments.cooldown = 1, arguments.min_lr = 0.02;
  arguments.threshold = 0.01;
  Plateau plateau(arguments, 0.1, false);
  const double metrics[] = {1.0, 0.995, 0.996, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8},
               rates[] = {0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025, 0.02, 0.02, 0.02, 0.02, 0.02};
  for (size_t i = 0; i < std::size(metrics); ++i) {
    plateau.evaluated(metrics[i]);
    EXPECT_DOUBLE_EQ(0.1 * plateau.scale(), rates[i]) << i;
  }
}

}  // namespace
}  // namespace easydel::train
