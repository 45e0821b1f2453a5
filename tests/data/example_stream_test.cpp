#include "easydel/data/example_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "easydel/base/error.h"
#include "support/data.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;
using test::refusal;

// A token for each of the first letters of a text; "-" is a row without labels.
Prepared prepare_letters(const TypedRow& row) {
  Prepared out;
  if (row.text.scalar == "bad") refuse(row.where, "is bad");
  if (row.text.scalar == "-") return out;
  std::vector<int32_t> ids;
  for (const char c : row.text.scalar.substr(0, 12)) ids.push_back(uint8_t(c));
  out.example.emplace().add_sequence(ids);
  return out;
}

class ExampleStreams : public testing::Test {
 protected:
  // Rows "0 xxx", "1 xxx" ... of about so many bytes.
  void write(const std::string& name, int rows, size_t bytes = 20) {
    std::string text;
    for (int i = 0; i < rows; ++i) text += str("{\"text\": \"", i, " ", std::string(bytes, 'x'), "\"}\n");
    test::write_file(folder_ / name, text);
  }
  DatasetOptions options(const std::vector<std::string>& names) const {
    DatasetOptions out;
    for (const std::string& name : names) {
      InformConfig& inform = out.informs.emplace_back();
      inform.type = "jsonl";
      inform.data_files = {(folder_ / name).string()};
    }
    out.shuffled = true;
    out.seed = 7;
    return out;
  }
  static DatasetOptions streamed(DatasetOptions options, int64_t workers = 2) {
    options.stream = {.cache = {}, .min_bytes = 0, .window_rows = 1, .workers = workers, .settings = {}};
    return options;
  }
  Dataset build(const DatasetOptions& options) const { return Dataset::build(options, prepare_letters); }
  // The first letters of the examples at places of an epoch; "none" of a row without one.
  static std::vector<std::string> epoch(const Dataset& set, int64_t epoch, int64_t ahead = 0) {
    std::vector<std::string> out;
    for (int64_t i = 0; i < set.size(); ++i) {
      if (ahead > 0 && i % ahead == 0) {
        std::vector<int64_t> next;
        for (int64_t k = i; k < std::min(set.size(), i + ahead); ++k) next.push_back(set.index(epoch, k));
        set.announce(next, false);
      }
      const std::optional<Example> example = set.find(set.index(epoch, i));
      out.emplace_back(example ? std::string(example->tokens.begin(), example->tokens.end()) : "none");
    }
    return out;
  }
  const test::TemporaryFolder folder_;
};

TEST_F(ExampleStreams, HaveTheRowsOfMemoryInTheSameOrder) {
  write("a.jsonl", 90);
  write("b.jsonl", 41);
  for (const bool shuffled : {true, false})
    for (const bool mixed : {true, false}) {
      DatasetOptions plain = options({"a.jsonl", "b.jsonl"});
      plain.shuffled = shuffled;
      if (mixed) plain.mixture = {true, 8, StopStrategy::restart, {}, {}}, plain.weights = {0.75, 0.25};
      const Dataset memory = build(plain);
      for (const int64_t workers : {1, 2, 5}) {
        const Dataset stream = build(streamed(plain, workers));
        ASSERT_TRUE(stream.is_stream());
        EXPECT_EQ(stream.windows(), "") << "one window holds everything";
        ASSERT_EQ(stream.size(), memory.size());
        for (const int64_t e : {0, 3}) EXPECT_EQ(epoch(stream, e, workers * 9), epoch(memory, e));
        // Any place is reached without those before it, and what was announced and is not needed does no harm.
        for (const int64_t place : {100, 3, 77})
          EXPECT_EQ(stream.at(stream.index(1, place)).tokens, memory.at(memory.index(1, place)).tokens);
      }
    }
}

TEST_F(ExampleStreams, AreShuffledByWindowsIfTheyAreLarge) {
  constexpr int rows = 300;
  write("a.jsonl", rows, 60'000);  // a row is a block
  const DatasetOptions asked = streamed(options({"a.jsonl"}), 3);
  const Dataset one = build(asked), other = build(streamed(options({"a.jsonl"}), 1));
  EXPECT_EQ(one.windows(), "1x4");
  const std::vector<std::string> first = epoch(one, 0, 20);
  EXPECT_EQ(epoch(other, 0), first);
  EXPECT_NE(epoch(one, 1, 20), first);
  EXPECT_EQ(std::set<std::string>(first.begin(), first.end()).size(), size_t{rows});
  const WindowedOrder order(rows, {1, 1}, 7, Use::epoch, {0});
  for (int64_t i = 0; i < rows; ++i) ASSERT_EQ(first[size_t(i)], str(order.at(i), " xxxxxxxxxxxx").substr(0, 12));
  // More rows in a window: all of them.
  DatasetOptions whole = asked;
  whole.stream->window_rows = 200;
  EXPECT_EQ(epoch(build(whole), 0), epoch(build(options({"a.jsonl"})), 0));
  EXPECT_NE(epoch(build(whole), 0), first);
}

TEST_F(ExampleStreams, ReadSlicesOfSeveralFiles) {
  write("a.jsonl", 30);
  write("b.jsonl", 30);
  DatasetOptions asked = options({"a.jsonl"});
  asked.informs[0].data_files = {(folder_ / "a.jsonl").string(), (folder_ / "b.jsonl").string()};
  for (const char* split : {"train[25:40]", "train[:10%]", "train[-7:]", "train[20:30]+train[50:]", "train"})
    for (const std::optional<int64_t> most : {std::optional<int64_t>(), std::optional<int64_t>(6)}) {
      asked.informs[0].split = split;
      asked.informs[0].num_rows = most;
      EXPECT_EQ(epoch(build(streamed(asked)), 0, 4), epoch(build(asked), 0)) << split;
    }
}

TEST_F(ExampleStreams, RowsWithoutAnExampleAreLeftOutAndCounted) {
  test::write_file(folder_ / "a.jsonl",
                   "{\"text\": \"a\"}\n{\"text\": \"-\"}\n{\"text\": \"skipped\"}\n{\"text\": \"b\"}\n");
  DatasetOptions asked = streamed(options({"a.jsonl"}));
  asked.shuffled = false;
  asked.informs[0].filter = "{{ text != 'skipped' }}";
  asked.keep_origins = true;
  const Dataset set = build(asked);
  EXPECT_EQ(epoch(set, 0), (std::vector<std::string>{"a", "none", "none", "b"}));
  EXPECT_EQ(set.report().rows, 3);
  EXPECT_EQ(set.report().dropped, 1);
  EXPECT_EQ(set.origins(set.rows_of(set.at(3))).at(0).where, (folder_ / "a.jsonl").string() + ":4");
  EXPECT_EQ(refusal([&] { (void)set.at(1); }),
            (folder_ / "a.jsonl").string() +
                ":2: the row has no example, and here each row must have one\n    leave mixture.enable_caching out, or "
                "set mixture.tokenization.keep_in_memory: true");
  EXPECT_EQ(set.tokens(), 2 * 4 / 2) << "estimated";
}

TEST_F(ExampleStreams, BadRowsEndTheRunOrAreSkipped) {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += i == 80 ? "broken\n" : i == 90 ? "{\"text\": \"bad\"}\n" : "{\"text\": \"a\"}\n";
  test::write_file(folder_ / "a.jsonl", text);
  DatasetOptions asked = streamed(options({"a.jsonl"}));
  asked.shuffled = false;
  const Dataset strict = build(asked);  // the first rows are good
  for (int64_t i = 0; i < 80; ++i) EXPECT_TRUE(strict.find(i));
  EXPECT_TRUE(refusal([&] { (void)strict.find(80); }).starts_with((folder_ / "a.jsonl").string() + ":81:"));
  EXPECT_EQ(refusal([&] { (void)strict.find(90); }), (folder_ / "a.jsonl").string() + ":91: is bad");
  asked.bad_rows = {true, {}};
  const Dataset skipping = build(asked);
  EXPECT_EQ(std::ranges::count(epoch(skipping, 0, 10), "none"), 2);
  EXPECT_EQ(skipping.report().skipped, 2);
  asked.bad_rows.most = 1;
  const Dataset limited = build(asked);
  EXPECT_NE(refusal([&] { epoch(limited, 0, 10); }).find("is bad row 2, and mixture.max_bad_rows is 1"),
            std::string::npos);
}

TEST_F(ExampleStreams, CountOrLeaveOutWhatRepeatsEvaluationData) {
  std::string text;
  for (int i = 0; i < 20; ++i)
    text += str("{\"text\": \"", i % 5 == 3 ? "w x y z" : "some other words", " ", i, "\"}\n");
  test::write_file(folder_ / "a.jsonl", text);
  test::write_file(folder_ / "held.jsonl", "{\"text\": \"v w x, Y z\"}\n");
  DatasetOptions asked = streamed(options({"a.jsonl"}));
  asked.shuffled = false;
  std::set<std::string> fingerprints{build(asked).fingerprint()};
  for (const bool drop : {false, true}) {
    asked.decontamination = {4, drop, options({"held.jsonl"}).informs};
    const Dataset set = build(asked);
    EXPECT_EQ(std::ranges::count(epoch(set, 0, 6), "none"), drop ? 4 : 0);
    EXPECT_EQ(set.report().contaminated, 4);
    EXPECT_EQ(set.report().rows, drop ? 16 : 20);
    EXPECT_EQ(set.look_at(3).has_value(), !drop);
    EXPECT_EQ(set.report().contaminated, 4) << "to look at a row counts nothing";
    fingerprints.insert(set.fingerprint());
  }
  test::write_file(folder_ / "held.jsonl", "{\"text\": \"u v w x\"}\n");
  fingerprints.insert(build(asked).fingerprint());
  EXPECT_EQ(fingerprints.size(), 4u);
}

// As in memory: the first of several rows is kept, in all informs, and updates have no gaps where the others were.
TEST_F(ExampleStreams, LeaveOutCopiesAsMemoryDoes) {
  const auto copied = [&](const std::string& name, int rows, int different) {
    std::string text;
    for (int i = 0; i < rows; ++i)
      text += i % 40 == 39 ? "broken\n"
                           : str("{\"text\": \"", i * i % different, i % 2 ? " Xx" : "  xx.",
                                 "\", \"keep\": ", i % 11 == 3 ? "false" : "true", "}\n");
    test::write_file(folder_ / name, text);
  };
  copied("a.jsonl", 300, 70);
  copied("b.jsonl", 200, 90);
  for (const bool mixed : {false, true}) {
    DatasetOptions plain = options({"a.jsonl", "b.jsonl"});
    plain.deduplicate = plain.bad_rows.skip = true;
    for (InformConfig& inform : plain.informs) inform.filter = "{{ keep }}";
    plain.keep_origins = true;
    if (mixed) plain.mixture = {true, 8, StopStrategy::restart, {}, {}}, plain.weights = {0.75, 0.25};
    DatasetOptions in_order = plain;
    in_order.shuffled = false;
    const Dataset memory = build(in_order);
    const auto rows = [&](const Dataset& set, bool all) {
      std::vector<std::string> out;
      for (int64_t i = 0; i < set.size(); ++i)
        if (const std::optional<Example> example = set.find(set.index(0, i)))
          out.push_back(set.origins(set.rows_of(*example)).at(0).where);
      EXPECT_TRUE(all || out.size() < size_t(set.size()));
      return out;
    };
    DatasetOptions one_by_one = in_order;
    one_by_one.mixture = {}, one_by_one.weights = {};
    const std::vector<std::string> kept = rows(build(one_by_one), true);
    const std::set<std::string> left(kept.begin(), kept.end());
    std::string fingerprint;
    std::vector<std::string> shuffled;
    for (const int64_t workers : {1, 4})
      for (const char* cache : {"", "cache"}) {
        DatasetOptions asked = streamed(in_order, workers);
        if (*cache) asked.stream->cache = folder_ / cache;
        const Dataset stream = build(asked);
        if (!mixed) {
          EXPECT_EQ(rows(stream, false), rows(memory, true)) << "bad and filtered rows have no example";
        }
        EXPECT_EQ(stream.report().copies, memory.report().copies);
        EXPECT_GT(memory.report().copies, 100);
        if (fingerprint.empty()) fingerprint = stream.fingerprint();
        EXPECT_EQ(stream.fingerprint(), fingerprint);
        asked.shuffled = true;
        const std::vector<std::string> order = rows(build(asked), false);
        if (shuffled.empty()) shuffled = order;
        EXPECT_EQ(order, shuffled);
        for (const std::string& row : order) EXPECT_TRUE(left.contains(row)) << row;
      }
    EXPECT_TRUE(fs::exists(folder_ / "cache/rows"));
    in_order.deduplicate = false;
    EXPECT_NE(build(streamed(in_order)).fingerprint(), fingerprint);
  }
  copied("a.jsonl", 300, 71);  // is found to be another file
  DatasetOptions changed = streamed(options({"a.jsonl"}));
  changed.deduplicate = changed.bad_rows.skip = true;
  changed.stream->cache = folder_ / "cache";
  DatasetOptions memory = options({"a.jsonl"});
  memory.deduplicate = memory.bad_rows.skip = true;
  EXPECT_EQ(build(changed).report().copies, build(memory).report().copies);
}

// Windows are of the rows that are left; each is read once, although it lies in more blocks of the file.
TEST_F(ExampleStreams, CopiesLeaveWindowsOfTheOthers) {
  constexpr int rows = 400;
  std::string text;
  for (int i = 0; i < rows; ++i)
    text += str("{\"text\": \"", i < 100 || i % 3 == 0 ? i : 0, " ", std::string(60'000, 'x'), "\"}\n");
  test::write_file(folder_ / "a.jsonl", text);
  DatasetOptions asked = streamed(options({"a.jsonl"}), 3);
  asked.deduplicate = true;
  const Dataset set = build(asked);
  ASSERT_EQ(set.size(), 200);
  EXPECT_EQ(set.windows(), "1x3");
  const std::vector<std::string> first = epoch(set, 0, 20);
  const std::set<std::string> different(first.begin(), first.end());
  EXPECT_EQ(different.size(), 200u);
  EXPECT_TRUE(different.contains("399 xxxxxxxx") && different.contains("0 xxxxxxxxxx"));
  EXPECT_EQ(epoch(build(asked), 0), first);
}

TEST_F(ExampleStreams, RefuseWhatNeedsAllRows) {
  write("a.jsonl", 10);
  const std::string remedy = "\n    leave mixture.enable_caching out, or set mixture.tokenization.keep_in_memory: true";
  DatasetOptions asked = streamed(options({"a.jsonl"}));
  EXPECT_EQ(refusal([&] { (void)build(asked).examples_count(); }),
            "mixture.enable_caching: something needs every example before the first step, and with false they are read "
            "while the run goes on" +
                remedy);
  asked.informs[0].num_rows = 3, asked.informs[0].filter = "{{ true }}";
  EXPECT_EQ(
      refusal([&] { build(asked); }),
      "mixture.informs[0].num_rows: counts the rows that a filter or a function leaves, and without a token store "
      "these are not known\n    give a slice of the split, such as train[:1000], or leave mixture.enable_caching "
      "out");
  const Prepare several = [](const TypedRow& row) {
    Prepared out = prepare_letters(row);
    out.further.push_back(*out.example);
    return out;
  };
  EXPECT_EQ(refusal([&] {
              Dataset::build(streamed(options({"a.jsonl"}), 1), several);
            }).substr(0, folder_.path().string().size() + 9),
            (folder_ / "a.jsonl").string() + ":");
  ASSERT_EQ(test::run({"gzip", (folder_ / "a.jsonl").string()}).status, 0);
  EXPECT_EQ(refusal([&] { build(streamed(options({"a.jsonl.gz"}))); }),
            (folder_ / "a.jsonl.gz").string() +
                ": is packed, so its rows can only be read one after the other\n    unpack it");
}

TEST_F(ExampleStreams, AFileThatChangesIsRefusedAndIsOtherData) {
  write("a.jsonl", 3000, 60);
  DatasetOptions asked = streamed(options({"a.jsonl"}));
  asked.shuffled = false;
  const Dataset set = build(asked);
  EXPECT_EQ(build(asked).fingerprint(), set.fingerprint());
  EXPECT_NE(build(options({"a.jsonl"})).fingerprint(), set.fingerprint());
  DatasetOptions filtered = asked;
  filtered.informs[0].filter = "{{ true }}";
  EXPECT_NE(build(filtered).fingerprint(), set.fingerprint());
  write("a.jsonl", 3001, 60);
  EXPECT_NE(build(asked).fingerprint(), set.fingerprint());
  EXPECT_EQ(refusal([&] { epoch(set, 0); }),
            (folder_ / "a.jsonl").string() +
                ": changed while the run reads it\n    start the run again when nothing writes to the file");
}

}  // namespace
}  // namespace easydel::data
