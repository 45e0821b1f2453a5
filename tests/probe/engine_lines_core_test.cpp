#include "easydel/probe/engine_lines.h"

#include <gtest/gtest.h>

#include "easydel/elarge/overrides.h"
#include "support/data.h"

namespace easydel::probe {
namespace {

std::vector<Value> answers(const std::vector<std::string>& set, std::vector<std::string> lines,
                           std::optional<int64_t> pages = 64) {
  Value document = Value::map(), model = Value::map();
  model.set("name_or_path", Value::text(test::test_data("models/stories260K-hf").string()));
  document.set("model", model);
  std::string text;
  engine_lines({elarge::configuration(document, set), std::move(lines), pages},
               [&](std::string_view piece) { text += piece; });
  std::vector<Value> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    out.push_back(parse_json(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return out;
}

std::string outputs(const Value& answer) { return to_json(*answer.find("outputs")); }

TEST(ProbeEngine, GivesTheSameBitsOnEverySchedule) {
  const std::vector<std::string> lines = {
      R"({"prompt": "Once upon a time", "sampling": {"max_tokens": 12, "temperature": 0}})",
      R"({"prompt": "Once upon a time, there was", "sampling": {"max_tokens": 9, "n": 2, "seed": 3}, "arrive": 20})",
      R"({"prompt_token_ids": [1, 403, 407], "sampling": {"max_tokens": 7, "seed": 5, "logprobs": 2}, "arrive": 2})"};
  const auto wide = answers({}, lines);
  const auto narrow = answers({"esurge.page_size=3", "esurge.max_num_batched_tokens=4"}, lines, 14);
  ASSERT_EQ(wide.size(), 3u);
  ASSERT_EQ(narrow.size(), 3u);
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(outputs(wide[i]), outputs(narrow[i]));
  EXPECT_EQ(wide[1].find("outputs")->items.size(), 2u);
  const Value& one = wide[0].find("outputs")->items[0];
  EXPECT_EQ(one.find("text")->scalar, ", there was a little girl named Lily. She");
  EXPECT_EQ(one.find("finish_reason")->scalar, "length");
  EXPECT_EQ(one.find("logprobs")->items.size(), 12u);
  EXPECT_EQ(one.find("logprobs")->items[0].scalar.size(), 8u);
  EXPECT_EQ(wide[0].find("prompt_tokens")->as_int(), 5);
  // The first answer begins as the second prompt goes on; the last token is always computed.
  EXPECT_EQ(wide[1].find("cached_tokens")->as_int(), 7);
}

TEST(ProbeEngine, ScoresAContinuation) {
  const auto found = answers({}, {R"({"prompt_token_ids": [1, 403, 407], "continuation_token_ids": [261, 378, 432]})",
                                  R"({"prompt_token_ids": [1, 403, 407, 261], "continuation_token_ids": [378, 432]})"});
  const Value *const three = found.at(0).find("scores"), *const two = found.at(1).find("scores");
  ASSERT_TRUE(three && two);
  EXPECT_EQ(three->find("each")->items.size(), 3u);
  EXPECT_EQ(three->find("each")->items[2].scalar, two->find("each")->items[1].scalar);
  EXPECT_EQ(found[0].find("outputs"), nullptr);
  EXPECT_EQ(found[0].find("prompt_tokens")->as_int(), 5);
}

TEST(ProbeEngine, SaysWhatTheContextMadeShorter) {
  const auto found = answers(
      {"esurge.max_model_len=8"},
      {R"({"prompt_token_ids": [1, 403, 407], "sampling": {"max_tokens": 5, "temperature": 0}})",
       R"({"prompt_token_ids": [1, 403, 407], "sampling": {"max_tokens": 9, "temperature": 0}})",
       R"({"prompt_token_ids": [1, 403, 407, 5, 6, 7, 8, 9, 10], "sampling": {"max_tokens": 2, "temperature": 0}})"});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_FALSE(found[0].find("truncated_tokens") || found[0].find("capped_tokens"));
  EXPECT_EQ(found[1].find("capped_tokens")->as_int(), 4);
  EXPECT_EQ(found[1].find("outputs")->items[0].find("token_ids")->items.size(), 5u);
  EXPECT_EQ(found[2].find("truncated_tokens")->as_int(), 3);
  EXPECT_EQ(found[2].find("prompt_tokens")->as_int(), 6);
  EXPECT_FALSE(found[2].find("capped_tokens"));
}

TEST(ProbeEngine, AnswersEveryLineThatItCannotServeWithAnError) {
  const auto found = answers({}, {"{", R"({"sampling": {}})", R"({"prompt": "Tom", "arrive": -1})",
                                  R"({"prompt": "Tom", "sampling": {"max_tokens": 100}, "abort": 2})"});
  ASSERT_EQ(found.size(), 4u);
  for (size_t i = 0; i < 3; ++i) EXPECT_NE(found[i].find("error"), nullptr) << i;
  EXPECT_EQ(found[3].find("outputs")->items[0].find("finish_reason")->scalar, "abort");
}

TEST(ProbeEngine, GivesTheSameBitsOverCodesOfKeysAndValues) {
  const std::vector<std::string> lines = {
      R"({"prompt": "Once upon a time", "sampling": {"max_tokens": 12, "temperature": 0}})",
      R"({"prompt": "Once upon a time, there was", "sampling": {"max_tokens": 9, "n": 2, "seed": 3}, "arrive": 20})",
      R"({"prompt_token_ids": [1, 403, 407], "sampling": {"max_tokens": 7, "seed": 5, "logprobs": 2}, "arrive": 2})"};
  for (const std::string method : {"8bit", "a4q", "mxfp8", "8bit in groups"}) {
    std::vector<std::string> format = {"quantization.kv_cache.quantization_method=" +
                                       method.substr(0, method.find(' '))};
    if (method.ends_with("groups")) format.push_back("quantization.kv_cache.group_size=4");
    const auto wide = answers(format, lines);
    format.insert(format.end(), {"esurge.page_size=3", "esurge.max_num_batched_tokens=4"});
    const auto narrow = answers(format, lines, 14);
    ASSERT_EQ(wide.size(), lines.size());
    ASSERT_EQ(narrow.size(), lines.size());
    for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(outputs(wide[i]), outputs(narrow[i])) << method;
    EXPECT_EQ(wide[1].find("cached_tokens")->as_int(), 7);
  }
}

TEST(ProbeEngine, GivesTheSameBitsWithADraftModelOfTheSameVocabulary) {
  const std::vector<std::string> lines = {
      R"({"prompt": "Once upon a time", "sampling": {"max_tokens": 12, "temperature": 0}})"};
  const auto draft = [](const char* folder) {
    return std::vector<std::string>{"esurge.speculative_model=" + test::test_data(folder).string(),
                                    "esurge.num_speculative_tokens=3"};
  };
  EXPECT_EQ(outputs(answers(draft("models/stories260K-hf"), lines)[0]), outputs(answers({}, lines)[0]));
  EXPECT_EQ(test::refusal([&] { answers(draft("hf_goldens/gemma3_text"), lines); }),
            "esurge.speculative_model: has a vocabulary of 128 tokens, and the model of 512\n"
            "    both models score the same ids; give one that was made from the same model");
}

}  // namespace
}  // namespace easydel::probe
