#include "easydel/train/event_file.h"

#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel::train {
namespace {

Value record(int64_t step, double loss) {
  Value out = Value::map();
  out.set("step", Value::integer(step));
  out.set("loss", Value::number(loss));
  return out;
}

// The frame of a record whose bytes TensorFlow's own writer makes: length, its checksum, the event, its checksum.
TEST(EventFile, HasTheFramesOfTensorflow) {
  const test::TemporaryFolder folder;
  EventFile(folder.path(), 0).add(record(3, 1.5));
  const std::string bytes = test::read_file(folder / "events.out.tfevents.0.easydel");
  // The first event has the time and the version; tensorboard's own writer gave these bytes but for the time.
  ASSERT_GT(bytes.size(), 16u + 24u);
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x18\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(bytes.substr(8, 4), "\xa3\x7f\x4b\x22");
  EXPECT_EQ(bytes.substr(21, 15),
            "\x1a\x0d"
            "brain.Event:2");
  // The second: step 3, a summary with loss 1.5.
  const std::string second = bytes.substr(40 + 12);
  EXPECT_EQ(second.substr(9, 17), std::string("\x10\x03\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\xc0\x3f", 17));
}

TEST(EventFile, DrawsNoCurveTwiceAfterAResume) {
  const test::TemporaryFolder folder;
  const auto file = folder / "events.out.tfevents.0.easydel";
  {
    EventFile events(folder.path(), 0);
    for (int step = 1; step <= 2; ++step) events.add(record(step, step));
  }
  const std::string two = test::read_file(file);
  {
    EventFile events(folder.path(), 2);
    for (int step = 3; step <= 400; ++step) events.add(record(step, step));
  }
  const std::string all = test::read_file(file);
  EXPECT_TRUE(all.starts_with(two));
  { EventFile events(folder.path(), 2); }
  EXPECT_EQ(test::read_file(file), two);
  // A frame that a crash cut off is dropped.
  test::write_file(file, all.substr(0, all.size() - 3));
  { EventFile events(folder.path(), 400); }
  const std::string kept = test::read_file(file);
  EXPECT_LT(kept.size(), all.size());
  EXPECT_TRUE(all.starts_with(kept));
  { EventFile events(folder.path(), 0); }
  EXPECT_LT(test::read_file(file).size(), 64u);
}

}  // namespace
}  // namespace easydel::train
