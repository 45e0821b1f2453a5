#include <gtest/gtest.h>

#include <cmath>

#include "easydel/base/document.h"
#include "easydel/base/files.h"
#include "easydel/data/rows.h"
#include "easydel/probe/replay.h"
#include "support/data.h"
#include "train/small_run.h"

namespace easydel::probe {
namespace {

// As check_trl_goldens.py: 1e-4 for the first five steps, 1e-3 later, never tighter than 20 times what fp64 differs by.
void expect_as_recorded(const std::filesystem::path& case_file, const std::filesystem::path& root) {
  const test::LogLines log;
  const Value gold = parse_file(case_file);
  const Replay run = replay(case_file, root);
  std::vector<Value> lines;
  for (size_t at = 0; at < run.lines.size(); at = run.lines.find('\n', at) + 1)
    lines.push_back(parse_json(std::string_view(run.lines).substr(at, run.lines.find('\n', at) - at)));
  const auto& steps = gold.find("steps")->items;
  ASSERT_EQ(lines.size(), steps.size()) << case_file;
  for (size_t i = 0; i < steps.size(); ++i)
    for (const auto& [ours, theirs] : {std::pair{"loss", "loss"}, {"grad_norm", "grad_norm"}, {"lr", "lr_used"}}) {
      const double got = *lines[i].find(ours)->as_double(), want = *steps[i].find(theirs)->as_double();
      double tolerance = i < 5 ? 1e-4 : 1e-3;
      if (const Value* noise = gold.find("fp64_rerun"))
        if (const Value* floor = noise->find(str("rel_", ours)); floor && i < floor->items.size())
          tolerance = std::max(tolerance, 20 * floor->items[i].as_double().value_or(0));
      EXPECT_NEAR(got, want, 1e-6 + tolerance * std::abs(want)) << case_file << " step " << i + 1 << " " << ours;
    }
  // Shares of few tokens move by one token.
  const auto counted = [](const std::string& name) {
    return name.find("accurac") != std::string::npos || name.find("clip") != std::string::npos;
  };
  for (size_t i = 0; i < steps.size(); ++i)
    for (const auto& [name, value] : steps[i].find("metrics")->entries) {
      const Value* const ours = lines[i].find("metrics")->find(name);
      // What a generation is judged by is reported with the step that it is sampled for.
      const bool of_generation = gold.find("config")->find("num_generations") &&
                                 (name.starts_with("reward") || name.starts_with("completions/"));
      EXPECT_TRUE(ours || !of_generation) << case_file << " step " << i + 1 << " " << name;
      if (!ours || !value.as_double() || name == "epoch" || name == "num_tokens") continue;
      const double want = *value.as_double(), within = counted(name) ? 0.02 : 1e-5;
      EXPECT_NEAR(*ours->as_double(), want, within + 1e-3 * std::abs(want))
          << case_file << " step " << i + 1 << " " << name;
    }
}

TEST(Replay, RecordedRunsOfTheRepository) {
  const auto root = test::test_data("");
  for (const char* name : {"sft/plain",
                           "sft/accum4",
                           "sft/packing_bfd",
                           "sft/label_smoothing",
                           "sft/qwen3_moe_aux",
                           "dpo/loss_sigmoid",
                           "peft/curve_sft_lora",
                           "peft/curve_dpo_lora",
                           "dpo/wpo_weighting",
                           "dpo_trl024/alpha_divergence",
                           "dpo_trl024/bco_pair_running_delta",
                           "dpo_trl024/ipo_average",
                           "dpo_trl024/rpo_alpha",
                           "orpo/orpo",
                           "cpo/alphapo",
                           "cpo/cpo_hinge",
                           "tpo/tpo-l",
                           "kto/kto_weights",
                           "bco/bco",
                           "reward/margin",
                           "prm/prm",
                           "distillation/gkd_beta0.1",
                           "distillation/jsd_beta0.5",
                           "grpo/loss_dapo",
                           "grpo/sync_ref",
                           "grpo/entropy_bonus",
                           "grpo/gmpo",
                           "rloo/offpolicy",
                           "rloo/clip_range",
                           "rloo/clip_range_normalized",
                           "online_dpo/sigmoid",
                           "xpo/sigmoid",
                           "xpo/ipo_penalty",
                           "nash_md/nash_md",
                           "nash_md/penalty",
                           "ppo/ppo",
                           "ppo/two_epochs"})
    expect_as_recorded(root / "trl" / (std::string(name) + ".json"), root);
}

TEST(Replay, AllSharedRunsOfWhatIsBuilt) {
  const auto root = test::shared_data();
  if (!root) GTEST_SKIP() << "no shared data";
  for (const char* group : {"sft", "dpo", "dpo_trl024", "distillation", "peft", "orpo", "cpo", "tpo", "kto", "bco",
                            "reward", "prm", "grpo", "rloo", "online_dpo"})
    for (const auto& entry : std::filesystem::directory_iterator(*root / "trl_goldens" / group)) {
      if (entry.path().extension() != ".json" || !parse_file(entry.path()).find("steps")) continue;
      // The recording does not say how far fp64 is from it; the copy in tests/data does (scripts/fp64_floor.py), and
      // passes above.
      if (entry.path().stem() == "alpha_divergence" && std::string_view(group) == "dpo_trl024") continue;
      expect_as_recorded(entry.path(), *root);
    }
}

void expect_advantages(const Value& document, const std::string& lines) {
  size_t at = 0;
  for (const Value& generation : document.find("generations")->items) {
    const size_t end = lines.find('\n', at);
    ASSERT_NE(end, std::string::npos);
    const Value ours = parse_json(std::string_view(lines).substr(at, end - at));
    EXPECT_EQ(ours.find("step")->as_int(), generation.find("step")->as_int());
    const auto &got = ours.find("advantages")->items, &want = generation.find("advantages")->items;
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(*got[i].as_double(), *want[i].as_double(), 1e-5);
    at = end + 1;
  }
  EXPECT_EQ(at, lines.size());
}

TEST(Replay, TellsTheAdvantagesOfRecordedGenerations) {
  const auto root = test::test_data("");
  for (const char* name : {"grpo/loss_dapo", "rloo/offpolicy", "rloo/clip_range", "rloo/clip_range_normalized"}) {
    SCOPED_TRACE(name);
    const test::LogLines log;
    const auto file = root / "trl" / (std::string(name) + ".json");
    expect_advantages(parse_file(file), replay(file, root).generations);
  }
}

// The recording of TRL's clip_range leaves out the range. None of its rewards is below 1.1, and all its advantages are
// those of equal rewards.
TEST(Replay, TheRangeOfRewardsThatTheRecordingLeavesOutIsBelowAllOfThem) {
  const auto root = test::shared_data();
  if (!root) GTEST_SKIP() << "no shared data";
  const test::TemporaryFolder folder;
  const auto recorded = *root / "trl_goldens/rloo";
  std::filesystem::create_directories(folder.path() / "batches");
  std::filesystem::copy(recorded / "batches", folder.path() / "batches");
  Value document = parse_file(recorded / "clip_range.json");
  document.find("config")->set("reward_clip_range", parse_json("[-1, 1]"));
  test::write_file(folder / "case.json", to_json(document));
  const test::LogLines log;
  expect_advantages(document, replay(folder / "case.json", *root).generations);
}

TEST(Replay, AnArgumentThatIsNotBuiltIsRefusedByName) {
  const test::TemporaryFolder folder;
  const auto root = test::test_data("");
  Value document = parse_file(root / "trl/sft/plain.json");
  std::filesystem::create_directories(folder / "trl/sft/batches");
  for (const auto& entry : std::filesystem::directory_iterator(root / "trl/sft/batches"))
    std::filesystem::copy(entry.path(), folder.path() / "trl/sft/batches");
  const auto with = [&](const char* key, Value value) {
    Value changed = document;
    changed.find("config")->set(key, std::move(value));
    const auto file = folder / "trl/sft/case.json";
    test::write_file(file, to_json(changed));
    return test::replaced(test::refusal([&] { replay(file, root); }), file.string(), "CASE");
  };
  EXPECT_EQ(with("optim", Value::text("adamw_8bit")), "CASE: config.optim = adamw_8bit is not built yet");
  EXPECT_EQ(with("neftune_noise_alpha", Value::integer(5)), "CASE: config.neftune_noise_alpha = 5 is not built yet");
  EXPECT_EQ(with("lr_scheduler_type", Value::text("greedy")),
            "CASE: config.lr_scheduler_type = greedy is not built yet");
}

}  // namespace
}  // namespace easydel::probe
