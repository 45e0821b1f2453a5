// Tokenizers of other formats, saved as tokenizer.json. That this is what other programs load is shown by hand with
// scripts/check_saved_tokenizers.py.
#include "easydel/text/tokenizers/write_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "easydel/base/document.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/text/tokenizers/charsmap.h"
#include "easydel/text/unicode.h"
#include "support/data.h"
#include "text/gguf_bytes.h"

namespace easydel::text {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<TokenId>;

// The words and blanks of the corpora that the goldens of tokenizers are made of, a few at a time.
std::vector<std::string> corpus() {
  const Value fragments = parse_json(files::read(test::test_data("tokenizers/fragments.json")));
  const auto& words = fragments.find("words")->items;
  const auto& blanks = fragments.find("blanks")->items;
  std::vector<std::string> out = {"", " ", "  a", "a  "};
  uint64_t state = 1;
  const auto below = [&](size_t n) {
    return size_t((state = state * 6364136223846793005u + 1442695040888963407u) >> 33) % n;
  };
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (size_t parts = 1 + below(12); parts > 0; --parts) {
      const auto& of = below(3) ? words : blanks;
      text += of[below(of.size())].scalar;
    }
    out.push_back(std::move(text));
  }
  return out;
}

class SavedTokenizer : public testing::Test {
 protected:
  SavedTokenizer() {
    log::set_sink([this](log::Level, std::string_view text) { said_ += std::string(text) + "\n"; });
  }
  ~SavedTokenizer() override { log::set_sink(nullptr); }

  std::shared_ptr<const Tokenizer> load(const std::string& name, const std::string& bytes) {
    test::write_file(folder_ / "from" / name, bytes);
    return Tokenizer::load(folder_ / "from");
  }
  // Saves it, and reads nothing but tokenizer.json and tokenizer_config.json.
  std::shared_ptr<const Tokenizer> saved(const Tokenizer& tokenizer) {
    const fs::path all = folder_ / "saved", alone = folder_ / "alone";
    for (const fs::path& path : {all, alone}) {
      files::remove_all(path);
      files::make_directories(path);
    }
    save_tokenizer(tokenizer, all);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
      if (files::exists(all / name)) files::write(alone / name, files::read(all / name));
    return Tokenizer::exists(alone) ? Tokenizer::load(alone) : nullptr;
  }
  // unigrams: SentencePiece's, with a character map. tokenizer.json replaces a letter and the joiner after it as one
  // (tokenizers' normalizers/precompiled.rs), takes a text that spells the unknown piece for that piece, and removes
  // one blank at the start of a decoded text, not all.
  void expect_same(const Tokenizer& tokenizer, const std::string& what, bool unigrams = false) {
    const auto other = saved(tokenizer);
    ASSERT_TRUE(other) << what << ": " << said_;
    EXPECT_EQ(said_, "") << what;
    for (const std::string& text : corpus()) {
      const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
      if (unigrams && (has("\u200d") || has("<unk>") || has("\u2581"))) continue;
      for (const bool special : {false, true}) {
        const Ids ids = tokenizer.encode(text, {.add_special_tokens = special});
        ASSERT_EQ(other->encode(text, {.add_special_tokens = special}), ids) << what << ": " << text;
        ASSERT_EQ(other->decode(ids, special), tokenizer.decode(ids, special)) << what << ": " << text;
      }
    }
    EXPECT_EQ(other->bos_id(), tokenizer.bos_id()) << what;
    EXPECT_EQ(other->eos_id(), tokenizer.eos_id()) << what;
    EXPECT_EQ(other->chat_template(), tokenizer.chat_template()) << what;
  }

  test::TemporaryFolder folder_;
  std::string said_;
};

GgufBytes gguf_pieces() {
  GgufBytes gguf;
  gguf.text("tokenizer.ggml.model", "llama").text("tokenizer.chat_template", "{{ messages }}");
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", "<tool>"};
  std::vector<float> scores = {0, 0, 0, 0};
  std::vector<int32_t> kinds = {2, 3, 3, 4};
  for (int b = 0; b < 256; ++b) {
    char code[8];
    std::snprintf(code, sizeof code, "<0x%02X>", b);
    tokens.emplace_back(code), scores.push_back(0), kinds.push_back(6);
  }
  float score = -1;
  for (const char* piece :
       {"\u2581", "t", "h", "e", "a", "l", "o", "\u2581t", "he", "\u2581the", "el", "lo", "hello", "hel"})
    tokens.emplace_back(piece), scores.push_back(score -= 1), kinds.push_back(1);
  return gguf.texts("tokenizer.ggml.tokens", tokens)
      .list<float>("tokenizer.ggml.scores", 6, scores)
      .list<int32_t>("tokenizer.ggml.token_type", 5, kinds);
}

TEST_F(SavedTokenizer, FromGgufHasItsIdsTextsAndTemplate) {
  expect_same(*load("x.gguf", gguf_pieces().file()), "pieces");
  expect_same(*load("x.gguf", gguf_pieces().flag("tokenizer.ggml.add_space_prefix", false).file()), "without a prefix");
  GgufBytes pairs;
  pairs.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "qwen2");
  pairs.texts("tokenizer.ggml.tokens", {"a", "b", "ab", "1", "<end>", "\u0120", "\u0120a"})
      .texts("tokenizer.ggml.merges", {"a b", "\u0120 a"});
  pairs.list<int32_t>("tokenizer.ggml.token_type", 5, {1, 1, 1, 1, 3, 1, 1});
  pairs.id("tokenizer.ggml.eos_token_id", 4).flag("tokenizer.ggml.add_eos_token", true);
  expect_same(*load("x.gguf", pairs.file()), "byte pairs");
}

TEST_F(SavedTokenizer, KeepsTheVocabularyOfGgufBesideIt) {
  const auto tokenizer = load("x.gguf", gguf_pieces().file());
  saved(*tokenizer);
  EXPECT_TRUE(files::exists(folder_ / "saved/tokenizer.gguf"));
  EXPECT_EQ(parse_file(folder_ / "saved/tokenizer_config.json").find("tokenizer_class")->scalar,
            "PreTrainedTokenizerFast");
}

TEST_F(SavedTokenizer, FromSentencePieceHasItsIdsAndTexts) {
  const std::string model = files::read_compressed(test::test_data("tokenizers/unigram_1000.model.gz"));
  expect_same(*load("tokenizer.model", model), "unigram", true);
  test::write_file(folder_ / "from/tokenizer_config.json", R"({"tokenizer_class": "T5Tokenizer", "extra_ids": 3})");
  expect_same(*load("tokenizer.model", model), "T5");
  test::write_file(folder_ / "from/tokenizer_config.json", R"({"tokenizer_class": "XLMRobertaTokenizer"})");
  expect_same(*load("tokenizer.model", model), "XLM-R");
}

TEST_F(SavedTokenizer, FromOtherFilesHasTheirIdsAndTexts) {
  // All bytes, then a few longer tokens.
  std::string ranks, rows;
  const std::vector<std::string> longer = {"he", "ll", "hell", " w", "th", " th", " the", "1", "\u4e2d"};
  for (size_t i = 0; i < 256 + longer.size(); ++i) {
    const std::string code = encode_base64(i < 256 ? std::string(1, char(i)) : longer[i - 256]);
    ranks += str(code, " ", i, "\n");
    rows += str(i ? "," : "", R"({"rank": )", i, R"(, "token_bytes": ")", code, "\"}");
  }
  expect_same(*load("a.tiktoken", ranks), "tiktoken");
  files::remove_all(folder_ / "from");
  expect_same(
      *load("tekken.json", str(R"({"config": {"pattern": "[^ ]+| +", "default_vocab_size": )", 256 + longer.size() + 3,
                               R"(, "default_num_special_tokens": 3}, "vocab": [)", rows, "]}")),
      "tekken");
  files::remove_all(folder_ / "from");
  expect_same(*load("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n##s\n'\ns\n"), "words");
  files::remove_all(folder_ / "from");
  test::write_file(folder_ / "from/merges.txt", "#version: 0.2\na b\n");
  expect_same(*load("vocab.json", R"({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})"), "merges");
  files::remove_all(folder_ / "from");
  test::write_file(folder_ / "from/tokenizer.json.gz", test::read_file(test::test_data("tokenizers/cl100k.json.gz")));
  expect_same(*Tokenizer::load(folder_ / "from"), "compressed");
}

TEST_F(SavedTokenizer, SaysWhyTokenizerJsonCannotExpressIt) {
  const auto refused = [&](const std::string& name, const std::string& bytes) {
    said_.clear();
    files::remove_all(folder_ / "from");
    test::write_file(folder_ / "from" / name, bytes);
    EXPECT_EQ(saved(*Tokenizer::load(folder_ / "from" / name)), nullptr);
    EXPECT_TRUE(files::exists(folder_ / "saved" / (name.ends_with(".gguf") ? "tokenizer.gguf" : name))) << name;
    return test::replaced(said_, (folder_ / "saved").string(), "F");
  };
  const std::string lost = "; programs that load only tokenizer.json cannot load this tokenizer\n";
  EXPECT_EQ(refused("rwkv.txt", "1 'a' 1\n2 'b' 1\n3 'ab' 2\n"),
            "F/tokenizer.json is not written: rwkv.txt takes the longest token at each place of the whole text "
            "(RWKV), which no model there does" +
                lost);
  EXPECT_EQ(refused("tokenizer.model", files::read_compressed(test::test_data("tokenizers/denormalized.model.gz"))),
            "F/tokenizer.json is not written: tokenizer.model changes decoded texts by a denormalizer_spec, which "
            "only SentencePiece has" +
                lost);
}

// What is written is read back elsewhere and compared first.
TEST_F(SavedTokenizer, IsNotWrittenIfItWouldReadTextsDifferently) {
  files::make_directories(folder_ / "elsewhere");
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before ? before : "/tmp";
  ::setenv("TMPDIR", (folder_ / "elsewhere").c_str(), 1);
  const auto written = [&](const std::string& normalizer) {
    said_.clear();
    files::remove_all(folder_ / "saved");
    files::make_directories(folder_ / "saved");
    TokenizerParts parts = parse_tokenizer_json(
        R"({"normalizer": {"type": "Lowercase"},
            "model": {"type": "BPE", "vocab": {"h": 0, "e": 1, "l": 2, "o": 3}, "merges": []}})",
        "tokenizer.json");
    parts.steps.normalizer = normalizer;
    TokenizerSettings settings;
    settings.files = {"own.model"};
    write_tokenizer_json(JsonTokenizer(std::move(parts), settings), folder_ / "saved");
    return files::exists(folder_ / "saved/tokenizer.json");
  };
  EXPECT_TRUE(written(R"({"type": "Lowercase"})")) << said_;
  EXPECT_FALSE(written(""));
  EXPECT_EQ(test::replaced(said_, (folder_ / "saved").string(), "F"),
            "F/tokenizer.json is not written: own.model encodes or decodes the text \"Hello world\" in a way that "
            "tokenizer.json cannot express; programs that load only tokenizer.json cannot load this tokenizer\n");
  EXPECT_FALSE(files::exists(folder_ / "saved/tokenizer_config.json"));
  EXPECT_TRUE(files::list(folder_ / "elsewhere").empty());
  ::setenv("TMPDIR", kept.c_str(), 1);
}

// All forms of the shared vocabularies.
TEST_F(SavedTokenizer, OfTheFamiliesHasTheirIdsAndTexts) {
  const auto root = test::shared_data("tokenizers");
  if (!root) GTEST_SKIP() << "no shared data";
  for (const char* file :
       {"bert-base-uncased/ggml-vocab-bert-bge.gguf", "deepseek-coder/ggml-vocab-deepseek-coder.gguf",
        "falcon/ggml-vocab-falcon.gguf", "gpt2/ggml-vocab-gpt-2.gguf", "llama2/ggml-vocab-llama-spm.gguf",
        "llama2/tokenizer.model", "llama3/tokenizer.model", "mistral/tokenizer.model.v3",
        "sentencepiece-small/unigram_1000.model", "t5-small/spiece.model", "whisper/multilingual.tiktoken"})
    expect_same(
        *Tokenizer::load(*root / file), file,
        std::string_view(file).find("unigram") != std::string_view::npos || std::string_view(file).starts_with("t5"));
}

// Of tokenizer.json with and without a list of added tokens.
TEST_F(SavedTokenizer, HasNewTokensWithIdsAfterAllOthers) {
  for (const std::string& json :
       {std::string(R"({"version": "1.0", "added_tokens": [], "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, )"
                    R"("a": 1, "added_tokens": 2}, "unk_token": "[UNK]"}})"),
        std::string(R"({"model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1, "b\"]": 2}, )"
                    R"("unk_token": "[UNK]"}})"),
        files::read_compressed(test::test_data("models/stories260K-hf/tokenizer.json"))}) {
    test::write_file(folder_ / "from/tokenizer.json", json);
    const auto before = Tokenizer::load(folder_ / "from");
    const auto grown = Tokenizer::load(folder_ / "from", std::nullopt, {"<think>", "</think>"});
    const TokenId first = before->id_limit();
    EXPECT_EQ(grown->new_tokens(), (Ids{first, first + 1}));
    EXPECT_EQ(grown->id_of("</think>"), first + 1);
    EXPECT_FALSE(grown->is_special(first));
    const auto other = saved(*grown);
    ASSERT_TRUE(other);
    EXPECT_TRUE(other->new_tokens().empty());
    EXPECT_EQ(other->id_limit(), first + 2);
    for (const char* text : {"a<think>a</think> a", "<think>", "a a"}) {
      const Ids ids = grown->encode(text);
      EXPECT_EQ(other->encode(text), ids) << text;
      EXPECT_EQ(other->decode(ids), grown->decode(ids)) << text;
      EXPECT_EQ(std::ranges::count(ids, first), std::string(text).find("<think>") == std::string::npos ? 0 : 1) << text;
    }
    EXPECT_EQ(test::refusal([&] { Tokenizer::load(folder_ / "from", std::nullopt, {"a"}); }),
              "lora.added_tokens: the tokenizer has 'a' already\n    leave it out; trainable_token_indices trains the "
              "rows of tokens that are there");
  }
}

}  // namespace
}  // namespace easydel::text
