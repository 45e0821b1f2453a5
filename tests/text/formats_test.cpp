#include "easydel/text/tokenizers/formats.h"

#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "easydel/base/files.h"
#include "easydel/text/tokenizers/json_scores.h"
#include "support/data.h"
#include "text/gguf_bytes.h"

namespace easydel::text {
namespace {

using test::refusal;
using Ids = std::vector<TokenId>;
constexpr const char* again = "\n    fetch the tokenizer again";

class Formats : public ::testing::Test {
 protected:
  std::shared_ptr<const Tokenizer> load(const std::string& name, const std::string& bytes) {
    test::write_file(folder_ / name, bytes);
    return Tokenizer::load(folder_ / name);
  }
  std::string refused(const std::string& name, const std::string& bytes) {
    return test::replaced(refusal([&] { load(name, bytes); }), folder_.path().string(), "F");
  }
  test::TemporaryFolder folder_;
};

TEST_F(Formats, HalfOfATokenizerSaysWhichHalfIsMissing) {
  EXPECT_EQ(refused("merges.txt", "#version: 0.2\na b\n"),
            "F/merges.txt: is half of a tokenizer\n    give its folder, or vocab.json next to it");
  const auto folder = [&] {
    const std::string said =
        test::replaced(refusal([&] { Tokenizer::load(folder_.path()); }), folder_.path().string(), "F");
    return said.substr(0, said.find('\n'));
  };
  EXPECT_EQ(folder(), "F/merges.txt: has no vocab.json next to it");
  std::filesystem::rename(folder_ / "merges.txt", folder_ / "vocab.json");
  EXPECT_EQ(folder(), "F/vocab.json: has no merges.txt next to it");
  EXPECT_EQ(refused("tokenizer.json", "[]"), std::string("F/tokenizer.json: is not a JSON object") + again);
}

// What tokenizers 0.23.3 reads: not always the nearest double.
TEST(Scores, AreReadWithTheRoundingOfSerde) {
  EXPECT_EQ(serde_number("-2.0122928619384766"), -2.012292861938477);
  EXPECT_EQ(serde_number("-3.9598512649536133"), -3.9598512649536137);
  EXPECT_EQ(serde_number("0"), 0);
  EXPECT_EQ(serde_number("-7"), -7);
  EXPECT_EQ(serde_number("1.5e-3"), 15.0 / 1e4);
  EXPECT_EQ(serde_number("2E+2"), 200);
  EXPECT_EQ(serde_number("123456789012345678901234567890"), 12345678901234567890.0 * 1e10);
  EXPECT_EQ(serde_number("0.12345678901234567890123"), 12345678901234567890.0 / 1e20);
  EXPECT_EQ(serde_number("1e-400"), 0);
}

Ids ids_of(const Value& list) {
  Ids out;
  for (const Value& id : list.items) out.push_back(static_cast<TokenId>(*id.as_int()));
  return out;
}

// The answers of the sentencepiece library 0.1.97.
TEST_F(Formats, SentencePieceGivesTheIdsPiecesAndTextsOfTheLibrary) {
  auto tokenizer = load("x.model", files::read_compressed(test::test_data("tokenizers/unigram_1000.model.gz")));
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  std::string lines = files::read_compressed(test::test_data("tokenizers/unigram_1000.golden.jsonl.gz"));
  int count = 0;
  for (size_t begin = 0, end; (end = lines.find('\n', begin)) != std::string::npos; begin = end + 1, ++count) {
    Value line = parse_json(lines.substr(begin, end - begin));
    Encoding encoding = tokenizer->encode_full(line.find("text")->scalar, std::nullopt);
    ASSERT_EQ(encoding.ids, ids_of(*line.find("ids"))) << lines.substr(begin, end - begin);
    ASSERT_EQ(tokenizer->encode(line.find("text")->scalar), encoding.ids);
    for (size_t i = 0; i < encoding.tokens.size(); ++i)
      ASSERT_EQ(encoding.tokens[i], line.find("pieces")->items[i].scalar);
    ASSERT_EQ(tokenizer->decode(encoding.ids), line.find("decoded")->scalar);
  }
  EXPECT_EQ(count, 61);
}

// A message of one SentencePiece model, written by hand.
struct ProtoMessage {
  std::string bytes;
  ProtoMessage& text(int field, const std::string& value) {
    bytes += static_cast<char>(field << 3 | 2);
    bytes += static_cast<char>(value.size());
    bytes += value;
    return *this;
  }
  ProtoMessage& number(int field, int value) {
    bytes += static_cast<char>(field << 3 & 0x7f) + (field > 15 ? std::string() : std::string());
    if (field > 15)
      bytes.back() = static_cast<char>((field << 3 & 0x7f) | 0x80), bytes += static_cast<char>(field >> 4);
    bytes += static_cast<char>(value);
    return *this;
  }
  ProtoMessage& score(float value) {
    bytes += static_cast<char>(2 << 3 | 5);
    bytes.append(reinterpret_cast<const char*>(&value), 4);
    return *this;
  }
};
std::string piece(const std::string& text, float score, int kind = 1) {
  return ProtoMessage().text(1, text).score(score).number(3, kind).bytes;
}

TEST_F(Formats, SentencePieceMergesByScoreAndLeavesWhatTheUserDefined) {
  ProtoMessage model;
  model.text(1, piece("<unk>", 0, 2)).text(1, piece("<s>", 0, 3)).text(1, piece("</s>", 0, 3));
  model.text(1, piece("ab", -2)).text(1, piece("bc", -1)).text(1, piece("[x]", 0, 4)).text(1, piece("\u2581", -3));
  for (const char* one : {"a", "b", "c", "x", "["}) model.text(1, piece(one, -9));
  model.text(2, ProtoMessage().number(3, 2).bytes);
  auto tokenizer = load("tokenizer.model", model.bytes);
  EXPECT_EQ(tokenizer->encode("abc"), (Ids{6, 7, 4}));
  EXPECT_EQ(tokenizer->encode("ab[x]c"), (Ids{6, 3, 5, 9}));
  EXPECT_EQ(tokenizer->encode("a?!b"), (Ids{6, 7, 0, 8}));
  EXPECT_EQ(tokenizer->encode("  a  "), (Ids{6, 7}));
  EXPECT_EQ(tokenizer->encode("<s>a"), (Ids{1, 6, 7}));
  EXPECT_EQ(tokenizer->encode("<s>", {.parse_special = false}).front(), 6);
  EXPECT_EQ(tokenizer->decode(Ids{1, 6, 7, 0, 8}), "a \u2047 b");
  EXPECT_EQ(tokenizer->decode(Ids{}), "");
}

TEST_F(Formats, SentencePieceRefusesWhatIsNoModel) {
  EXPECT_EQ(
      refused("tokenizer.model", "x"),
      std::string("F/tokenizer.model: is not a SentencePiece model: a field of it is truncated or of no known kind") +
          again);
  EXPECT_EQ(refused("tokenizer.model", ""),
            std::string("F/tokenizer.model: is not a SentencePiece model: it has no pieces") + again);
  EXPECT_EQ(refused("tokenizer.model", ProtoMessage().text(1, piece("a", 0)).bytes),
            std::string("F/tokenizer.model: has no unknown piece") + again);
  EXPECT_EQ(refused("tokenizer.model", ProtoMessage().text(1, piece("a", 0)).text(1, piece("a", 0)).bytes),
            std::string("F/tokenizer.model: the piece 'a' is there twice") + again);
  EXPECT_EQ(refused("tokenizer.model", ProtoMessage().text(1, piece("\xff", 0)).bytes),
            std::string("F/tokenizer.model: piece 0 is empty or no UTF-8") + again);
  EXPECT_EQ(refused("tokenizer.model", ProtoMessage().text(1, piece("a", 0, 9)).bytes),
            std::string("F/tokenizer.model: has a piece of the unknown kind 9") + again);
}

TEST_F(Formats, AFolderOfASentencePieceModelHasTheBosOfItsClass) {
  ProtoMessage model;
  model.text(1, piece("<unk>", 0, 2)).text(1, piece("<s>", 0, 3)).text(1, piece("</s>", 0, 3));
  model.text(1, piece("\u2581", -3)).text(1, piece("a", -1)).text(2, ProtoMessage().number(3, 2).bytes);
  test::write_file(folder_ / "tokenizer.model", model.bytes);
  EXPECT_EQ(Tokenizer::load(folder_.path())->encode("a"), (Ids{3, 4}));
  test::write_file(folder_ / "tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "legacy": true})");
  EXPECT_EQ(Tokenizer::load(folder_.path())->encode("a</s>a"), (Ids{1, 3, 4, 2, 3, 4}));
  test::write_file(folder_ / "tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "legacy": false})");
  EXPECT_EQ(Tokenizer::load(folder_.path())->encode("a</s>a"), (Ids{1, 3, 4, 2, 4}));
  test::write_file(folder_ / "tokenizer_config.json", R"({"tokenizer_class": "M2M100Tokenizer"})");
  EXPECT_EQ(test::replaced(refusal([&] { Tokenizer::load(folder_.path()); }), folder_.path().string(), "F"),
            "F/tokenizer.model: a M2M100Tokenizer does more than its SentencePiece model says; that is not built yet\n"
            "    save it with transformers as tokenizer.json");
}

// What AutoTokenizer of transformers 5.23 answers for the same folder.
TEST_F(Formats, AClassOfTransformersNumbersThePiecesAnew) {
  ProtoMessage model;
  model.text(1, piece("<unk>", 0, 2)).text(1, piece("<s>", 0, 3)).text(1, piece("</s>", 0, 3));
  for (const char* one : {"\u2581", "a", "\u2581a", "b"}) model.text(1, piece(one, -2));
  model.text(2, ProtoMessage().number(3, 1).bytes);
  test::write_file(folder_ / "tokenizer.model", model.bytes);
  auto encoded = [&](const std::string& config, const std::string& text) {
    test::write_file(folder_ / "tokenizer_config.json", config);
    return Tokenizer::load(folder_.path())->encode_full(text, std::nullopt);
  };
  using Tokens = std::vector<std::string>;
  Encoding roberta = encoded(R"({"tokenizer_class": "XLMRobertaTokenizer"})", "a b<mask>x");
  EXPECT_EQ(roberta.ids, (Ids{0, 6, 4, 7, 8, 4, 3, 2}));
  EXPECT_EQ(roberta.tokens, (Tokens{"<s>", "\u2581a", "\u2581", "b", "<mask>", "\u2581", "x", "</s>"}));
  EXPECT_EQ(encoded(R"({"tokenizer_class": "CamembertTokenizerFast"})", "a <mask>").ids, (Ids{5, 9, 11, 6}));
  EXPECT_EQ(encoded(R"({"tokenizer_class": "MBartTokenizer", "src_lang": "de_DE"})", "b").ids, (Ids{4, 7, 2, 10}));
  EXPECT_EQ(encoded(R"({"tokenizer_class": "MBart50Tokenizer"})", "b").ids, (Ids{11, 4, 7, 2}));
  EXPECT_EQ(encoded(R"({"tokenizer_class": "T5Tokenizer", "extra_ids": 2})", "b<extra_id_0>").ids, (Ids{3, 6, 8, 2}));
  EXPECT_EQ(encoded(R"({"tokenizer_class": "NllbTokenizer", "additional_special_tokens": ["eng_Latn"]})", "aa").ids,
            (Ids{9, 6, 5, 2}));
  EXPECT_EQ(encoded(R"({"tokenizer_class": "XLNetTokenizer"})", "\u00e1 b").ids, (Ids{5, 3, 6, 7, 9}));
  std::string unknown = folder_.path().string() +
                        "/tokenizer.model: has no piece '<nope>', which a PegasusTokenizer has for what is unknown\n"
                        "    is it the model of another class?";
  EXPECT_EQ(refusal([&] { encoded(R"({"tokenizer_class": "PegasusTokenizer", "unk_token": "<nope>"})", ""); }),
            unknown);
}

TEST_F(Formats, TheFamilyOfAModelNamesTheClassWhereItsTokenizerDoesNot) {
  ProtoMessage model;
  model.text(1, piece("<unk>", 0, 2)).text(1, piece("<s>", 0, 3)).text(1, piece("</s>", 0, 3));
  model.text(1, piece("\u2581a", -2)).text(2, ProtoMessage().number(3, 1).bytes);
  test::write_file(folder_ / "sentencepiece.bpe.model", model.bytes);
  test::write_file(folder_ / "config.json", R"({"model_type": "xlm-roberta"})");
  EXPECT_EQ(Tokenizer::load(folder_.path())->encode("a"), (Ids{0, 4, 2}));
  test::write_file(folder_ / "config.json", R"({"model_type": "llama"})");
  EXPECT_EQ(Tokenizer::load(folder_.path())->encode("a"), (Ids{3}));
}

TEST_F(Formats, TiktokenMergesByRankAndKnowsItsFamily) {
  // a b c ' ' ab bc abc
  std::string lines = "YQ== 0\nYg== 1\nYw== 2\nIA== 3\nYmM= 4\nYWI= 5\nIGE= 6\n";
  auto tokenizer = load("mine.tiktoken", lines);
  EXPECT_EQ(tokenizer->encode("abc ab"), (Ids{0, 4, 3, 5}));
  EXPECT_EQ(tokenizer->encode("ab"), (Ids{5}));  // a whole piece takes precedence
  EXPECT_EQ(tokenizer->encode_full("b a", std::nullopt).tokens, (std::vector<std::string>{"b", "\u0120a"}));
  EXPECT_EQ(tokenizer->decode(Ids{0, 4, 6, 1}), "abc ab");
  auto gpt4 = load("cl100k_base.tiktoken", lines);
  EXPECT_EQ(gpt4->encode("a<|endoftext|>b"), (Ids{0, 100257, 1}));
  EXPECT_EQ(gpt4->eos_id(), 100257);
  EXPECT_EQ(refused("x.tiktoken", "YQ== x\n"),
            std::string("F/x.tiktoken: line 1 is not base64, a space and a rank below 16777216") + again);
  EXPECT_EQ(refused("x.tiktoken", "YQ== 0\n?? 1\n"),
            std::string("F/x.tiktoken: line 2 is not base64, a space and a rank below 16777216") + again);
  EXPECT_EQ(refused("x.tiktoken", ""), std::string("F/x.tiktoken: has no ranks") + again);
}

TEST_F(Formats, TekkenPutsItsSpecialTokensFirst) {
  auto tokenizer = load("tekken.json", R"({"config": {"pattern": "[a-z]+|.", "default_vocab_size": 7,
      "default_num_special_tokens": 3, "version": "v3"}, "vocab": [{"rank": 0, "token_bytes": "YQ==", "token_str": "a"},
      {"rank": 1, "token_bytes": "Yg==", "token_str": "b"}, {"rank": 2, "token_bytes": "YWI=", "token_str": "ab"},
      {"rank": 3, "token_bytes": "IA==", "token_str": " "}, {"rank": 4, "token_bytes": "Yw==", "token_str": "c"}]})");
  EXPECT_EQ(tokenizer->encode("ab a</s>"), (Ids{1, 5, 6, 3, 2}));
  EXPECT_EQ(tokenizer->vocabulary_size(), 7);
  EXPECT_EQ(tokenizer->decode(Ids{1, 5, 6, 3, 2}), "ab a");
  EXPECT_EQ(
      refused("tekken.json", "{}"),
      std::string("F/tekken.json: lacks its 'config' (pattern, default_vocab_size, default_num_special_tokens) or its "
                  "'vocab'") +
          again);
}

TEST_F(Formats, RwkvTakesTheLongestTokenOfEachPlace) {
  auto tokenizer = load("rwkv_vocab.txt", "1 'a' 1\n2 'ab' 2\n3 b'\\xe4\\xbd' 2\n4 '\\n' 1\n5 \"'\" 1\n6 'b' 1\n");
  EXPECT_EQ(tokenizer->encode("abab'\n"), (Ids{2, 2, 5, 4}));
  EXPECT_EQ(tokenizer->decode(Ids{2, 5, 4}), "ab'\n");
  EXPECT_EQ(refusal([&] { tokenizer->encode("c"); }), "tokenizer: the vocabulary lacks the byte 99");
  EXPECT_EQ(refused("rwkv_vocab.txt", "1 'a' 1\n2 'ab' 3\n"),
            std::string("F/rwkv_vocab.txt: line 2 is not an id, a Python literal and its length in bytes") + again);
}

TEST_F(Formats, AListOfWordsIsBerts) {
  std::string list = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nna\n##ive\ncat\n";
  auto tokenizer = load("vocab.txt", list);
  EXPECT_EQ(tokenizer->encode("Naïve cat dog"), (Ids{2, 5, 6, 7, 1, 3}));
  EXPECT_EQ(tokenizer->decode(Ids{2, 5, 6, 7, 3}), "naive cat");
  test::write_file(folder_ / "tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_EQ(Tokenizer::load(folder_.path())->encode("Na cat"), (Ids{2, 1, 7, 3}));
}

// As transformers 5.23 reads the same files.
TEST_F(Formats, EachClassPutsItsOwnStepsAroundAVocabulary) {
  test::write_file(folder_ / "merges.txt", "#version: 0.2\na b\n");
  test::write_file(folder_ / "vocab.json", R"({"a": 0, "b": 1, "ab": 2, "\u0120": 3, "<s>": 4, "</s>": 5, "1": 6})");
  const auto pair = [&](const std::string& config) {
    test::write_file(folder_ / "tokenizer_config.json", config);
    return Tokenizer::load(folder_.path())->encode_full("ab 11", "a");
  };
  Encoding roberta = pair(R"({"tokenizer_class": "RobertaTokenizer"})");
  EXPECT_EQ(roberta.ids, (Ids{4, 2, 3, 6, 6, 5, 5, 0, 5}));
  EXPECT_EQ(roberta.offsets[2], (std::pair<int64_t, int64_t>(3, 3)));
  EXPECT_EQ(pair(R"({"tokenizer_class": "RobertaTokenizer", "trim_offsets": false})").offsets[2],
            (std::pair<int64_t, int64_t>(2, 3)));
  EXPECT_EQ(pair(R"({"tokenizer_class": "RobertaTokenizer", "cls_token": "<c>"})").ids.front(), 9);
  EXPECT_EQ(pair(R"({"tokenizer_class": "BlenderbotTokenizer"})").ids, (Ids{3, 2, 3, 6, 6, 3, 0}));
  EXPECT_EQ(pair(R"({"tokenizer_class": "DebertaTokenizer"})").ids, (Ids{7, 2, 3, 6, 6, 8, 8, 0, 8}));
  std::filesystem::remove(folder_ / "tokenizer_config.json");
  test::write_file(folder_ / "config.json", R"({"model_type": "bart"})");
  EXPECT_EQ(Tokenizer::load(folder_.path())->encode("a"), (Ids{4, 0, 5}));
  test::write_file(folder_ / "vocab.txt", "[UNK]\n<cls>\n<sep>\na\n");
  std::filesystem::remove(folder_ / "vocab.json");
  EXPECT_EQ(Tokenizer::load(folder_.path())->encode("A"), (Ids{6, 3, 4}));  // [CLS] and [SEP] come to the vocabulary
  const Encoding funnel = [&] {
    test::write_file(folder_ / "tokenizer_config.json",
                     R"({"tokenizer_class": "FunnelTokenizer", "unk_token": "[UNK]"})");
    return Tokenizer::load(folder_.path())->encode_full("A", "a");
  }();
  EXPECT_EQ(funnel.ids, (Ids{1, 3, 2, 3, 2}));
  EXPECT_EQ(funnel.type_ids, (std::vector<uint8_t>{2, 0, 0, 1, 1}));
}

TEST_F(Formats, VocabularyAndMergesHaveTheStepsOfTheirClass) {
  test::write_file(folder_ / "vocab.json",
                   R"({"a": 0, "b": 1, "ab": 2, "\u0120": 3, "<|endoftext|>": 4, "1": 5, "11": 6})");
  EXPECT_EQ(test::replaced(refusal([&] { Tokenizer::load(folder_ / "vocab.json"); }), folder_.path().string(), "F"),
            "F/vocab.json: has no merges.txt next to it\n    give the folder of a tokenizer, or a tokenizer.json, "
            "tokenizer.model, *.tiktoken, tekken.json, vocab.txt or *.gguf");
  test::write_file(folder_ / "merges.txt", "#version: 0.2\na b\n1 1\n");
  auto tokenizer = Tokenizer::load(folder_.path());
  EXPECT_EQ(tokenizer->encode("ab 11<|endoftext|>"), (Ids{2, 3, 6, 4}));
  EXPECT_EQ(tokenizer->files().size(), 2u);
  test::write_file(folder_ / "tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})");
  EXPECT_EQ(Tokenizer::load(folder_.path())->encode("ab 11"), (Ids{2, 3, 5, 5}));  // digits one by one
}

TEST_F(Formats, GgufHoldsBytePairs) {
  GgufBytes gguf;
  gguf.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "qwen2");
  gguf.texts("tokenizer.ggml.tokens", {"a", "b", "ab", "1", "<end>", "\u0120"})
      .texts("tokenizer.ggml.merges", {"a b", "1 1"});
  gguf.list<int32_t>("tokenizer.ggml.token_type", 5, {1, 1, 1, 1, 3, 1});
  gguf.id("tokenizer.ggml.bos_token_id", 4).flag("tokenizer.ggml.add_bos_token", true);
  gguf.text("tokenizer.chat_template", "hello");
  auto tokenizer = load("x.gguf", gguf.file());
  EXPECT_EQ(tokenizer->encode("ab 11<end>"), (Ids{4, 2, 5, 3, 3, 4}));
  EXPECT_EQ(tokenizer->chat_template(), "hello");
  EXPECT_EQ(tokenizer->bos_id(), 4);
}

TEST_F(Formats, GgufHoldsPiecesByScore) {
  GgufBytes gguf;
  gguf.text("tokenizer.ggml.model", "llama");
  gguf.texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "<0x3F>", "\u2581", "a", "b", "ab"});
  gguf.list<float>("tokenizer.ggml.scores", 6, {0, 0, 0, 0, -1, -2, -3, -1});
  gguf.list<int32_t>("tokenizer.ggml.token_type", 5, {2, 3, 3, 6, 1, 1, 1, 1});
  auto tokenizer = load("x.gguf", gguf.file());
  EXPECT_EQ(tokenizer->encode("ab?</s>b"), (Ids{1, 4, 7, 3, 2, 4, 6}));
}

TEST_F(Formats, GgufRefusesWhatItCannotRead) {
  EXPECT_EQ(refused("x.gguf", "GGML"), "F/x.gguf: is not a GGUF file\n    fetch the file again");
  GgufBytes gguf;
  gguf.text("tokenizer.ggml.model", "gpt2");
  std::string bytes = gguf.file();
  EXPECT_EQ(refused("x.gguf", bytes.substr(0, bytes.size() - 1)),
            "F/x.gguf: is truncated in its metadata\n    fetch the file again");
  EXPECT_EQ(refused("x.gguf", bytes), "F/x.gguf: has no tokens\n    give a file with a vocabulary");
  EXPECT_EQ(refused("x.gguf", GgufBytes().file()),
            "F/x.gguf: has no vocabulary (tokenizer.ggml.model)\n    give a GGUF file with one");
  gguf.text("tokenizer.ggml.pre", "mine").texts("tokenizer.ggml.tokens", {"a"});
  EXPECT_EQ(refused("x.gguf", gguf.file()),
            "F/x.gguf: names the pre-tokenizer 'mine', which is not known\n    give the folder of the model with its "
            "tokenizer.json");
  EXPECT_EQ(refused("x.gguf",
                    GgufBytes().text("tokenizer.ggml.model", "plamo2").texts("tokenizer.ggml.tokens", {"a"}).file()),
            "F/x.gguf: has a vocabulary of the kind 'plamo2', which is not built yet\n    built: gpt2, llama, bert, "
            "t5, rwkv, "
            "gemma4, whitespace");
}

// The vectors of upstream projects through every form of a vocabulary that is at hand.
TEST(FormatVectors, EveryFormGivesTheIdsOfUpstreamVectors) {
  auto root = test::shared_data("tokenizers");
  if (!root) GTEST_SKIP() << "no shared data";
  struct Case {
    const char *file, *vectors;
  };
  int count = 0;
  for (auto [file, vectors] : std::initializer_list<Case>{
           {"bert-base-uncased/ggml-vocab-bert-bge.gguf", "bert-base-uncased/vectors_llamacpp.json"},
           {"bert-base-uncased/ggml-vocab-bert-bge.gguf", "bert-base-uncased/vectors_transformersjs.json"},
           {"bert-base-uncased/vocab.txt", "bert-base-uncased/vectors_squad_questions.json"},
           {"bert-base-uncased/vocab.txt", "bert-base-uncased/vectors_transformersjs.json"},
           {"deepseek-coder/ggml-vocab-deepseek-coder.gguf", "deepseek-coder/vectors_llamacpp.json"},
           {"deepseek-coder/ggml-vocab-deepseek-coder.gguf", "deepseek-coder/vectors_transformersjs.json"},
           {"falcon/ggml-vocab-falcon.gguf", "falcon/vectors_llamacpp.json"},
           {"falcon/ggml-vocab-falcon.gguf", "falcon/vectors_transformersjs.json"},
           {"gpt2/ggml-vocab-gpt-2.gguf", "gpt2/vectors_llamacpp.json"},
           {"gpt2/vocab.json", "gpt2/vectors_llamacpp.json"},
           {"gpt2/vocab.json", "gpt2/vectors_transformersjs.json"},
           {"qwen2/vocab.json", "qwen2/vectors_llamacpp.json"},
           {"qwen2/vocab.json", "qwen2/vectors_transformersjs.json"},
           {"llama2/ggml-vocab-llama-spm.gguf", "llama2/vectors_llamacpp.json"},
           {"llama2/ggml-vocab-llama-spm.gguf", "llama2/vectors_transformersjs.json"},
           {"llama2/tokenizer.model", "llama2/golden_sentencepiece.json"},
           {"llama2/tokenizer.model", "llama2/vectors_llamacpp.json"},
           {"llama3/tokenizer.model", "llama3/golden_hf.json"},
           {"llama3/tokenizer.model", "llama3/vectors_llamacpp.json"},
           {"llama3/tokenizer.model", "llama3/vectors_transformersjs.json"},
           {"mistral/tokenizer.model.v1", "mistral/golden_sentencepiece_v1.json"},
           {"mistral/tokenizer.model.v3", "mistral/golden_sentencepiece_v3.json"},
           {"t5-small/spiece.model", "t5-small/golden_sentencepiece.json"},
           {"tiktoken/cl100k_base.tiktoken", "tiktoken/vectors_gpt4_cl100k.json"},
           {"tiktoken/o200k_base.tiktoken", "tiktoken/vectors_gpt4o_o200k.json"},
           {"whisper/multilingual.tiktoken", "whisper/vectors_transformersjs.json"}}) {
    auto tokenizer = Tokenizer::load(*root / file);
    std::string name = vectors;
    Value document = parse_file(*root / vectors);
    for (const Value& vector : document.find("vectors")->items) {
      const Value* add = vector.find("add_special_tokens");
      bool special = add ? *add->as_bool() : name.ends_with("golden_hf.json");
      const Value* parse = vector.find("parse_special");
      std::optional<std::string> pair;
      if (const Value* second = vector.find("text_pair"); second && second->is_text()) pair = second->scalar;
      ASSERT_EQ(tokenizer->encode_full(vector.find("text")->scalar, pair, {special, !parse || *parse->as_bool()}).ids,
                ids_of(*vector.find("ids")))
          << file << ": " << vector.find("text")->scalar;
      ++count;
    }
  }
  EXPECT_GT(count, 3900);
}

}  // namespace
}  // namespace easydel::text
