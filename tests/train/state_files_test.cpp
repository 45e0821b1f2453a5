// The optimizer's files are in optimizer_test.cpp, state_test.cpp and trainer_test.cpp.
#include "easydel/train/state_files.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::train {
namespace {

TEST(StateFiles, ARunsStateIsReadAsItWasWritten) {
  const test::TemporaryFolder folder;
  RunState state;
  state.step = 12, state.tokens_seen = int64_t{1} << 40, state.optimizer_steps = 11;
  state.seed = ~uint64_t{0};
  state.cursor = parse_json(R"({"epoch": 1, "index": 8})");
  state.data = "0123456789abcdef", state.update = 4, state.order_class = "fp32_chain";
  state.method = parse_json(R"({"mean": 0.5})");
  state.document = parse_json(R"({"trainer": {"seed": 1}})");
  write_state(folder.path(), state);
  const RunState read = read_state(folder.path());
  EXPECT_EQ(read.step, state.step);
  EXPECT_EQ(read.tokens_seen, state.tokens_seen);
  EXPECT_EQ(read.optimizer_steps, state.optimizer_steps);
  EXPECT_EQ(read.seed, state.seed);
  EXPECT_EQ(to_json(read.cursor), to_json(state.cursor));
  EXPECT_EQ(read.data, state.data);
  EXPECT_EQ(read.update, state.update);
  EXPECT_EQ(read.order_class, state.order_class);
  EXPECT_EQ(to_json(read.method), to_json(state.method));
}

TEST(StateFiles, WhatIsNotAStateIsRefused) {
  const test::TemporaryFolder folder;
  for (const char* text : {"", "[]", "{\"step\": \"many\"}"}) {
    test::write_file(folder / "state.json", text);
    EXPECT_NE(test::refusal([&] { read_state(folder.path()); }).find("state.json"), std::string::npos) << text;
  }
}

TEST(StateFiles, AreKnownFromTheModels) {
  for (const char* name :
       {"state.json", "optimizer/optimizer-00001-of-00001.safetensors", "optimizer-00001-of-00001.safetensors"})
    EXPECT_TRUE(is_of_training(name)) << name;
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"})
    EXPECT_FALSE(is_of_training(name)) << name;
}

}  // namespace
}  // namespace easydel::train
