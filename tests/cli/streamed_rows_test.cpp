// Runs whose rows are read while they go on: which rows each update has, and what becomes of the weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "easydel/base/document.h"
#include "easydel/base/names.h"
#include "support/data.h"

namespace easydel {
namespace {

namespace fs = std::filesystem;

class StreamedRows : public testing::Test {
 protected:
  StreamedRows() {
    fs::create_directory_symlink(test::test_data("models/stories260K-hf"), folder_ / "model");
    std::string rows;
    for (int i = 0; i < 60; ++i)
      rows += str("{\"text\": \"One day, Max saw ", i, " hats", i % 3 ? " and a cat" : "", ".\"}\n");
    test::write_file(folder_ / "rows.jsonl", rows);
    test::write_file(folder_ / "run.yaml",
                     "model: {name_or_path: model}\nmixture: {informs: [{data_files: rows.jsonl}], cache_dir: cache, "
                     "cache_min_bytes: 1, enable_caching: false}\ntrainer: {save_directory: out, total_batch_size: 6, "
                     "max_length: 40}\nactions: [train]\n");
  }
  test::Ran program(std::vector<std::string> words, const std::vector<std::string>& keys) const {
    for (const std::string& key : keys) words.insert(words.end(), {"--set", key});
    return test::run_program(words, {.folder = folder_.path()});
  }
  // The trained weights of a run of so many steps.
  std::string trained(const std::string& name, std::vector<std::string> keys, int steps = 6, int ranks = 1) const {
    keys.insert(keys.end(), {"trainer.model_name=" + name, str("trainer.max_training_steps=", steps)});
    std::vector<std::string> words{"run", "run.yaml"};
    if (ranks > 1) words.insert(words.end(), {"--nproc", std::to_string(ranks)});
    const test::Ran ran = program(words, keys);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return test::read_file(folder_ / "out" / name / str("run-", steps) / "model.safetensors");
  }
  const test::TemporaryFolder folder_;
};

// An epoch has five updates, so the sixth is of the second one.
TEST_F(StreamedRows, ArePackedIntoTheRowsOfMemory) {
  for (const std::string window : {"60", "25"}) {
    const std::vector<std::string> packs{"mixture.pack_tokens=true", "mixture.pack_window=" + window};
    const auto with = [&](const std::string& key) {
      std::vector<std::string> out = packs;
      out.push_back(key);
      return out;
    };
    const std::string memory = trained("memory" + window, with("mixture.streaming=false"));
    EXPECT_EQ(trained("one" + window, with("mixture.prefetch_workers=1")), memory);
    if (window == "25") {
      EXPECT_EQ(trained("three", with("mixture.prefetch_workers=3")), memory);
      std::string stopped;
      for (int steps = 1; steps <= 6; ++steps) stopped = trained("stopped", packs, steps);
      EXPECT_EQ(stopped, memory);
      EXPECT_EQ(trained("two", packs, 6, 2), trained("memory-on-two", with("mixture.streaming=false"), 6, 2));
    }
    const auto order = [&](const std::string& key) {
      const test::Ran ran = program({"data", "order", "run.yaml", "--steps", "2..7"}, with(key));
      EXPECT_EQ(ran.status, 0) << ran.err;
      return ran.out;
    };
    const std::string steps = order("mixture.streaming=false");
    EXPECT_GT(std::ranges::count(steps, '\n'), 18) << steps;
    EXPECT_EQ(order("mixture.prefetch_workers=2"), steps);
    const auto shown = [&](const std::string& key) {
      return program({"data", "show", "run.yaml", "--packed", "--epoch", "1", "--row", "3", "--count", "2", "--json"},
                     with(key))
          .out;
    };
    EXPECT_EQ(std::ranges::count(shown("mixture.streaming=false"), '\n'), 2);
    EXPECT_EQ(shown("mixture.prefetch_workers=2"), shown("mixture.streaming=false"));
  }
}

// Each rank prepares its own part of an update, and what it has skipped counts for all.
TEST_F(StreamedRows, BadOnesOfAllRanksAreCountedOnce) {
  std::string rows = test::read_file(folder_ / "rows.jsonl");
  for (int i = 0; i < 60; ++i)
    if (i % 7 == 2)
      rows = test::replaced(rows, str("{\"text\": \"One day, Max saw ", i, " "), str("nonsense ", i, " "));
  test::write_file(folder_ / "rows.jsonl", rows);
  const std::vector<std::string> keys{"mixture.on_bad_row=skip"};
  for (const int ranks : {1, 2}) {
    const std::string name = str("ranks-", ranks);
    trained(name, keys, 10, ranks);
    const Value state = parse_file(folder_ / "out" / name / "run-10/state.json");
    const Value* const bad = state.find("bad_rows");
    ASSERT_TRUE(bad) << to_json(state);
    EXPECT_EQ(bad->find("count")->scalar, "9");
    std::set<std::string> named;
    for (const Value& row : bad->find("first")->items) named.insert(row.scalar);
    EXPECT_EQ(named.size(), 9u);
  }
}

TEST_F(StreamedRows, ThePlanSpeaksOfTheFirstRows) {
  const test::Ran ran = program({"run", "run.yaml"}, {"trainer.max_training_steps=1"});
  EXPECT_EQ((ran.out + ran.err).find("mistakes"), std::string::npos) << ran.out << ran.err << "every row ends in </s>";
}

TEST_F(StreamedRows, ArePackedForARunOfKnownLength) {
  const test::Ran ran = program({"run", "run.yaml"}, {"mixture.pack_tokens=true"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(
      ran.err.find("trainer.max_training_steps: rows are packed while the run goes on, so the number of "
                   "updates in an epoch is not known\n    set it; `easydel data stats` counts the updates of an epoch"),
      std::string::npos)
      << ran.err;
  EXPECT_EQ(program({"validate", "run.yaml"}, {"mixture.pack_tokens=true"}).status, 2);
  const test::Ran stats = program({"data", "stats", "run.yaml"}, {"mixture.pack_tokens=true"});
  EXPECT_NE(stats.out.find("examples and 5 updates"), std::string::npos) << stats.out << stats.err;
  const test::Ran shown =
      program({"data", "show", "run.yaml", "--packed", "--row", "99"}, {"mixture.pack_tokens=true"});
  EXPECT_NE(shown.err.find("--row: there is no example '99'\n    give a number from 0 to "), std::string::npos)
      << shown.err;
}

}  // namespace
}  // namespace easydel
