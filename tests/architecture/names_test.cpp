// A YAML word is the name of its file, and choices are in explicit alphabetical lists.
#include <gtest/gtest.h>

#include <algorithm>

#include "architecture/source.h"

namespace easydel::test {
namespace {

struct Registry {
  std::string list;    // the file with the list, in src/easydel
  std::string before;  // of the file of an entry: "train/" + "dpo" + ".cpp"
};

const std::vector<Registry> registries = {
    {"models/families.cpp", "models/zoo/"}, {"models/family_configs.cpp", "models/zoo/"},
    {"train/method_configs.cpp", "train/"}, {"ops/attention_backends.cpp", "ops/attention_"},
    {"data/sources.cpp", "data/source_"},   {"data/row_formats.cpp", "data/format_"},
};

// The names in the first `std::array ... {a(), b()}` or `{zoo::a::family(), ...}` or `{a_source, b_source}` or
// `{Entry{"a", ...}, ...}` of a list file, in its order. An entry's name is its function's or variable's, without a
// suffix that is the same for all.
std::vector<std::string> entries_of(const std::string& text) {
  const size_t array = text.find("std::array ");
  if (array == std::string::npos) return {};
  const size_t open = text.find('{', array);
  size_t close = open;
  for (int depth = 0; close < text.size(); ++close) {
    depth += text[close] == '{' ? 1 : text[close] == '}' ? -1 : 0;
    if (depth == 0) break;
  }
  const std::string inside = std::regex_replace(text.substr(open + 1, close - open - 1),
                                                std::regex(R"rx(zoo::([a-z0-9_]+)::family\(\))rx"), "$1()");
  std::vector<std::string> names = all_matches(inside, std::regex(R"rx([{(]\s*"([a-z0-9_-]+)")rx"));
  if (names.empty()) names = all_matches(inside, std::regex(R"(([a-z][a-z0-9_]*)\s*(?:\(\)|(?=[,}]|\s*$)))"));
  for (std::string& name : names) {
    for (const char* suffix : {"_attention", "_source", "_format", "_method", "_family"}) {
      if (name.ends_with(suffix)) name.resize(name.size() - std::string_view(suffix).size());
    }
    std::replace(name.begin(), name.end(), '-', '_');
  }
  return names;
}

class Registries : public testing::TestWithParam<Registry> {
 protected:
  void SetUp() override {
    const fs::path list = source_root() / "src/easydel" / GetParam().list;
    names_ = entries_of(read_file(list));
    ASSERT_FALSE(names_.empty()) << GetParam().list;
  }
  std::vector<std::string> names_;
};

TEST_P(Registries, AreAlphabetical) {
  EXPECT_TRUE(std::is_sorted(names_.begin(), names_.end())) << testing::PrintToString(names_);
}

TEST_P(Registries, NameAFileForEachEntry) {
  const bool configs = GetParam().list == "train/method_configs.cpp";
  for (const std::string& name : names_) {
    const std::string file = "src/easydel/" + GetParam().before + name + (configs ? "_config.h" : ".cpp");
    EXPECT_TRUE(fs::exists(source_root() / file))
        << GetParam().list << " names '" << name << "', but there is no " << file;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Registries, testing::ValuesIn(registries), [](const auto& info) {
  std::string name = info.param.list;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
});

// Words that are rows of one table instead of files: docs/design/008-words-and-files.md says why.
struct Rows {
  std::string file;   // in src/easydel
  std::string begin;  // text before the first row
  std::regex row;     // its first group is the word
};

TEST(RowNames, AreAlphabeticalAndThePageNamesTheirFile) {
  const std::string page = read_file(source_root() / "docs/design/008-words-and-files.md");
  const std::vector<Rows> tables = {
      {"text/output/tool_parsers.cpp", "const ToolFormat ", std::regex(R"rx(\n    \{"([a-z0-9_]+)")rx")},
      {"text/output/reasoning_parsers.cpp", "const ReasoningFormat ",
       std::regex(R"rx(\n    \{\.name = "([a-z0-9_]+)")rx")},
      {"elarge/actions.cpp", "action_entries() {", std::regex(R"rx(\n +\{\.name = "([a-z0-9_]+)")rx")},
  };
  for (const Rows& table : tables) {
    EXPECT_NE(page.find("`" + table.file + "`"), std::string::npos) << table.file;
    const std::string text = read_file(source_root() / "src/easydel" / table.file);
    const size_t begin = text.find(table.begin);
    ASSERT_NE(begin, std::string::npos) << table.file;
    const std::vector<std::string> words = all_matches(text.substr(begin, text.find("\n}", begin) - begin), table.row);
    EXPECT_GE(words.size(), 10u) << table.file;
    EXPECT_TRUE(std::is_sorted(words.begin(), words.end())) << table.file << testing::PrintToString(words);
  }
}

// Tests the reader of lists itself.
TEST(RegistryNames, AreReadFromEachFormOfList) {
  const std::vector<std::string> ab = {"a", "b"};
  EXPECT_EQ(entries_of("static const std::array all = {\n a(), b(),\n};"), ab);
  EXPECT_EQ(entries_of("static const std::array all = {\n zoo::a::family(), zoo::b::family(),\n};"), ab);
  EXPECT_EQ(entries_of("static const std::array all{a_source, b_source};"), ab);
  EXPECT_EQ(entries_of("const std::array all{Entry{\"a\", 1}, Entry{\"b\", 2}};"), ab);
}

}  // namespace
}  // namespace easydel::test
