// What TRL makes of rows is in tests/train/prepare_test.cpp.
#include "easydel/data/encode.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "easydel/base/log.h"
#include "support/data.h"

namespace easydel::data {
namespace {

using Ids = std::vector<int32_t>;

std::shared_ptr<const text::Tokenizer> stories() {
  static const auto tokenizer = text::Tokenizer::load(test::test_data("models/stories260K-chat"));
  return tokenizer;
}

TypedRow row(const std::string& json) { return typed({parse_json(json), "a.jsonl:1"}, {}); }

Ids joined(Ids first, const Ids& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(Encoder, EndsATextWithEosAndBeginsItWithOneBos) {
  const Encoder encoder(stories(), {});
  const Ids plain = stories()->encode("Once upon");
  ASSERT_EQ(plain.front(), stories()->bos_id());
  EXPECT_EQ(encoder.encode(row(R"({"text": "Once upon"})")).ids, joined(plain, {*stories()->eos_id()}));
  const std::string bos = stories()->token_of(*stories()->bos_id()), eos = stories()->token_of(*stories()->eos_id());
  const Ids spelled = encoder.encode(row(R"({"text": ")" + bos + "Once upon" + eos + "\"}")).ids;
  EXPECT_NE(spelled.at(1), *stories()->bos_id()) << "a text that spells BOS has it once";
  EXPECT_EQ(std::ranges::count(spelled, *stories()->eos_id()), 1) << "a text that spells EOS has it once";
}

TEST(Encoder, LeavesOutWhatItsOptionsLeaveOut) {
  const Encoder bare(stories(), {.add_special_tokens = false, .eos = {}, .append_eos = false});
  const Ids ids = bare.encode(row(R"({"text": "Once upon"})")).ids;
  EXPECT_EQ(joined({*stories()->bos_id()}, ids), stories()->encode("Once upon"));
  const int32_t bos = *stories()->bos_id();
  const Encoder other(stories(), {.eos = bos});
  EXPECT_EQ(other.encode(row(R"({"text": "Once"})")).ids.back(), bos);
  EXPECT_EQ(test::refusal([] { Encoder(stories(), {.eos = 1 << 20}); }),
            "tokenizer: there is no token 1048576 to end texts with\n    see mixture.pack_eos_token_id");
}

TEST(Encoder, SaysWhereAnAnswerBegins) {
  const Encoder encoder(stories(), {});
  const Encoded made = encoder.encode(row(R"({"prompt": "Once upon a time", "completion": " there was"})"));
  EXPECT_EQ(Ids(made.ids.begin(), made.ids.begin() + made.prompt), stories()->encode("Once upon a time"));
  const EncodedPair pair =
      encoder.encode_pair(row(R"({"prompt": "Once upon a time", "chosen": " there was", "rejected": " a cat"})"));
  EXPECT_EQ(pair.prompt, stories()->encode("Once upon a time"));
  EXPECT_EQ(joined(pair.prompt, pair.chosen), made.ids);
  EXPECT_EQ(pair.rejected.back(), *stories()->eos_id());
  EXPECT_NE(pair.rejected, pair.chosen);
}

// "Onc" + "e": the tokens of the prompt are not the first ones of the whole.
TEST(Encoder, WritesAnInstructionForTheTemplateOrAsAlpacaDid) {
  const TypedRow alpaca = row(R"({"instruction": "Say it", "input": "now", "output": "Once"})");
  const Encoder chat(stories(), {});
  EXPECT_EQ(chat.encode(alpaca).ids, chat.encode(row(R"({"messages": [{"role": "user", "content": "Say it\nnow"},
                                            {"role": "assistant", "content": "Once"}]})"))
                                         .ids);
  const auto base = text::Tokenizer::load(test::test_data("models/stories260K-hf"));
  const Encoder plain(base, {});
  const Encoded made = plain.encode(alpaca);
  EXPECT_EQ(made.ids, joined(base->encode(alpaca.instruction_text + "Once"), {*base->eos_id()}));
  EXPECT_EQ(Ids(made.ids.begin(), made.ids.begin() + made.prompt), base->encode(alpaca.instruction_text));
}

TEST(Encoder, WarnsOnceWhereAPromptEndsWithinAToken) {
  std::vector<std::string> lines;
  log::set_sink([&](log::Level, std::string_view line) { lines.emplace_back(line); });
  const Encoder encoder(stories(), {});
  const TypedRow cut = row(R"({"prompt": "There was a litt", "completion": "le girl"})");
  const Encoded made = encoder.encode(cut);
  encoder.encode(cut);
  log::set_sink(nullptr);
  EXPECT_LT(made.prompt, static_cast<int64_t>(stories()->encode("There was a litt").size()));
  EXPECT_EQ(std::ranges::count_if(
                lines, [](const std::string& line) { return line.find("reported once") != std::string::npos; }),
            1);
}

TEST(Encoder, RefusesRowsOfTheOtherKind) {
  const Encoder encoder(stories(), {});
  EXPECT_EQ(test::refusal([&] { encoder.encode(row(R"({"prompt": "a", "chosen": "b", "rejected": "c"})")); }),
            "a.jsonl:1: a row of kind preference has two answers\n    give texts, messages, or prompt + completion");
  EXPECT_EQ(test::refusal([&] { encoder.encode_pair(row(R"({"text": "a"})")); }),
            "a.jsonl:1: a row of kind text has no pair of answers\n    give the fields prompt, chosen and rejected");
}

}  // namespace
}  // namespace easydel::data
