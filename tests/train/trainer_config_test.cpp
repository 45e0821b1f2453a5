#include "easydel/train/trainer_config.h"

#include <gtest/gtest.h>

#include "easydel/config/fields.h"
#include "support/data.h"

namespace easydel::train {
namespace {

TEST(TrainerConfig, TimesAreRead) {
  EXPECT_EQ(seconds_of("30s"), 30.0);
  EXPECT_EQ(seconds_of("50min"), 3000.0);
  EXPECT_EQ(seconds_of("1.5h"), 5400.0);
  EXPECT_EQ(seconds_of("5"), std::nullopt);
  EXPECT_EQ(seconds_of("1h30m"), 5400.0);
  EXPECT_EQ(seconds_of("1d 2h 3min 4s"), 93784.0);
  EXPECT_EQ(seconds_of("30m1h"), std::nullopt);
  EXPECT_EQ(seconds_of("1h1h"), std::nullopt);
  EXPECT_EQ(seconds_of("1h30"), std::nullopt);
  EXPECT_EQ(seconds_of("infs"), std::nullopt);
}

TrainerConfig read(const std::string& keys) {
  TrainerConfig out;
  config::read(parse_yaml(keys), out, "trainer").throw_if_any();
  return out;
}

std::string refused(const std::string& keys) {
  TrainerConfig out;
  const auto found = config::read(parse_yaml(keys), out, "run.yaml").sorted();
  return found.empty() ? "" : found.front().path + ": " + found.front().what;
}

TEST(TrainerConfig, SettlesKeysThatSayTheSame) {
  const TrainerConfig chunk = read("{lmhead_chunksize: 64}");
  EXPECT_EQ(chunk.loss().chunk_token_size, 64);
  EXPECT_EQ(read("{per_epoch_evaluation_steps: 5}").max_evaluation_steps, 5);
  EXPECT_FALSE(read("{}").do_eval);
  EXPECT_TRUE(read("{evaluation_steps: 3}").do_eval);
  EXPECT_TRUE(read("{eval_on_start: true}").do_eval);
}

TEST(TrainerConfig, RefusesKeysThatContradict) {
  EXPECT_EQ(refused("{lmhead_chunksize: 64, loss_config: {chunk_token_size: 32}}"),
            "lmhead_chunksize: 64 here and 32 in loss_config.chunk_token_size");
  EXPECT_EQ(refused("{total_batch_size: 9, gradient_accumulation_steps: 2}"),
            "total_batch_size: an update of 9 examples does not divide into 2 accumulation steps");
  EXPECT_EQ(refused("{learning_rate: 0.1, learning_rate_end: 0.2}"),
            "learning_rate_end: 0.2 is above learning_rate, 0.1");
  EXPECT_EQ(refused("{training_time_limit: soon}"), "training_time_limit: 'soon' is not a duration");
  EXPECT_EQ(refused("{frozen_parameters: \"(\"}"), "frozen_parameters: '(' is not a regular expression");
  EXPECT_EQ(refused("{}"), "");
}

TEST(TrainerConfig, AnUpdateDividesIntoRanksAndMicroBatches) {
  const TrainerConfig config = read("{total_batch_size: 8, gradient_accumulation_steps: 2}");
  check_update_divides(config, 4);
  EXPECT_EQ(test::refusal([&] { check_update_divides(config, 3); }),
            "trainer.total_batch_size: 8 examples cannot be divided by 3 ranks and 2 micro-batches "
            "(gradient_accumulation_steps)\n    give a multiple of 6");
}

TEST(TrainerConfig, DoEvalThatIsGivenWins) {
  EXPECT_FALSE(read("{do_eval: false, evaluation_steps: 5}").do_eval);
  EXPECT_FALSE(read("{do_eval: false, eval_on_start: true}").do_eval);
}

TEST(TrainerConfig, NumbersWithLimitsAreFinite) {
  for (const char* const number : {".inf", ".nan", "-.inf"})
    EXPECT_TRUE(refused(str("{learning_rate: ", number, "}")).starts_with("learning_rate: ")) << number;
}

TEST(TrainerConfig, PathsAreExpanded) {
  setenv("EASYDEL_TEST_DISK", "/disk", 1);
  EXPECT_EQ(read("{save_directory: $EASYDEL_TEST_DISK/runs}").save_directory, "/disk/runs");
  EXPECT_EQ(refused("{save_directory: \"\"}"), "save_directory: is empty");
}

}  // namespace
}  // namespace easydel::train
