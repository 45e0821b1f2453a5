#include "easydel/text/chat_fingerprint.h"

#include <gtest/gtest.h>

#include "easydel/base/files.h"
#include "support/data.h"

namespace easydel::text {
namespace {

std::string chat_model() { return test::test_data("models/stories260K-chat").string(); }

TEST(ChatFingerprint, ComesBackFromItsFile) {
  const test::TemporaryFolder folder;
  EXPECT_FALSE(load_chat_fingerprint(folder.path()).has_value());
  const auto tokenizer = Tokenizer::load(chat_model());
  const ChatFingerprint made = chat_fingerprint(*tokenizer, {7, 2});
  EXPECT_EQ(made.chat_template, files::sha256(*tokenizer->chat_template()));
  save_chat_fingerprint(made, folder.path());
  const auto read = load_chat_fingerprint(folder.path());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->end_tokens, (std::vector<TokenId>{2, 7}));
  EXPECT_EQ(chat_changes(made, *read), "");
  const test::TemporaryFolder other;
  keep_chat_fingerprint(folder.path(), other.path());
  EXPECT_EQ(chat_changes(made, *load_chat_fingerprint(other.path())), "");
}

TEST(ChatFingerprint, SaysWhatChanged) {
  const auto tokenizer = Tokenizer::load(chat_model()), other = Tokenizer::load(chat_model(), "{{ messages }}");
  const ChatFingerprint made = chat_fingerprint(*tokenizer, {2});
  EXPECT_EQ(chat_changes(made, chat_fingerprint(*other, {2})), "the chat template");
  EXPECT_EQ(chat_changes(made, chat_fingerprint(*tokenizer, {2, 3})), "the tokens that end an answer");

  // A token that is special no more, in a copy of the folder.
  const test::TemporaryFolder folder;
  std::string file = files::read(chat_model() + "/tokenizer.json");
  const size_t token = file.find("\"content\": \"<unk>\"");
  ASSERT_NE(token, std::string::npos);
  const size_t special = file.find("\"special\": true", token);
  test::write_file(folder / "tokenizer.json", file.replace(special, 15, "\"special\": false"));
  test::write_file(folder / "tokenizer_config.json", files::read(chat_model() + "/tokenizer_config.json"));
  EXPECT_EQ(chat_changes(made, chat_fingerprint(*Tokenizer::load(folder.path()), {2})), "the special tokens");
  EXPECT_EQ(chat_changes(made, chat_fingerprint(*Tokenizer::load(folder.path(), "x"), {})),
            "the chat template and the special tokens and the tokens that end an answer");
}

}  // namespace
}  // namespace easydel::text
