#include "easydel/train/batch_source.h"

#include <gtest/gtest.h>

#include "easydel/base/log.h"
#include "support/data.h"

namespace easydel::train {
namespace {

// A data set of `rows` examples, of which example i is the token i.
std::shared_ptr<data::Dataset> counted(int rows, bool shuffled = false) {
  const test::TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < rows; ++i) lines += str(i, "\n");
  test::write_file(folder / "rows.txt", lines);
  data::DatasetOptions options;
  options.informs.emplace_back().data_files = {(folder / "rows.txt").string()};
  options.shuffled = shuffled;
  log::set_sink([](log::Level, std::string_view) {});
  auto out = std::make_shared<data::Dataset>(data::Dataset::build(options, [](const data::TypedRow& row) {
    data::Prepared one;
    one.example.emplace().add_sequence(std::vector<int32_t>{std::stoi(row.text.scalar), 0});
    return one;
  }));
  log::set_sink(nullptr);
  return out;
}

using Step = std::vector<std::vector<int>>;  // the examples of each micro-batch

Step step_of(BatchSource& source, int64_t step) {
  Step out;
  for (const MicroBatch& micro : source.step(step)) {
    out.emplace_back();
    for (const data::Example* example : micro) out.back().push_back(example->tokens.front());
  }
  return out;
}

TEST(DatasetSource, CutsEachUpdateIntoMicroBatchesAndTheLastIsShort) {
  DatasetSource source(counted(11), 4, 2);
  EXPECT_EQ(source.steps_in_epoch(), 3);
  EXPECT_EQ(step_of(source, 0), (Step{{0, 1}, {2, 3}}));
  EXPECT_EQ(step_of(source, 2), (Step{{8, 9}, {10}}));
  EXPECT_EQ(step_of(source, 3), (Step{{0, 1}, {2, 3}})) << "the next epoch";
}

TEST(DatasetSource, AStepIsAFunctionOfItsNumber) {
  DatasetSource one(counted(11, true), 4, 1), other(counted(11, true), 4, 1);
  const Step fifth = step_of(one, 5);
  for (const int64_t step : {0, 7, 2}) step_of(other, step);
  EXPECT_EQ(step_of(other, 5), fifth);
  EXPECT_NE(step_of(one, 0), step_of(one, 3)) << "each epoch has its own order";
}

TEST(DatasetSource, KnowsWhereAStepStands) {
  const DatasetSource source(counted(11), 4, 1);
  EXPECT_EQ(to_json(source.cursor(0)), R"({"epoch": 0, "index": 0})");
  EXPECT_EQ(to_json(source.cursor(5)), R"({"epoch": 1, "index": 8})");
}

TEST(DatasetSource, MayBeLimitedToAFewStepsOfAnEpoch) {
  DatasetSource source(counted(11), 4, 1, 2);
  EXPECT_EQ(source.steps_in_epoch(), 2);
  EXPECT_EQ(step_of(source, 2), (Step{{0, 1, 2, 3}})) << "the next epoch";
}

}  // namespace
}  // namespace easydel::train
