#include "easydel/text/tokenizers/tokenizer.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>

#include "easydel/base/document.h"
#include "easydel/base/files.h"
#include "easydel/text/remote/tokenize_lines.h"
#include "support/data.h"

namespace easydel::text {
namespace {

using test::refusal;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    out.push_back(text.substr(begin, end - begin));
  return out;
}

// Lines {"case": ..., "answer": ...} that the tokenizers package answered.
class AgainstThePackage : public ::testing::TestWithParam<const char*> {};

TEST_P(AgainstThePackage, GivesTheSameIdsTokensOffsetsAndTexts) {
  std::string name = GetParam();
  const TokenizeLines probe(Tokenizer::load(test::test_data("tokenizers/" + name + ".json.gz")));
  int count = 0;
  for (const std::string& line :
       lines_of(files::read_compressed(test::test_data("tokenizers/" + name + ".cases.jsonl.gz")))) {
    Value document = parse_json(line, name);
    Value answer = parse_json(probe.answer(to_json(*document.find("case"))), name);
    ASSERT_TRUE(answer == *document.find("answer")) << line << "\n" << to_json(answer);
    ++count;
  }
  EXPECT_EQ(count, 240);
}

INSTANTIATE_TEST_SUITE_P(Synthetic, AgainstThePackage,
                         ::testing::Values("cl100k", "nfc_single_digit", "o200k", "roberta", "falcon_like",
                                           "prepend_fallback", "metaspace_first", "clip_like", "prefixed_bpe",
                                           "word_piece", "word_level", "unigram_charsmap", "unigram_bytes", "clusters"),
                         [](auto& info) { return std::string(info.param); });

TEST(Tokenizer, FastPathGivesTheIdsOfTheFullOne) {
  for (const char* name : {"cl100k", "nfc_single_digit", "o200k", "roberta", "falcon_like", "prepend_fallback",
                           "metaspace_first", "unigram_charsmap", "unigram_bytes"}) {
    auto tokenizer = Tokenizer::load(test::test_data(str("tokenizers/", name, ".json.gz")));
    for (const std::string& line :
         lines_of(files::read_compressed(test::test_data(str("tokenizers/", name, ".cases.jsonl.gz"))))) {
      Value document = parse_json(line, name);
      const Value* text = document.find("case")->find("text");
      if (!text) continue;
      for (bool flag : {false, true}) {
        EncodeOptions options{.add_special_tokens = flag, .parse_special = !flag};
        ASSERT_EQ(tokenizer->encode(text->scalar, options),
                  tokenizer->encode_full(text->scalar, std::nullopt, options).ids)
            << name << line;
      }
    }
  }
}

// The vectors of upstream projects, for the families whose tokenizer.json is at hand.
TEST(Tokenizer, AgreesWithTheVectorsOfUpstreamProjects) {
  auto root = test::shared_data("tokenizers");
  if (!root) GTEST_SKIP() << "no shared data";
  int count = 0;
  for (auto& family : std::filesystem::directory_iterator(*root)) {
    auto file = family.path() / "tokenizer.json";
    if (!std::filesystem::exists(file)) file += ".gz";
    std::string name = family.path().filename().string();
    if (!std::filesystem::exists(file)) continue;
    auto tokenizer = Tokenizer::load(file);
    for (auto& entry : std::filesystem::directory_iterator(family)) {
      std::string base = entry.path().filename().string();
      if (!base.starts_with("vectors_") && !base.starts_with("golden_")) continue;
      if (name == "t5-small" && base == "golden_sentencepiece.json") continue;  // of the .model, which sums in floats
      Value vectors = parse_file(entry.path());
      for (const Value& vector : vectors.find("vectors")->items) {
        auto flag = [&](const char* key, bool fallback) {
          const Value* value = vector.find(key);
          if (!value) value = vectors.find(key);
          return value ? value->as_bool().value_or(fallback) : fallback;
        };
        std::optional<std::string> pair;
        if (const Value* second = vector.find("text_pair"); second && second->is_text()) pair = second->scalar;
        std::vector<TokenId> expected;
        for (const Value& id : vector.find("ids")->items) expected.push_back(static_cast<TokenId>(*id.as_int()));
        bool special = flag("add_special_tokens", base == "golden_hf.json");
        auto got =
            tokenizer->encode_full(vector.find("text")->scalar, pair, {special, flag("parse_special", true)}).ids;
        ASSERT_EQ(got, expected) << entry.path() << ": " << vector.find("text")->scalar;
        ++count;
      }
    }
  }
  EXPECT_GT(count, 3000);
}

std::shared_ptr<const Tokenizer> story() { return Tokenizer::load(test::test_data("models/stories260K-hf")); }

TEST(Tokenizer, OfAFolderKnowsItsSpecialTokens) {
  auto tokenizer = story();
  EXPECT_EQ(tokenizer->vocabulary_size(), 512);
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_EQ(tokenizer->unk_id(), 0);
  EXPECT_EQ(tokenizer->pad_id(), std::nullopt);
  EXPECT_TRUE(tokenizer->is_special(1));
  EXPECT_FALSE(tokenizer->is_special(3));
  EXPECT_EQ(tokenizer->id_of("<s>"), 1);
  EXPECT_EQ(tokenizer->id_of("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer->token_of(2), "</s>");
  EXPECT_EQ(tokenizer->token_of(100000), "");
  EXPECT_EQ(tokenizer->encode("Once upon a time").front(), 1);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("Once upon a time, é 你好")), "Once upon a time, é 你好");
}

TEST(Tokenizer, TakesBytesThatAreNoUtf8) {
  auto tokenizer = story();
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a\xff"
                                                "b\xe2\x82")),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
  EXPECT_EQ(tokenizer->encode_full("\xf0\x9f", std::nullopt).ids, tokenizer->encode("\xf0\x9f"));
}

TEST(Tokenizer, PutsBosAndEosWhereTheConfigSaysSo) {
  test::TemporaryFolder folder;
  test::write_file(folder / "vocab.json", R"({"<s>": 0, "</s>": 1, "a": 2})");
  test::write_file(folder / "merges.txt", "#version: 0.2\n");
  auto ids = [&](const std::string& config) {
    test::write_file(folder / "tokenizer_config.json", config);
    return Tokenizer::load(folder.path())->encode("a");
  };
  using Ids = std::vector<TokenId>;
  EXPECT_EQ(ids(R"({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": false})"), (Ids{2}));
  EXPECT_EQ(ids(R"({"bos_token": "<s>", "eos_token": "</s>", "add_eos_token": true})"), (Ids{2, 1}));
  EXPECT_EQ(
      ids(R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "add_bos_token": true, "add_eos_token": true})"),
      (Ids{0, 2, 1}));
  EXPECT_EQ(ids(R"({})"), (Ids{2}));
  // A tokenizer.json decides itself what is added around a text.
  test::write_file(folder / "tokenizer.json", test::read_file(test::test_data("models/stories260K-hf/tokenizer.json")));
  const Ids whole = ids(R"({})");
  EXPECT_EQ(whole.size(), 2u);
  EXPECT_EQ(ids(R"({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": false, "add_eos_token": true})"), whole);
}

TEST(Tokenizer, FindsItsChatTemplateInAnyOfThreePlaces) {
  test::TemporaryFolder folder;
  test::write_file(folder / "tokenizer.json", test::read_file(test::test_data("models/stories260K-hf/tokenizer.json")));
  auto load = [&] { return Tokenizer::load(folder.path())->chat_template(); };
  EXPECT_EQ(load(), std::nullopt);
  test::write_file(folder / "tokenizer_config.json", R"({"chat_template": "one"})");
  EXPECT_EQ(load(), "one");
  test::write_file(
      folder / "tokenizer_config.json",
      R"({"chat_template": [{"name": "rag", "template": "two"}, {"name": "default", "template": "three"}]})");
  EXPECT_EQ(load(), "three");
  test::write_file(folder / "chat_template.jinja", "four");
  EXPECT_EQ(load(), "four");
}

TEST(DecodeStream, AddsUpToTheWholeAndNeverShowsHalfACharacter) {
  for (const char* name : {"cl100k", "prepend_fallback", "metaspace_first", "clip_like", "word_piece",
                           "unigram_charsmap", "unigram_bytes"}) {
    auto tokenizer = Tokenizer::load(test::test_data(str("tokenizers/", name, ".json.gz")));
    for (const std::string& line :
         lines_of(files::read_compressed(test::test_data(str("tokenizers/", name, ".cases.jsonl.gz"))))) {
      Value document = parse_json(line, name);
      const Value* list = document.find("case")->find("ids");
      if (!list) list = document.find("answer")->find("ids");
      std::vector<TokenId> ids;
      for (const Value& id : list->items) ids.push_back(static_cast<TokenId>(*id.as_int()));
      for (bool skip : {false, true}) {
        DecodeStream stream(tokenizer, skip);
        std::string all;
        for (TokenId id : ids) {
          std::string piece = stream.push(id);
          EXPECT_FALSE(piece.ends_with("\xEF\xBF\xBD")) << name << line;
          all += piece;
        }
        all += stream.finish();
        ASSERT_EQ(all, tokenizer->decode(ids, skip, false)) << name << line;
      }
    }
  }
}

TEST(DecodeStream, HoldsAnEmojiBackUntilItIsWhole) {
  auto tokenizer = Tokenizer::load(test::test_data("tokenizers/cl100k.json.gz"));
  auto ids = tokenizer->encode("🙂!", {.add_special_tokens = false});
  ASSERT_EQ(ids.size(), 5u);  // four bytes and a mark
  DecodeStream stream(tokenizer);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stream.push(ids[i]), "");
  EXPECT_EQ(stream.push(ids[3]), "🙂");
  EXPECT_EQ(stream.push(ids[4]), "!");
}

// What a thread keeps for its next text does not grow with the longest one.
TEST(Tokenizer, KeepsNoMemoryOfALongText) {
  const auto allocated = [] {
    const struct mallinfo2 all = ::mallinfo2();
    return all.uordblks + all.hblkhd;
  };
  std::string words, one;
  for (int i = 0; i < 1'500'000; ++i) words += "word ";
  for (int i = 0; i < 3'000'000; ++i) one += char('a' + i * 7 % 26);
  for (const char* name : {"cl100k", "falcon_like", "roberta", "prepend_fallback", "unigram_bytes"}) {
    const auto tokenizer = Tokenizer::load(test::test_data(str("tokenizers/", name, ".json.gz")));
    tokenizer->encode(one.substr(0, 1000));  // what is made once
    const size_t before = allocated();
    EXPECT_GT(tokenizer->encode(words).size(), 10u);
    EXPECT_GT(tokenizer->encode(one).size(), 10u);
    EXPECT_LT(allocated(), before + (size_t(6) << 20)) << name;
  }
}

TEST(Tokenizer, RefusesFilesThatAreNone) {
  test::TemporaryFolder folder;
  auto refused = [&](const std::string& json) {
    test::write_file(folder / "tokenizer.json", json);
    return test::replaced(refusal([&] { Tokenizer::load(folder / "tokenizer.json"); }), folder.path().string(), "F");
  };
  constexpr const char* again = "\n    fetch the tokenizer again";
  const std::string works =
      "\n    give the folder of a tokenizer, or a tokenizer.json, tokenizer.model, *.tiktoken, tekken.json, vocab.txt "
      "or "
      "*.gguf";
  EXPECT_EQ(test::replaced(refusal([&] { Tokenizer::load(folder.path()); }), folder.path().string(), "F"),
            "F: has no tokenizer (tokenizer.json)" + works);
  EXPECT_EQ(test::replaced(refusal([&] { Tokenizer::load(folder / "x"); }), folder.path().string(), "F"),
            "F/x: no such file or folder" + works);
  EXPECT_TRUE(refused("{\"model\": ").starts_with("F/tokenizer.json: is not valid JSON: "));
  EXPECT_EQ(refused("{}"), "F/tokenizer.json: has no 'model'\n    is it the file of a tokenizer?");
  EXPECT_EQ(refused(R"({"model": {"type": "BPE", "vocab": {"a": 0}}})"),
            std::string("F/tokenizer.json: the BPE model has no 'merges'") + again);
  EXPECT_EQ(
      refused(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})"),
      std::string("F/tokenizer.json: merge 0 ('a' with 'b') needs the token 'b', which is not in the vocabulary") +
          again);
  EXPECT_EQ(refused(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]}})"),
            std::string("F/tokenizer.json: merge 0 ('a') is not two tokens") + again);
  EXPECT_EQ(refused(R"({"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}})"),
            std::string("F/tokenizer.json: the token 'a' has no id from 0 to 16777215") + again);
  EXPECT_EQ(refused(R"({"model": {"type": "BPE", "dropout": 0.1, "vocab": {"a": 0}, "merges": []}})"),
            "F/tokenizer.json: BPE has 'dropout': 0.1; tokens that change from call to call are not built\n    set it "
            "to null, or to 1 for none of the merges");
  EXPECT_EQ(refused(R"({"model": {"type": "BPE", "dropout": 1.5, "vocab": {"a": 0}, "merges": []}})"),
            "F/tokenizer.json: BPE has 'dropout': 1.5\n    it must be from 0 to 1");
  EXPECT_EQ(refused(R"({"model": {"type": "Markov", "vocab": {"a": 0}}})"),
            "F/tokenizer.json: the model 'Markov' is not known\n    known: BPE, Unigram, WordPiece, WordLevel");
  EXPECT_EQ(refused(R"({"model": {"type": "Unigram", "unk_id": 3, "vocab": [["a", -1.5]]}})"),
            std::string("F/tokenizer.json: 'unk_id' is 3 and there are 1 tokens") + again);
  EXPECT_EQ(refused(R"({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAAAA=="}, "model": {}})"),
            std::string("F/tokenizer.json: the compiled character map of 4 bytes is broken") + again);
  EXPECT_EQ(refused(R"({"normalizer": {"type": "Rot13"}, "model": {}})"),
            "F/tokenizer.json: the normalizer 'Rot13' is not known\n    known: NFC, NFD, NFKC, NFKD, Lowercase, "
            "Replace, Prepend, Strip, StripAccents, ByteLevel, BertNormalizer, Nmt, Precompiled, Sequence");
  EXPECT_EQ(
      refused(
          R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"}, "model": {}})"),
      "F/tokenizer.json: the pattern '(a' cannot be compiled: end pattern with unmatched parenthesis\n"
      "    it must be a regular expression of Oniguruma");
}

TEST(Probe, AnswersABadLineWithItsError) {
  const TokenizeLines probe(Tokenizer::load(test::test_data("models/stories260K-hf")));
  EXPECT_EQ(probe.answer("[]"), R"({"error": "line: is not a JSON object"})");
  EXPECT_EQ(probe.answer("{}"), R"({"error": "line: 'text' is missing or no string"})");
  EXPECT_EQ(probe.answer(R"({"ids": [-1]})"), R"({"error": "line: 'ids' has something that is not a token id"})");
}

TEST(Tokenizer, DropsAllMergesOrNoneWhereTheFileSaysSo) {
  test::TemporaryFolder folder;
  for (auto [dropout, ids] : {std::pair<const char*, std::vector<TokenId>>("0.0", {2}), {"1.0", {0, 1}}}) {
    test::write_file(folder / "tokenizer.json",
                     str(R"({"model": {"type": "BPE", "ignore_merges": true, "dropout": )", dropout,
                         R"(, "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})"));
    EXPECT_EQ(Tokenizer::load(folder / "tokenizer.json")->encode("ab"), ids) << dropout;
  }
}

}  // namespace
}  // namespace easydel::text
