// mixture.tokenization.tokenizer: texts become tokens by another tokenizer than the model's.
#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel::test {
namespace {

// A tokenizer of words. `last`: the id of "prince".
void write_tokenizer(const fs::path& folder, int last) {
  write_file(folder / "tokenizer.json",
             R"({"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "Whitespace"},
                 "post_processor": null, "decoder": null, "model": {"type": "WordLevel", "unk_token": "<unk>",
                 "vocab": {"<unk>": 0, "The": 1, "old": 2, "prince": )" +
                 std::to_string(last) + "}}}");
  write_file(folder / "tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
}

struct Case {
  TemporaryFolder folder;
  Case() {
    write_tokenizer(folder / "words", 3);
    write_tokenizer(folder / "wide", 512);
    write_file(folder / "text.txt", "The old prince\n");
    write_file(folder / "run.yaml",
               "model: {name_or_path: " + test_data("models/stories260K-hf").string() +
                   "}\nmixture: {informs: [{type: txt, data_files: text.txt}], tokenization: {tokenizer: words}}\n"
                   "trainer: {trainer_type: sft, max_length: 16, max_training_steps: 1, total_batch_size: 1, "
                   "save_directory: out}\nactions: [validate, train]\n");
  }
  Ran run(std::vector<std::string> arguments) {
    Ran ran = run_program(std::move(arguments), {.folder = folder.path()});
    ran.err = replaced(ran.err, fs::canonical(folder.path()).string(), "FOLDER");
    return ran;
  }
};

TEST(DataTokenizer, CutsTextsAndIsSavedWithTheModel) {
  Case one;
  const Ran shown = one.run({"--quiet", "data", "show", "run.yaml", "--json"});
  ASSERT_EQ(shown.status, 0) << shown.err;
  const Value row = parse_json(shown.out);
  std::vector<std::string> tokens;
  for (const Value& token : row.find("tokens")->items) tokens.push_back(token.scalar);
  ASSERT_GE(tokens.size(), 3u) << shown.out;
  tokens.resize(3);
  EXPECT_EQ(tokens, (std::vector<std::string>{"1", "2", "3"}));
  const Ran trained = one.run({"elarge", "run.yaml"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  std::string saved;
  for (const auto& entry : fs::recursive_directory_iterator(one.folder / "out"))
    if (entry.path().filename() == "tokenizer.json") saved = read_file(entry.path());
  EXPECT_NE(saved.find("WordLevel"), std::string::npos) << saved;
}

TEST(DataTokenizer, OfALargerVocabularyIsRefused) {
  Case one;
  const Ran ran = one.run({"elarge", "run.yaml", "--set", "mixture.tokenization.tokenizer=wide"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(
      ran.err.find("mixture.tokenization.tokenizer: 'wide' has ids up to 512; the model's vocabulary has 512 tokens\n"
                   "    give a tokenizer of the model's vocabulary, or of a smaller one"),
      std::string::npos)
      << ran.err;
  EXPECT_FALSE(fs::exists(one.folder / "out"));
}

TEST(DataTokenizer, IsTheModels) {
  Case one;
  const Ran ran = one.run({"validate", "run.yaml", "--set", "model.tokenizer=wide"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("is 'words', but model.tokenizer is 'wide'\n    they are the same thing; give one of them"),
            std::string::npos)
      << ran.err;
}

}  // namespace
}  // namespace easydel::test
