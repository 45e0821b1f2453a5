#include "easydel/server/json_body.h"

#include <gtest/gtest.h>

#include "easydel/server/api_key.h"
#include "support/data.h"

namespace easydel::server {
namespace {

// With and without the room that spares a copy.
std::string read(std::string body, const JsonLimits& limits = {}) {
  const auto once = [&] {
    std::string out;
    const std::string refused = test::refusal([&] { out = to_json(read_value(body, limits)); });
    return out.empty() ? refused : out;
  };
  body.shrink_to_fit();
  const std::string out = once();
  body.reserve(body.size() + json_padding);
  EXPECT_EQ(once(), out);
  return out;
}

TEST(JsonBody, ReadsObjects) {
  EXPECT_EQ(read(R"( {"a": [1, -0, 1.5e3, true, null, "x\u00e9\n"], "b": {"c": {}}} )"),
            "{\"a\": [1, -0, 1.5e3, true, null, \"x\xc3\xa9\\n\"], \"b\": {\"c\": {}}}");
}

TEST(JsonBody, RefusesWhatIsNotJson) {
  EXPECT_EQ(read(""), "The body is empty.");
  for (const char* body : {"[]", "1", "\"a\"", "null"}) EXPECT_EQ(read(body), "The body is not a JSON object.") << body;
  for (const char* more : {"{} x", "{} {}", "{}}", "{},"})
    EXPECT_TRUE(read(more).starts_with("The body is not JSON")) << more;
  EXPECT_EQ(read("{\"a\": \"\xff\"}"), "The body is not UTF-8 text.");
  EXPECT_EQ(read("{\"a\": \"\xed\xa0\x80\"}"), "The body is not UTF-8 text.");
  EXPECT_EQ(read(R"({"a": "\ud800"})"), "The body is not JSON: a string contains an invalid escape.");
  EXPECT_EQ(read("{\"a\": \"\n\"}"), "The body is not JSON: a string contains a control character.");
  for (const char* number : {"1e400", "-1e400", "01", "1.", ".5", "+1", "NaN", "Infinity", "-Infinity", "0x1", "1e",
                             "tru", "nul", "nulll", "falsey"})
    EXPECT_TRUE(read(str("{\"a\": ", number, "}")).starts_with("The body is not JSON")) << number;
  for (const char* broken : {"{", "{\"a\"}", "{\"a\": 1,}", "{\"a\": [1,]}", "{a: 1}", "{\"a\": 1 \"b\": 2}",
                             "{'a': 1}", "{\"a\": [1}", "{\"a\": \"x}"})
    EXPECT_TRUE(read(broken).starts_with("The body is not JSON")) << broken << ": " << read(broken);
}

TEST(JsonBody, KeepsItsLimits) {
  const JsonLimits limits{.depth = 3, .nodes = 5, .keys = 2};
  EXPECT_EQ(read(R"({"a": [[1]]})", limits), R"({"a": [[1]]})");
  EXPECT_EQ(read(R"({"a": [[[1]]]})", limits), "a[0][0][0]: is nested more than 3 levels deep");
  EXPECT_EQ(read(R"({"a": [1, 2, 3, 4]})", limits), R"({"a": [1, 2, 3, 4]})");
  EXPECT_EQ(read(R"({"a": [1, 2, 3, 4, 5]})", limits), "a[4]: the body has more than 5 values");
  EXPECT_EQ(read(R"({"a": {"b": 1, "c": 2, "d": 3}})", limits), "a: has more than 2 members");
  EXPECT_EQ(read(R"({"a": {"b": 1, "b": 2}})"), "a.b: is given twice\n    keep one of them");
  EXPECT_EQ(read(R"({"a": 1, "\u0061": 2})"), "a: is given twice\n    keep one of them");
  for (const int keys : {2, 15, 16, 17, 18, 40})  // a few are found another way than many
    for (const int twice : {0, keys / 2, keys - 1}) {
      std::string members;
      for (int i = 0; i < keys; ++i) members += str(i ? ", \"k" : "\"k", i, "\": ", i);
      EXPECT_EQ(read("{" + members + "}"), "{" + members + "}");
      EXPECT_EQ(read(str("{", members, ", \"k", twice, "\": 0}")),
                str("k", twice, ": is given twice\n    keep one of them"));
    }
  EXPECT_TRUE(read("{\"a\": " + std::string(1000000, '[') + std::string(1000000, ']') + "}")
                  .find("is nested more than 64 levels deep") != std::string::npos);
}

TEST(JsonBody, ReadsTokenIdsWithoutValues) {
  const auto ids = [](const std::string& body) {
    TokenLists tokens;
    std::string out = test::refusal([&] {
      const Value rest = read_value(body, "prompt", tokens, {.nodes = 4});
      throw UserError("", to_json(rest));
    });
    for (const std::vector<int32_t>& list : tokens.lists) {
      out += " |";
      for (const int32_t id : list) out += str(" ", id);
    }
    return out + (tokens.nested ? " nested" : "");
  };
  EXPECT_EQ(ids(R"({"prompt": [1, 2, 3, 4, 5, 6, 7], "n": 1})"), R"({"n": 1} | 1 2 3 4 5 6 7)");
  EXPECT_EQ(ids(R"({"prompt": [ [1, 2], [], [3]]})"), "{} | 1 2 | | 3 nested");
  EXPECT_EQ(ids(R"({"prompt": ["a", "b"]})"), R"({"prompt": ["a", "b"]})");
  EXPECT_EQ(ids(R"({"prompt": [["a"]]})"), R"({"prompt": [["a"]]})");
  EXPECT_EQ(ids(R"({"prompt": "a"})"), R"({"prompt": "a"})");
  EXPECT_EQ(ids(R"({"x": {"prompt": [1]}})"), R"({"x": {"prompt": [1]}})");
  EXPECT_EQ(ids(R"({"prompt": [1, -1]})"), "prompt[1]: is not a token id");
  EXPECT_EQ(ids(R"({"prompt": [1, 2147483648]})"), "prompt[1]: is not a token id");
  EXPECT_EQ(ids(R"({"prompt": [1, 1.5]})"), "prompt[1]: is not a token id");
  EXPECT_EQ(ids(R"({"prompt": [[1], 2]})"), "prompt[1]: is not a list of token ids | 1 nested");
  EXPECT_EQ(ids(R"({"prompt": [[1], [[2]]]})"), "prompt[1][0]: is not a token id | 1 nested");
}

TEST(JsonBody, IsReadIntoStructsWithAllProblems) {
  KeySettings settings;
  read_body(R"({"name": "a", "role": "service", "rate_limits": {"tokens_per_day": 5}})", settings);
  EXPECT_EQ(settings.role, Role::service);
  EXPECT_EQ(settings.rate_limits.tokens_per_day, 5);
  try {
    read_body(R"({"rolle": 1, "tags": [[1]], "quota": {"max_total_tokens": 0}})", settings);
    FAIL();
  } catch (const config::ConfigError& error) {
    std::string all;
    for (const UserError& one : error.problems) all += one.where + ": " + one.problem + "\n";
    EXPECT_EQ(all,
              "rolle: no such key\ntags[0]: a list is not a string\nquota.max_total_tokens: 0 is out of range\nname: "
              "is missing\n");
  }
}

}  // namespace
}  // namespace easydel::server
