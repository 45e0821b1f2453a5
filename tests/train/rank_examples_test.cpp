// What each rank prepares of an update, and that the examples of all of them are those of one rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/train/batch_source.h"
#include "easydel/train/joint_error.h"
#include "easydel/train/ranks.h"
#include "support/ranks.h"

namespace easydel::train {
namespace {

std::atomic<int> prepared;

// Row i has the token i and i % 4 more; "-" has no example, and rows of 500 or more no labels. Update 3 begins with
// four rows without an example.
class Lines {
 public:
  explicit Lines(const std::vector<std::string>& rows) {
    std::string text;
    for (const std::string& row : rows) text += "{\"text\": \"" + row + "\"}\n";
    test::write_file(folder_ / "rows.jsonl", text);
  }
  data::DatasetOptions options(bool streams) const {
    data::DatasetOptions out;
    out.informs.emplace_back().data_files = {(folder_ / "rows.jsonl").string()};
    if (streams) out.stream = {.cache = {}, .min_bytes = 0, .window_rows = 1, .workers = 2, .settings = {}};
    return out;
  }
  static std::shared_ptr<data::Dataset> build(const data::DatasetOptions& options) {
    auto out = std::make_shared<data::Dataset>(data::Dataset::build(options, [](const data::TypedRow& row) {
      ++prepared;
      if (row.text.scalar == "bad") refuse(row.where, "is bad");
      data::Prepared one;
      if (row.text.scalar == "-") return one;
      const int32_t id = std::stoi(row.text.scalar);
      std::vector<int32_t> ids(size_t(2 + id % 4), id);
      one.example.emplace().add_sequence(ids, std::vector<uint8_t>(ids.size(), id < 500));
      return one;
    }));
    prepared = 0;
    return out;
  }

 private:
  const test::TemporaryFolder folder_;
};

std::vector<std::string> numbers(int count) {
  std::vector<std::string> out;
  for (int i = 0; i < count; ++i) out.push_back(std::to_string(i));
  return out;
}

std::shared_ptr<const collective::Team> join(const test::Meeting& meeting) {
  collective::TeamOptions options;
  options.file_store = meeting.file;
  options.connect_seconds = options.timeout_seconds = 30;
  return collective::Team::join(meeting.world, mesh::Mesh(mesh::default_axes(), {meeting.world.size, 1, 1, 1, 1}),
                                options);
}

std::vector<double> ids_of(const MicroBatch& micro) {
  std::vector<double> out;
  for (const data::Example* example : micro) out.push_back(example->tokens.front());
  return out;
}

// The examples of all ranks, put together, are those of step(), and so are the tokens before them.
TEST(RankExamples, AreTogetherThoseOfOneRank) {
  std::vector<std::string> rows = numbers(40);
  for (const size_t row : {size_t{3}, size_t{12}, size_t{13}, size_t{14}, size_t{15}, size_t{30}}) rows[row] = "-";
  const Lines lines(rows);
  for (const bool streams : {true, false})
    for (const int count : {2, 4})
      test::run_ranks(count, [&](const test::Meeting& meeting) {
        const Ranks ranks(join(meeting));
        DatasetSource own(Lines::build(lines.options(streams)), 8, 2),
            whole(Lines::build(lines.options(streams)), 8, 2);
        for (const int64_t step : {0, 1, 2, 3, 5}) {
          const std::vector<MicroBatch> want = whole.step(step);
          const std::vector<RankExamples> got = own.part(step, ranks);
          ASSERT_EQ(got.size(), want.size());
          for (size_t m = 0; m < want.size(); ++m) {
            std::vector<double> all = ids_of(got[m].examples);
            const int64_t first = got[m].first_token;
            all.insert(all.begin(), double(all.size()));
            all.resize(9);
            std::vector<double> together;
            for (const std::vector<double>& one : ranks.of_parts(all))
              together.insert(together.end(), one.begin() + 1, one.begin() + 1 + int64_t(one[0]));
            EXPECT_EQ(together, ids_of(want[m])) << step;
            int64_t tokens = 0;
            for (const data::Example* example : want[m]) {
              if (!got[m].examples.empty() && example->tokens == got[m].examples.front()->tokens) {
                EXPECT_EQ(tokens, first);
              }
              tokens += int64_t(example->tokens.size());
            }
            EXPECT_EQ(got[m].tokens, tokens);
          }
        }
      });
}

TEST(RankExamples, OfAStreamAreTheOnlyOnesThatARankPrepares) {
  const Lines lines(numbers(160));
  test::run_ranks(4, [&](const test::Meeting& meeting) {
    const Ranks ranks(join(meeting));
    DatasetSource source(Lines::build(lines.options(true)), 8, 2, 0, 1);
    for (int64_t step = 0; step < 20; ++step) (void)source.part(step, ranks);
    EXPECT_LE(prepared, 40 + 4) << "a fourth, and what comes next";
  });
}

TEST(RankExamples, ARankWithoutLabelsBorrowsAnExampleWithSome) {
  const Lines lines({"500", "501", "502", "-", "4", "5", "-", "-"});
  for (const bool streams : {true, false})
    test::run_ranks(2, [&](const test::Meeting& meeting) {
      const Ranks ranks(join(meeting));
      DatasetSource source(Lines::build(lines.options(streams)), 8, 1);
      ASSERT_EQ(source.part(0, ranks).size(), 1u);
      EXPECT_EQ(source.lent(0).tokens.front(), 4);
      EXPECT_EQ(source.dataset()->report().skipped, 0);
    });
}

TEST(RankExamples, ABadRowOfOneRankEndsAllOfThem) {
  std::vector<std::string> rows = numbers(200);
  rows[97] = rows[102] = "bad";  // of the first rank's part and of the second's
  const Lines lines(rows);
  const auto refused_on = [&](const data::DatasetOptions& options, const std::vector<std::string>& texts) {
    test::run_ranks(2, [&](const test::Meeting& meeting) {
      const Ranks ranks(join(meeting));
      DatasetSource source(Lines::build(options), 8, 1);
      for (int64_t step = 0; step < 12; ++step) (void)source.part(step, ranks);
      const std::string text = test::refusal([&] { (void)source.part(12, ranks); });
      EXPECT_NE(text.find(texts[size_t(meeting.world.rank)]), std::string::npos) << text;
    });
  };
  rows[97] = "97";
  refused_on(Lines(rows).options(true), {"another rank could not go on", "rows.jsonl:103: is bad"});
  data::DatasetOptions skipping = lines.options(true);
  skipping.bad_rows = {true, 1};
  const std::string joint = "mixture.max_bad_rows: all ranks together have skipped 2 bad rows";
  refused_on(skipping, {joint, joint});
}

}  // namespace
}  // namespace easydel::train
