#include "easydel/text/tokenizers/class_decoding.h"

#include <gtest/gtest.h>

#include "easydel/base/files.h"
#include "support/data.h"

namespace easydel::text {
namespace {

using Ids = std::vector<TokenId>;

std::shared_ptr<const Tokenizer> of_class(const test::TemporaryFolder& folder, const std::string& name,
                                          const std::string& tokenizer_json) {
  test::write_file(folder / "tokenizer.json", tokenizer_json);
  test::write_file(folder / "tokenizer_config.json", R"({"tokenizer_class": ")" + name + R"(", "pad_token": "<p>"})");
  return Tokenizer::load(folder.path());
}

std::string streamed(const std::shared_ptr<const Tokenizer>& tokenizer, const Ids& ids) {
  DecodeStream stream(tokenizer);
  std::string out;
  for (const TokenId id : ids) out += stream.push(id);
  return out + stream.finish();
}

constexpr const char* words = R"({"model": {"type": "BPE", "vocab": {"a</w>": 0, "b": 1, "c</w>": 2}, "merges": []},
  "decoder": {"type": "ByteLevel"}})";

TEST(ClassDecoding, OfClipEndsWordsWithASpaceAndTrims) {
  const test::TemporaryFolder folder;
  for (const char* name : {"CLIPTokenizer", "CLIPTokenizerFast"}) {
    const auto tokenizer = of_class(folder, name, words);
    EXPECT_EQ(tokenizer->decode(Ids{0, 1, 2, 0}), "a bc a") << name;
    EXPECT_EQ(streamed(tokenizer, {0, 1, 2, 0}), "a bc a") << name;
  }
  EXPECT_EQ(of_class(folder, "PreTrainedTokenizerFast", words)->decode(Ids{0, 1}), "a</w>b");
  // The family names the class where the tokenizer does not.
  test::write_file(folder / "tokenizer_config.json", "{}");
  test::write_file(folder / "config.json", R"({"model_type": "owlvit"})");
  EXPECT_EQ(Tokenizer::load(folder.path())->decode(Ids{0, 1}), "a b");
}

TEST(ClassDecoding, OfWhisperLeavesTimeStampsOutUnlessAsked) {
  const test::TemporaryFolder folder;
  const auto tokenizer = of_class(folder, "WhisperTokenizer", R"({
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}, "decoder": {"type": "ByteLevel"},
    "added_tokens": [{"id": 2, "content": "<|0.00|>", "special": false, "normalized": false},
                     {"id": 3, "content": "<|12.34|>", "special": false, "normalized": false},
                     {"id": 4, "content": "<|startofprev|>", "special": true, "normalized": false},
                     {"id": 5, "content": "<|startoftranscript|>", "special": true, "normalized": false},
                     {"id": 6, "content": "<|x|>", "special": false, "normalized": false}]})");
  EXPECT_EQ(tokenizer->decode(Ids{2, 0, 3, 1, 6}), "ab<|x|>");
  EXPECT_EQ(tokenizer->decode(Ids{2, 0, 3, 1}, true, std::nullopt, true), "<|0.00|>a<|12.34|>b");
  EXPECT_EQ(streamed(tokenizer, {2, 0, 3, 1, 3}), "ab");
  // A prompt is what was said before; it is skipped with the special tokens.
  EXPECT_EQ(tokenizer->decode(Ids{4, 0, 5, 1}), "b");
  EXPECT_EQ(tokenizer->decode(Ids{4, 0}), "");
  EXPECT_EQ(tokenizer->decode(Ids{4, 0, 5, 1}, false), "<|startofprev|>a<|startoftranscript|>b");
}

TEST(ClassDecoding, OfCtcCountsARunOnceAndDropsPadding) {
  const test::TemporaryFolder folder;
  const auto tokenizer = of_class(folder, "ParakeetTokenizer", R"({
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "<p>": 2}, "merges": []}, "decoder": {"type": "ByteLevel"}})");
  EXPECT_EQ(tokenizer->decode(Ids{0, 0, 2, 0, 1, 1}, false), "aab");
  EXPECT_EQ(streamed(tokenizer, {0, 0, 2, 0, 1, 1}), "aab");
}

// transformers gives this class no normalizer, so the flag has no effect.
TEST(ClassDecoding, OfLlamaTakesSpecialTokensThatAreMarkedAsNormalized) {
  const test::TemporaryFolder folder;
  const auto tokenizer = of_class(folder, "LlamaTokenizer", R"({
    "model": {"type": "BPE", "vocab": {"<unk>": 0, "<s>": 1, "</s>": 2, "\u2581": 3, "a": 4, "b": 5, "<": 6, "/": 7,
              "s": 8, ">": 9}, "merges": [], "byte_fallback": true, "fuse_unk": true, "unk_token": "<unk>"},
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
                   {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
    "decoder": {"type": "Fuse"},
    "added_tokens": [{"id": 0, "content": "<unk>", "special": true, "normalized": true},
                     {"id": 1, "content": "<s>", "special": true, "normalized": true},
                     {"id": 2, "content": "</s>", "special": true, "normalized": true}]})");
  EXPECT_EQ(tokenizer->encode("a</s>b", {.add_special_tokens = false}), (Ids{3, 4, 2, 5}));
  EXPECT_EQ(tokenizer->decode(Ids{3, 4, 2, 5}), "ab");
  EXPECT_EQ(tokenizer->decode(Ids{3, 4, 2, 5}, false), "a</s>b");
}

// What the sentencepiece library 0.2.3 answers: the model replaces "ab" by "x" and blanks by "_" when it decodes.
TEST(ClassDecoding, OfASentencePieceModelAppliesItsDenormalizer) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "tokenizer.model",
                   files::read_compressed(test::test_data("tokenizers/denormalized.model.gz")));
  const auto tokenizer = Tokenizer::load(folder / "tokenizer.model");
  EXPECT_EQ(tokenizer->encode("ab cab"), (Ids{8, 4, 3}));
  EXPECT_EQ(tokenizer->decode(Ids{8, 4, 3}), "x_cx");
  EXPECT_EQ(tokenizer->decode(Ids{9, 10, 7}), "a_b");
  EXPECT_EQ(tokenizer->decode(Ids{5, 6, 8}), "dad_x");
  EXPECT_EQ(tokenizer->decode(Ids{}), "");
}

}  // namespace
}  // namespace easydel::text
