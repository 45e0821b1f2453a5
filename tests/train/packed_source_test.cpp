#include "easydel/train/packed_source.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "support/data.h"

namespace easydel::train {
namespace {

// 50 documents of three tokens in windows of 8, two of them in a row.
std::shared_ptr<data::Dataset> packed(const test::TemporaryFolder& folder) {
  std::string lines;
  for (int i = 0; i < 50; ++i) lines += str(i, "\n");
  test::write_file(folder / "rows.txt", lines);
  data::DatasetOptions options;
  options.informs.emplace_back().data_files = {(folder / "rows.txt").string()};
  options.shuffled = options.shuffle_documents = true;
  options.packing = data::Packing::bfd, options.row_length = 6, options.pack_window = 8;
  options.stream = {.cache = {}, .min_bytes = 0, .window_rows = 1, .workers = 2, .settings = {}};
  log::set_sink([](log::Level, std::string_view) {});
  auto out = std::make_shared<data::Dataset>(data::Dataset::build(options, [](const data::TypedRow& row) {
    data::Prepared one;
    one.example.emplace().add_sequence(std::vector<int32_t>{std::stoi(row.text.scalar), 0, 1});
    return one;
  }));
  log::set_sink(nullptr);
  return out;
}

using Step = std::vector<std::vector<std::vector<int32_t>>>;  // the tokens of each micro-batch's examples

Step step_of(BatchSource& source, int64_t step) {
  Step out;
  for (const MicroBatch& micro : source.step(step)) {
    out.emplace_back();
    for (const data::Example* example : micro) out.back().push_back(example->tokens);
  }
  return out;
}

TEST(PackedSource, CutsUpdatesAsOtherSourcesDo) {
  const test::TemporaryFolder folder;
  PackedSource source(packed(folder), 4, 2);
  EXPECT_EQ(source.steps_in_epoch(), 7) << "25 rows, by the estimate";
  for (int64_t step = 0; step < 6; ++step) {
    const Step made = step_of(source, step);
    ASSERT_EQ(made.size(), 2u);
    EXPECT_EQ(made[0].size() + made[1].size(), 4u);
  }
  EXPECT_EQ(step_of(source, 6).size(), 1u) << "an epoch's last row";
  EXPECT_EQ(step_of(source, 7).size(), 2u);
  PackedSource limited(packed(folder), 4, 1, 2);
  EXPECT_EQ(limited.steps_in_epoch(), 2);
  step_of(limited, 1);
  EXPECT_EQ(to_json(limited.cursor(2)), R"({"epoch": 0, "index": 8, "window": 1, "row": 4})");
  step_of(limited, 2);
  EXPECT_EQ(to_json(limited.cursor(3)), R"({"epoch": 1, "index": 4, "window": 0, "row": 4})");
}

TEST(PackedSource, GoesOnFromACursorAndBack) {
  const test::TemporaryFolder folder;
  PackedSource unbroken(packed(folder), 4, 1);
  std::vector<Step> steps;
  std::vector<Value> cursors;
  for (int64_t step = 0; step < 20; ++step) {
    cursors.push_back(unbroken.cursor(step));
    steps.push_back(step_of(unbroken, step));
  }
  EXPECT_EQ(step_of(unbroken, 12), steps[12]) << "a step that was made before";
  for (const int64_t first : {0, 3, 6, 7, 15}) {
    PackedSource resumed(packed(folder), 4, 1);
    resumed.go_to(first, cursors[size_t(first)]);
    EXPECT_EQ(step_of(resumed, first + 4), steps[size_t(first) + 4]) << "the steps between are read over";
    EXPECT_EQ(step_of(resumed, first), steps[size_t(first)]);
  }
  PackedSource far(packed(folder), 4, 1);
  step_of(far, 100);
  EXPECT_THROW(far.step(1), Bug) << "where it begins is forgotten";
}

TEST(PackedSource, ACursorOfAScheduleKeepsWhatWasDrawn) {
  const test::TemporaryFolder folder;
  PackedSource source(packed(folder), 4, 1);
  const std::string cursor = R"({"epoch": 0, "index": 12, "window": 1, "row": 2, "drawn": [7, 9]})";
  source.go_to(3, parse_json(cursor));
  EXPECT_EQ(to_json(source.cursor(3)), cursor);
}

TEST(PackedSource, ACursorOfOtherRowsIsRefused) {
  const test::TemporaryFolder folder;
  PackedSource source(packed(folder), 4, 1);
  EXPECT_EQ(test::refusal([&] { source.go_to(3, parse_json(R"({"epoch": 0, "index": 12})")); }),
            "state.json: its cursor has no 'window', and packed rows are found by it\n    name another save_directory "
            "or model_name, or set resume_if_possible: false to start anew");
}

}  // namespace
}  // namespace easydel::train
