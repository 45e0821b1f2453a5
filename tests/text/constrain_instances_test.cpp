// Values that hypothesis-jsonschema drew (scripts/record_constrained_instances.py): the valid ones are accepted, the
// others are not.
#include <gtest/gtest.h>

#include <sstream>

#include "easydel/base/document.h"
#include "easydel/base/files.h"
#include "easydel/text/constrain/constraint.h"
#include "support/data.h"

namespace easydel::text::constrain {
namespace {

bool accepts(const Automaton& automaton, std::string_view text) {
  Stacks stacks(automaton);
  Position at = stacks.begin(), next;
  for (const char byte : text) {
    stacks.step(at, static_cast<uint8_t>(byte), next);
    if (next.dead()) return false;
    std::swap(at, next);
  }
  return at.may_end;
}

TEST(ConstrainInstances, AreAcceptedIfAndOnlyIfTheyAreValid) {
  std::istringstream lines(files::read_compressed(test::test_data("constrain/instances.jsonl.gz")));
  size_t schemas = 0, valid = 0, invalid = 0;
  for (std::string line; std::getline(lines, line); ++schemas) {
    const Value record = parse_json(line);
    const std::string& schema = record.find("schema")->scalar;
    const auto automaton = compile({Language::Kind::json_schema, schema});
    for (const Value& text : record.find("valid")->items) {
      EXPECT_TRUE(accepts(*automaton, text.scalar)) << schema << "\n" << text.scalar;
      ++valid;
    }
    for (const Value& text : record.find("invalid")->items) {
      EXPECT_FALSE(accepts(*automaton, text.scalar)) << schema << "\n" << text.scalar;
      ++invalid;
    }
  }
  EXPECT_EQ(schemas, 33u);
  EXPECT_GT(valid, 1000u);
  EXPECT_GT(invalid, 1000u);
}

// The tools of the Berkeley Function Calling Leaderboard, whose types have names of Python.
TEST(ConstrainInstances, ToolsOfTheFunctionCallingLeaderboardCompile) {
  const auto folder = test::shared_data("toolcalls/bfcl");
  if (!folder) GTEST_SKIP() << "no shared data";
  size_t compiled = 0, refused = 0;
  for (const char* name : {"BFCL_v4_live_simple", "BFCL_v4_multiple"}) {
    std::istringstream lines(files::read(*folder / (std::string(name) + ".json")));
    for (std::string line; std::getline(lines, line);) {
      // The reader of our documents refuses names that come twice, and so some of their lines.
      Value record;
      try {
        record = parse_json(line);
      } catch (const UserError&) {
        continue;
      }
      for (const Value& tool : record.find("function")->items) {
        std::string schema = to_json(*tool.find("parameters"));
        for (const auto& [from, to] :
             std::vector<std::pair<std::string, std::string>>{{"\"type\": \"dict\"", "\"type\": \"object\""},
                                                              {"\"type\": \"float\"", "\"type\": \"number\""},
                                                              {"\"type\": \"tuple\"", "\"type\": \"array\""},
                                                              {"\"type\": \"any\"", "\"x-any\": true"},
                                                              {"\"optional\"", "\"x-optional\""}})
          for (size_t at = 0; (at = schema.find(from, at)) != std::string::npos; at += to.size())
            schema.replace(at, from.size(), to);
        try {
          compile({Language::Kind::json_schema, schema});
          ++compiled;
        } catch (const UserError& error) {
          ++refused;
          // Mistakes of the data: a property where a schema should be, a type that there is not.
          EXPECT_EQ(std::string(error.what()).substr(0, 11), "JSON schema") << error.what() << "\n" << schema;
        }
      }
    }
  }
  EXPECT_GT(compiled, 700u);
  EXPECT_LT(refused, compiled / 20);
}

}  // namespace
}  // namespace easydel::text::constrain
