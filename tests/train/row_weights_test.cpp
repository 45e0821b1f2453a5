// Weights of rows and messages in the methods that weigh, and their refusal by the others.
#include <gtest/gtest.h>

#include "easydel/train/trainer.h"
#include "support/data.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

using test::small_run, test::TemporaryFolder, test::weights_of;

// The model after two updates.
std::string trained(const TemporaryFolder& folder, const std::string& trainer, const std::string& inform) {
  TrainerParts parts = small_run(
      folder.path(), str("{resume_if_possible: false, do_last_save: false, max_training_steps: 2, ", trainer, "}"),
      str("{informs: [{", inform, "}]}"));
  parts.tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-chat"));
  models::LoadOptions load = parts.load;
  load.training = false;
  auto teacher = models::load_model(test::test_data("models/stories260K-hf"), load);
  {
    const c10::AutoGradMode no_grad(false);
    for (nn::Entry& entry : teacher->parameters().entries())
      if (entry.path.find("down_proj") != std::string::npos) entry.shard.mul_(0.9), entry.written();
  }
  parts.side.teacher.model = std::move(teacher);
  Trainer run(std::move(parts));
  run.run();
  return weights_of(run.model());
}

// Rows of prompts with answers, and the weights of three columns.
std::string weighted_rows(const TemporaryFolder& folder) {
  std::string rows;
  const double weights[] = {0.5, 2, 1, 0.25, 3, 1, 1.5, 0.75};
  for (int i = 0; i < 8; ++i)
    rows += str(R"({"prompt": "Once upon a time there was a )", i % 2 ? "dog" : "cat", R"( who had )", i,
                R"( balls", "completion": " and a hat.", "w": )", weights[i], R"(, "twice": )", 2 * weights[i],
                R"(, "one": 1})", "\n");
  test::write_file(folder / "weighted.jsonl", rows);
  return "data_files: \"" + (folder / "weighted.jsonl").string() + "\"";
}

class RowWeights : public testing::TestWithParam<const char*> {};

TEST_P(RowWeights, CountInItsLossByTheirRatio) {
  const test::LogLines log;
  const TemporaryFolder folder;
  const std::string rows = weighted_rows(folder);
  const std::string plain = trained(folder, GetParam(), rows),
                    one = trained(folder, GetParam(), rows + ", weight_field: one"),
                    weighted = trained(folder, GetParam(), rows + ", weight_field: w"),
                    doubled = trained(folder, GetParam(), rows + ", weight_field: twice");
  EXPECT_EQ(one, plain);
  EXPECT_NE(weighted, plain);
  EXPECT_EQ(doubled, weighted) << "to the bit";
}

INSTANTIATE_TEST_SUITE_P(Methods, RowWeights,
                         testing::Values("trainer_type: sft", "trainer_type: base", "trainer_type: distillation",
                                         "trainer_type: distillation, beta: 0.5",
                                         "trainer_type: sparse_distillation, top_k_teacher: 8",
                                         "trainer_type: gkd, lmbda: 0",
                                         "trainer_type: gkd, lmbda: 1, max_new_tokens: 5",
                                         "trainer_type: seq_kd, max_completion_length: 5",
                                         "trainer_type: on_policy_distillation, max_completion_length: 5"));

class MessageWeights : public testing::TestWithParam<const char*> {};

TEST_P(MessageWeights, OfZeroAreAMask) {
  const test::LogLines log;
  const TemporaryFolder folder;
  const auto trained_with = [&](const std::string& mark) {
    std::string rows;
    for (int i = 0; i < 8; ++i)
      rows += str(R"({"messages": [{"role": "user", "content": "Who had )", i,
                  R"( balls?"}, {"role": "assistant", "content": "The dog.")", mark,
                  R"(}, {"role": "user", "content": "And then?"}, {"role": "assistant", "content": "A hat."}]})", "\n");
    test::write_file(folder / "talk.jsonl", rows);
    return trained(folder, GetParam(),
                   "data_files: \"" + (folder / "talk.jsonl").string() + "\", roles_to_train: [assistant]");
  };
  const std::string masked = trained_with(R"(, "train": false)");
  EXPECT_EQ(trained_with(R"(, "weight": 0)"), masked);
  EXPECT_NE(trained_with(""), masked);
}

// Those that learn every answer of a conversation; gkd learns the last one.
INSTANTIATE_TEST_SUITE_P(Methods, MessageWeights,
                         testing::Values("trainer_type: sft", "trainer_type: base", "trainer_type: distillation",
                                         "trainer_type: sparse_distillation, top_k_teacher: 8"));

std::string refused(const std::string& trainer, const std::string& row, const data::FieldRules& rules = {}) {
  TrainerSection section;
  config::read(parse_yaml(trainer), section, "t").throw_if_any();
  const auto tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-chat"));
  const auto method = build_method({section, {}, tokenizer, nullptr});
  const data::Prepare prepare = preparation(*method, section.method());
  return test::refusal([&] { prepare(data::typed({parse_json(row), "a.jsonl:1"}, rules)); });
}

TEST(OtherMethods, RefuseWeights) {
  data::FieldRules weighted;
  weighted.weight_field = "w";
  const std::string others =
      "; weights are for trainer_type: base, distillation, gkd, on_policy_distillation, ray, seq_kd, sft, "
      "sparse_distillation";
  EXPECT_EQ(refused("trainer_type: dpo", R"({"prompt": "a", "chosen": "b", "rejected": "c", "w": 2})", weighted),
            "a.jsonl:1: the row has a weight, which trainer_type dpo does not use\n"
            "    leave the inform's weight_field out" +
                others);
  EXPECT_EQ(refused("trainer_type: dpo", R"({"prompt": "a", "chosen": "b", "rejected": "c", "w": 1})", weighted),
            "(nothing was refused)");
  const auto pair = [](const std::string& mark) {
    return R"({"prompt": [{"role": "user", "content": "a"}], "chosen": [{"role": "assistant", "content": "b")" + mark +
           R"(}], "rejected": [{"role": "assistant", "content": "c"}]})";
  };
  const std::string message =
      "a.jsonl:1: a message has a weight or train: false, which trainer_type cpo does not use\n    leave it out" +
      others;
  EXPECT_EQ(refused("trainer_type: cpo", pair(R"(, "weight": 0.5)")), message);
  EXPECT_EQ(refused("trainer_type: cpo", pair(R"(, "train": false)")), message);
  EXPECT_EQ(refused("trainer_type: cpo", pair(R"(, "weight": 1)")), "(nothing was refused)");
}

}  // namespace
}  // namespace easydel::train
