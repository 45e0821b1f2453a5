// Where the examples of a page of docs/ run: a fresh folder with what they name, a small model and a few rows.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "easydel/base/error.h"
#include "support/data.h"

namespace easydel {

class Page : public testing::Test {
 protected:
  void SetUp() override {
    namespace fs = std::filesystem;
    fs::copy(test::test_data("models/stories260K-hf"), folder_ / "my-model", fs::copy_options::recursive);
    std::string rows, pairs;
    for (const char* name : {"Max", "Lily", "Tom", "Anna"}) {
      rows += str("{\"text\": \"One day, ", name, " the dog saw a warm hat in the river.\"}\n");
      pairs += str(pairs.empty() ? "" : ",\n", "{\"prompt\": \"One day, ", name,
                   " saw\", \"chosen\": \" a hat and shared it.\", ", "\"rejected\": \" a cat and was mad.\"}");
    }
    test::write_file(folder_ / "data/train.jsonl", rows);
    test::write_file(folder_ / "preference_data.json", "[" + pairs + "]");
    before_ = fs::current_path();
    fs::current_path(folder_.path());
  }
  void TearDown() override { std::filesystem::current_path(before_); }

  test::TemporaryFolder folder_;
  std::filesystem::path before_;
};

}  // namespace easydel
