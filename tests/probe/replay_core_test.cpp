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
  for (size_t i = 0; i < steps.size(); ++i)
    if (const Value* routers = steps[i].find("metrics")->find("aux_loss")) {
      const Value* ours = lines[i].find("metrics")->find("aux_loss");
      ASSERT_TRUE(ours) << case_file;
      EXPECT_NEAR(*ours->as_double(), *routers->as_double(), 1e-3) << case_file << " step " << i + 1;
    }
}

TEST(Replay, RecordedRunsOfTheRepository) {
  const auto root = test::test_data("");
  for (const char* name :
       {"sft/plain", "sft/accum4", "sft/packing_bfd", "sft/label_smoothing", "sft/qwen3_moe_aux", "dpo/loss_sigmoid",
        "distillation/gkd_beta0.1", "distillation/jsd_beta0.5", "peft/curve_sft_lora", "peft/curve_dpo_lora"})
    expect_as_recorded(root / "trl" / (std::string(name) + ".json"), root);
}

TEST(Replay, AllSharedRunsOfWhatIsBuilt) {
  const auto root = test::shared_data();
  if (!root) GTEST_SKIP() << "no shared data";
  for (const char* group : {"sft", "dpo", "distillation", "peft"})
    for (const auto& entry : std::filesystem::directory_iterator(*root / "trl_goldens" / group)) {
      const std::string name = entry.path().stem().string();
      if (entry.path().extension() != ".json") continue;
      const bool later = name == "wpo_weighting";
      if (!later) expect_as_recorded(entry.path(), *root);
    }
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
