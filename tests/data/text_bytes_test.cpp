#include "easydel/data/text_bytes.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::data {
namespace {

TEST(TextBytes, AreThoseOfTheLabelsText) {
  const auto tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-hf"));
  const std::string question = "Once upon a time", answer = " there was a caf\xc3\xa9.";
  const auto prompt = tokenizer->encode(question), whole = tokenizer->encode(question + answer);
  std::vector<uint8_t> learn(whole.size(), 1);
  std::fill(learn.begin(), learn.begin() + std::ptrdiff_t(prompt.size()), uint8_t{0});
  std::vector<Example> examples(3);
  examples[0].add_sequence(whole);
  examples[1].add_sequence(whole, learn);
  examples[2].add_sequence(whole, learn);
  examples[2].add_sequence(whole);
  count_text_bytes(examples, *tokenizer, true);
  const auto bytes = [&](size_t i) {
    return std::get<std::vector<int64_t>>(examples[i].find(text_bytes)->values).at(0);
  };
  EXPECT_EQ(bytes(0), int64_t(question.size() + answer.size()));
  EXPECT_EQ(bytes(1), int64_t(answer.size()));
  EXPECT_EQ(bytes(2), int64_t(question.size() + 2 * answer.size()));
  std::vector<Example> unshifted(1);
  unshifted[0].add_unshifted(whole, learn);
  count_text_bytes(unshifted, *tokenizer, false);
  EXPECT_EQ(std::get<std::vector<int64_t>>(unshifted[0].find(text_bytes)->values).at(0), int64_t(answer.size()));
}

}  // namespace
}  // namespace easydel::data
