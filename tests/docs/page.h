// Shared by the tests of pages: the code blocks of a page, and a fresh folder with the files that its examples name, a
// small model and a few rows.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "easydel/base/error.h"
#include "support/data.h"

namespace easydel {

// The blocks of one language, in order: "yaml" finds those that begin with ```yaml.
inline std::vector<std::string> code_blocks(const std::string& page, const std::string& language) {
  const std::string open = "```" + language + "\n";
  std::vector<std::string> out;
  for (size_t at = page.find(open); at != std::string::npos; at = page.find(open, at + 1)) {
    const size_t begin = at + open.size();
    out.push_back(page.substr(begin, page.find("```", begin) - begin));
  }
  return out;
}

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
