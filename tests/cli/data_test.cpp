// The commands of `easydel data`.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel {
namespace {

namespace fs = std::filesystem;

class DataCommands : public testing::Test {
 protected:
  DataCommands() {
    fs::create_directory_symlink(test::test_data("models/stories260K-hf"), folder_ / "model");
    test::write_file(folder_ / "rows.jsonl",
                     "{\"text\": \"One day, Max saw a hat.\"}\n{\"prompt\": \"One day, Max\", \"completion\": \" saw a "
                     "hat.\"}\n{\"text\": \"Once upon a time there was a very long story about a cat.\"}\n");
    run("");
  }
  void run(const std::string& mixture) {
    test::write_file(folder_ / "run.yaml",
                     "model: {name_or_path: model}\nmixture: {informs: [{data_files: rows.jsonl}]" + mixture +
                         "}\ntrainer: {save_directory: out, total_batch_size: 2, max_length: 16}\n");
  }
  test::Ran data(std::vector<std::string> words) const {
    words.insert(words.begin(), "data");
    words.insert(words.begin() + 2, "run.yaml");
    return test::run_program(words, {.environment = {{"NO_COLOR", "1"}}, .folder = folder_.path()});
  }
  test::TemporaryFolder folder_;
};

TEST_F(DataCommands, ShowMarksWhatIsLearned) {
  const test::Ran ran = data({"show", "--row", "rows.jsonl:2"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("rows.jsonl:2"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("<s> One day, Max\u27e6 saw a hat.\u27e7\u27e6</s>\u27e7\n"), std::string::npos) << ran.out;
}

TEST_F(DataCommands, ShowMarksWhatIsCut) {
  const test::Ran ran = data({"show", "--row", "2"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("\u27ea<s> Once upon a"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("about a cat.\u27e7"), std::string::npos) << ran.out;
  const test::Ran lines = data({"show", "--row", "2", "--tokens"});
  EXPECT_NE(lines.out.find("403\t\u2581Once\t\" Once\"\tcut\n"), std::string::npos) << lines.out;
}

TEST_F(DataCommands, ShowAsJsonHasUnshiftedLabels) {
  const test::Ran ran = data({"show", "--row", "1", "--json"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  const Value row = parse_json(ran.out);
  const auto numbers = [&](const char* name) {
    std::vector<int64_t> out;
    for (const Value& one : row.find(name)->items) out.push_back(*one.as_int());
    return out;
  };
  EXPECT_EQ(row.find("where")->items.at(0).scalar, "rows.jsonl:2");
  const std::vector<int64_t> tokens = numbers("tokens"), labels = numbers("labels");
  ASSERT_EQ(labels.size(), tokens.size());
  EXPECT_EQ(labels[0], -100);
  EXPECT_EQ(labels.back(), 2) << "the answer ends in </s>";
  size_t learned = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    EXPECT_TRUE(labels[i] == -100 || labels[i] == tokens[i]) << i;
    learned += labels[i] != -100;
  }
  EXPECT_EQ(learned, 6u) << ran.out;
  EXPECT_EQ(numbers("lengths"), std::vector<int64_t>{int64_t(tokens.size())});
  EXPECT_EQ(numbers("weights"), std::vector<int64_t>(tokens.size(), 1));
}

TEST_F(DataCommands, ShowChoosesRowsBySeedEpochAndPacking) {
  EXPECT_EQ(data({"show", "--random", "3"}).out, data({"show", "--random", "3"}).out);
  const test::Ran all = data({"show", "--epoch", "0", "--count", "3", "--json"});
  EXPECT_EQ(std::ranges::count(all.out, '\n'), 3) << all.err;
  EXPECT_EQ(data({"show", "--packed"}).err,
            "--packed: the run does not pack its rows\n    set mixture.pack_tokens: true, or leave --packed out\n");
  run(", pack_tokens: true");
  const test::Ran packed = data({"show", "--packed", "--json"});
  const Value lengths = *parse_json(packed.out).find("lengths");
  EXPECT_EQ(lengths.items.size(), parse_json(packed.out).find("where")->items.size());
  EXPECT_NE(data({"show", "--html"}).out.find("<b> One day, Max saw a hat.</b>"), std::string::npos)
      << data({"show", "--html"}).out;
}

TEST_F(DataCommands, ShowRefusesRowsThatAreNotThere) {
  EXPECT_EQ(data({"show", "--row", "3"}).err,
            "--row: mixture.informs[0] has no row '3'\n    give a number from 0 to 2, or a place such as "
            "train.jsonl:17\n");
  EXPECT_EQ(data({"show", "--inform", "x"}).err,
            "--inform: there is no inform 'x'\n    give its number from 0, or its name: rows\n");
}

TEST_F(DataCommands, CheckListsBadRowsAndWritesThemAll) {
  const test::Ran cut = data({"check"});
  EXPECT_EQ(cut.status, 1) << "the last row is cut";
  EXPECT_EQ(data({"check", "--set", "trainer.max_length=64"}).out, "3 rows, all good\n");
  test::write_file(folder_ / "rows.jsonl", "{\"text\": \"a\"}\n{\"txt\": \"a\"}\nnonsense\n");
  const test::Ran ran = data({"check", "--report", "bad.jsonl"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_TRUE(ran.out.starts_with("2 of 3 rows have problems\n\nthe row has no field 'text'; it has: txt  (1 row)\n"))
      << ran.out;
  const std::string report = test::read_file(folder_ / "bad.jsonl");
  EXPECT_NE(report.find("{\"where\": \"rows.jsonl:2\", \"inform\": \"mixture.informs[0]\", \"problem\": "),
            std::string::npos)
      << report;
  EXPECT_EQ(std::ranges::count(report, '\n'), 2);
}

TEST_F(DataCommands, CheckWarnsOfWhatIsTrainedAllTheSame) {
  test::write_file(folder_ / "rows.jsonl", "{\"prompt\": \"Once upon a ti\", \"completion\": \"me\"}\n");
  const test::Ran ran = data({"check", "--report", "warnings.jsonl"});
  EXPECT_EQ(ran.status, 0) << ran.out;
  EXPECT_TRUE(
      ran.out.starts_with("1 row, all can be used\n\nthe tokens of the prompt are not the first tokens of prompt "
                          "and answer, so its end is not what the model sees before it answers  (1 row; a "
                          "warning)\n"))
      << ran.out;
  EXPECT_NE(test::read_file(folder_ / "warnings.jsonl").find("\"warning\": true}"), std::string::npos);
}

TEST_F(DataCommands, StatsCountTokensAndPacking) {
  const test::Ran ran = data({"stats", "--json", "--output", "lengths.svg"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  const Value found = parse_json(ran.out);
  EXPECT_EQ(*found.find("informs")->items.at(0).find("rows")->as_int(), 3);
  EXPECT_EQ(found.find("packing")->items.size(), 5u);
  EXPECT_EQ(*found.find("updates_in_epoch")->as_int(), 2);
  EXPECT_NE(test::read_file(folder_ / "lengths.svg").find("<svg"), std::string::npos);
  EXPECT_NE(data({"stats"}).out.find("3 examples and 2 updates in an epoch"), std::string::npos);
}

TEST_F(DataCommands, OrderIsThatOfTheRun) {
  const test::Ran ran = data({"order", "--steps", "1..4"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  // Two updates an epoch, of two rows and of one: each epoch has every row once.
  std::map<std::string, int> seen;
  std::istringstream lines(ran.out);
  std::string step, name, where;
  while (lines >> step >> name >> where) {
    EXPECT_EQ(name, "rows");
    ++seen[where];
  }
  EXPECT_EQ(seen, (std::map<std::string, int>{{"rows.jsonl:1", 2}, {"rows.jsonl:2", 2}, {"rows.jsonl:3", 2}}));
  EXPECT_EQ(data({"order", "--steps", "4"}).out, ran.out.substr(ran.out.find("4\t")));
  EXPECT_EQ(data({"order", "--steps", "4..1"}).err,
            "--steps: '4..1' ends before it begins\n    for example 100..120\n");
}

TEST_F(DataCommands, AScheduleOfWeightsChangesTheSharesOfTheRun) {
  run(", block_mixture: true, mixture_block_size: 2, mixture_weight_schedule: {interpolation: linear, points: [{step: "
      "0, weights: {rows: 1, other: 0}}, {step: 2, weights: {rows: 0, other: 1}}]}");
  test::write_file(folder_ / "other.jsonl", "{\"text\": \"Once upon a time\"}\n");
  const std::string informs = "mixture.informs=[{data_files: rows.jsonl}, {data_files: other.jsonl}]";
  const test::Ran endless = data({"order", "--steps", "1", "--set", informs});
  EXPECT_EQ(endless.status, 2);
  EXPECT_NE(endless.err.find("mixture.mixture_weight_schedule: needs to know how long the run is\n    set "
                             "trainer.max_training_steps"),
            std::string::npos)
      << endless.err;
  const std::string steps = "trainer.max_training_steps=4";
  const test::Ran packed =
      data({"order", "--steps", "1..4", "--set", informs, "--set", steps, "--set", "mixture.pack_tokens=true"});
  EXPECT_TRUE(packed.out.starts_with("1\trows\t")) << packed.out << packed.err;
  EXPECT_EQ(packed.out.substr(packed.out.rfind("\n4\t")).find("rows\t"), std::string::npos) << packed.out;
  const test::Ran ran = data({"order", "--steps", "1..4", "--set", informs, "--set", steps});
  EXPECT_EQ(ran.status, 0) << ran.err;
  std::map<std::string, int> seen;
  std::istringstream lines(ran.out);
  std::string step, name, where;
  while (lines >> step >> name >> where) ++seen[step + " " + name];
  EXPECT_EQ(seen,
            (std::map<std::string, int>{{"1 rows", 2}, {"2 rows", 1}, {"2 other", 1}, {"3 other", 2}, {"4 other", 2}}));
}

// The same rows in the same updates: in memory, out of a store that the run builds, and out of one that is there; on
// one rank and on two, stopped and resumed.
TEST_F(DataCommands, ATokenStoreTrainsTheSameWeights) {
  std::string rows;
  for (int i = 0; i < 40; ++i)
    rows += str("{\"text\": \"One day, Max saw ", i, " hats", i % 3 ? " and a cat" : "", ".\"}\n");
  test::write_file(folder_ / "rows.jsonl", rows);
  run(", cache_dir: cache, cache_min_bytes: 1, pack_tokens: true");
  const std::string yaml = test::read_file(folder_ / "run.yaml") + "actions: [train]\n";
  test::write_file(folder_ / "run.yaml", yaml);
  const auto train = [&](const std::string& name, std::vector<std::string> keys) {
    std::vector<std::string> words{"run", "run.yaml", "--set", "trainer.model_name=" + name};
    for (std::string& key : keys) words.push_back(std::move(key));
    const test::Ran ran = test::run_program(words, {.folder = folder_.path()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.err;
  };
  const auto weights = [&](const std::string& name) {
    return test::read_file(folder_ / "out" / name / "run-6/model.safetensors");
  };
  const std::vector<std::string> six{"--set", "trainer.max_training_steps=6"};
  const std::string memory = train("memory", {six[0], six[1], "--set", "mixture.streaming=false"});
  EXPECT_EQ(memory.find("token store"), std::string::npos) << memory;
  EXPECT_FALSE(fs::exists(folder_ / "cache"));
  EXPECT_NE(train("built", six).find("was built"), std::string::npos);
  const std::string mapped = train("mapped", six);
  EXPECT_EQ(mapped.find("was built"), std::string::npos) << mapped;
  EXPECT_NE(mapped.find("out of the token store"), std::string::npos) << mapped;
  EXPECT_EQ(weights("built"), weights("memory"));
  EXPECT_EQ(weights("mapped"), weights("memory"));
  train("stopped", {"--set", "trainer.max_training_steps=3"});
  train("stopped", {six[0], six[1], "--set", "mixture.streaming=false"});
  EXPECT_EQ(weights("stopped"), weights("memory")) << "begun from the store, resumed in memory";
  fs::rename(folder_ / "rows.jsonl", folder_ / "moved.jsonl");
  test::write_file(folder_ / "run.yaml", test::replaced(yaml, "rows.jsonl", "moved.jsonl"));
  EXPECT_EQ(train("moved", six).find("was built"), std::string::npos) << "contents count, not paths";
  train("other", {six[0], six[1], "--set", "trainer.max_length=12"});
  const test::Ran listed = test::run_program({"data", "cache", "--cache-dir", "cache"}, {.folder = folder_.path()});
  EXPECT_EQ(std::ranges::count(listed.out, '\n'), 3) << "a heading and two stores: " << listed.out << listed.err;
}

// Rows that are read while the run goes on: whatever the number of threads, on one rank and on two, stopped and resumed
// five times, the rows of each update are those of a run in memory.
TEST_F(DataCommands, RowsReadWhileTheRunGoesOnTrainTheSameWeights) {
  std::string rows;
  for (int i = 0; i < 40; ++i)
    rows += str("{\"text\": \"One day, Max saw ", i, " hats", i % 3 ? " and a cat" : "", ".\"}\n");
  test::write_file(folder_ / "rows.jsonl", rows);
  run(", cache_dir: cache, cache_min_bytes: 1, enable_caching: false");
  test::write_file(folder_ / "run.yaml", test::read_file(folder_ / "run.yaml") + "actions: [train]\n");
  const auto train = [&](const std::string& name, const std::vector<std::string>& keys, int steps = 6, int ranks = 1) {
    std::vector<std::string> words{
        "run", "run.yaml", "--set", "trainer.model_name=" + name, "--set", str("trainer.max_training_steps=", steps)};
    for (const std::string& key : keys) words.insert(words.end(), {"--set", key});
    if (ranks > 1) words.insert(words.end(), {"--nproc", std::to_string(ranks)});
    const test::Ran ran = test::run_program(words, {.folder = folder_.path()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran.err;
  };
  const auto weights = [&](const std::string& name) {
    return test::read_file(folder_ / "out" / name / "run-6/model.safetensors");
  };
  const std::string in_memory = "mixture.streaming=false";
  EXPECT_EQ(train("memory", {in_memory}).find("while the run goes on"), std::string::npos);
  const std::string said = train("one", {"mixture.prefetch_workers=1", "mixture.prefetch_buffer_size=1"});
  EXPECT_NE(said.find("40 rows will be read and tokenized while the run goes on"), std::string::npos) << said;
  EXPECT_EQ(weights("one"), weights("memory"));
  train("three", {"mixture.prefetch_workers=3"});
  EXPECT_EQ(weights("three"), weights("memory"));
  for (int steps = 1; steps <= 6; ++steps) train("stopped", {}, steps);
  EXPECT_EQ(weights("stopped"), weights("memory"));
  EXPECT_TRUE(fs::exists(folder_ / "cache/rows")) << "the index of rows";
  train("memory-on-two", {in_memory}, 6, 2);
  train("two", {}, 6, 2);
  EXPECT_EQ(weights("two"), weights("memory-on-two"));
  const auto order = [&](const std::string& key) { return data({"order", "--steps", "3..23", "--set", key}).out; };
  EXPECT_FALSE(order(in_memory).empty());
  EXPECT_EQ(order("mixture.prefetch_workers=2"), order(in_memory));
}

TEST_F(DataCommands, PrepareBuildsAStoreAndCacheListsIt) {
  run(", cache_dir: cache");
  const auto cache = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"data", "cache", "--cache-dir", "cache"});
    return test::run_program(words, {.folder = folder_.path()});
  };
  EXPECT_EQ(cache({}).out, "no token stores in cache\n");
  const test::Ran ran = data({"prepare"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(ran.out.starts_with("cache/")) << ran.out;
  EXPECT_NE(ran.out.find("\t3 examples\t"), std::string::npos) << ran.out;
  const std::string key = ran.out.substr(6, 32);
  EXPECT_NE(cache({}).out.find(key), std::string::npos) << cache({}).out;
  EXPECT_NE(cache({key}).out.find("rows.jsonl"), std::string::npos);
  EXPECT_EQ(cache({"--verify"}).status, 0);
  const fs::path shard = folder_ / "cache" / key / "tokens-00000.safetensors";
  std::string bytes = test::read_file(shard);
  bytes.back() = char(bytes.back() ^ 1);
  test::write_file(shard, bytes);
  EXPECT_EQ(cache({"--verify"}).status, 1);
  const test::Ran broken = data({"prepare"});
  EXPECT_NE(broken.err.find("the token store is broken: tokens-00000.safetensors is not what was written"),
            std::string::npos)
      << broken.err;
  EXPECT_NE(broken.err.find("easydel data cache " + key + " --remove --cache-dir cache removes it"), std::string::npos)
      << broken.err;
  EXPECT_EQ(cache({key, "--remove"}).out, "1 store removed\n");
  EXPECT_EQ(cache({key}).status, 2);
  EXPECT_EQ(data({"prepare"}).out, ran.out);
  EXPECT_EQ(data({"prepare", "--set", "mixture.streaming=false"}).err,
            "mixture: the run keeps its tokens in memory\n    set enable_caching: true and streaming: true, and leave "
            "tokenization.keep_in_memory out\n");
}

// Without tokenizing: what the store says is shown, even where it is wrong.
TEST_F(DataCommands, OrderAndShowUseAStoreThatIsThere) {
  run(", cache_dir: cache, cache_min_bytes: 1");
  const auto order = [&](const std::string& key) { return data({"order", "--steps", "1..4", "--set", key}).out; };
  const auto shown = [&](const std::string& key) {
    return data({"show", "--epoch", "1", "--count", "3", "--json", "--set", key}).out;
  };
  const std::string memory = "mixture.streaming=false", store = "mixture.streaming=true";
  const std::string steps = order(memory), rows = shown(memory);
  EXPECT_EQ(std::ranges::count(steps, '\n'), 6) << steps;
  EXPECT_EQ(order(store), steps);
  EXPECT_EQ(test::run_program({"data", "cache", "--cache-dir", "cache"}, {.folder = folder_.path()}).out,
            "no token stores in cache\n")
      << "what is not there is not built";
  EXPECT_EQ(data({"prepare"}).status, 0);
  EXPECT_EQ(order(store), steps);
  EXPECT_EQ(shown(store), rows);
  // A broken store is refused, so it is used.
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "cache"))
    if (entry.path().filename() == "tokens-00000.safetensors") test::write_file(entry.path(), "x");
  for (const auto& words : {std::vector<std::string>{"order", "--steps", "1"}, {"show", "--epoch", "0"}}) {
    const test::Ran ran = data(words);
    EXPECT_EQ(ran.status, 2);
    EXPECT_NE(ran.err.find("the token store is broken"), std::string::npos) << ran.err;
  }
}

TEST_F(DataCommands, ShowTellsOfARowThatAStreamLeavesOut) {
  test::write_file(folder_ / "rows.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n");
  test::write_file(
      folder_ / "run.yaml",
      "model: {name_or_path: model}\nmixture: {informs: [{data_files: rows.jsonl, filter: \"{{ text != "
      "'b' }}\"}], enable_caching: false, cache_dir: cache, cache_min_bytes: 1}\ntrainer: {save_directory: "
      "out, total_batch_size: 2, max_length: 16, shuffle_train_dataset: false}\n");
  const test::Ran all = data({"show", "--epoch", "0", "--count", "3", "--tokens"});
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_NE(all.out.find("rows.jsonl:1"), std::string::npos) << all.out;
  EXPECT_EQ(all.out.find("rows.jsonl:2"), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("rows.jsonl:3"), std::string::npos) << all.out;
  const test::Ran one = data({"show", "--epoch", "0", "--row", "1"});
  EXPECT_EQ(one.status, 2);
  EXPECT_TRUE(one.err.ends_with(
      "\nrows.jsonl:2: training leaves the row out: it has nothing to learn, or the mixture's keys drop it\n    give "
      "another number; `easydel data order` prints the rows of each update\n"))
      << one.err;
  EXPECT_EQ(data({"order", "--steps", "1..2"}).out, "1\trows\trows.jsonl:1\n2\trows\trows.jsonl:3\n");
}

TEST_F(DataCommands, AFolderGivesTheRowsOfItsSplitsInSlices) {
  for (const char* split : {"train", "validation"})
    test::write_file(folder_ / "rows" / (std::string(split) + ".jsonl"),
                     str("{\"text\": \"", split, " a\"}\n{\"text\": \"", split, " b\"}\n"));
  run("");
  const std::string text =
      test::replaced(test::read_file(folder_ / "run.yaml"), "rows.jsonl", "rows, split: 'train[50%:]+validation[:1]'");
  test::write_file(folder_ / "run.yaml", text + "actions: [train]\n");
  const test::Ran shown = data({"show", "--count", "5", "--json"});
  EXPECT_EQ(std::ranges::count(shown.out, '\n'), 2) << shown.err;
  EXPECT_NE(shown.out.find("rows/train.jsonl:2"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("rows/validation.jsonl:1"), std::string::npos) << shown.out;
  const test::Ran valid = test::run_program({"validate", "run.yaml"}, {.folder = folder_.path()});
  EXPECT_EQ(valid.status, 0) << valid.err;
}

TEST_F(DataCommands, ARunSkipsBadRowsAndNamesThem) {
  test::write_file(folder_ / "rows.jsonl", "{\"text\": \"One day\"}\nnonsense\n{\"text\": \"Max saw a hat\"}\n{}\n");
  const auto train = [&](const std::string& keys) {
    run(keys);
    test::write_file(folder_ / "run.yaml", test::read_file(folder_ / "run.yaml") + "actions: [train]\n");
    return test::run_program({"run", "run.yaml", "--set", "trainer.max_training_steps=1"}, {.folder = folder_.path()});
  };
  EXPECT_EQ(train("").status, 2);
  const test::Ran few = train(", on_bad_row: skip, max_bad_rows: 1");
  EXPECT_NE(few.err.find("rows.jsonl:4: is bad row 2, and mixture.max_bad_rows is 1: the row has no field 'text'"),
            std::string::npos)
      << few.err;
  const test::Ran ran = train(", on_bad_row: skip");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.err.find("2 bad rows were skipped:\n    rows.jsonl:2:1: "), std::string::npos) << ran.err;
  const Value state = parse_json(test::read_file(folder_ / "out/model/run-1/state.json"));
  const Value* const bad = state.find("bad_rows");
  ASSERT_NE(bad, nullptr);
  EXPECT_EQ(*bad->find("count")->as_int(), 2);
  EXPECT_EQ(bad->find("first")->items.size(), 2u);
}

}  // namespace
}  // namespace easydel
