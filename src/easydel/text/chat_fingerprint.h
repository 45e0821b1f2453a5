// What a model was trained to read around its answers and to end them with, in hashes. It is saved with a trained
// model, so that a folder whose template or tokens were changed afterwards can be told. No torch.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::text {

struct ChatFingerprint {
  std::string chat_template;        // SHA-256; empty: there is none
  std::string special_tokens;       // SHA-256 of their ids and texts, and of those that begin and end texts
  std::vector<TokenId> end_tokens;  // of answers
};

ChatFingerprint chat_fingerprint(const Tokenizer& tokenizer, std::vector<TokenId> end_tokens);

// As chat_fingerprint.json in the folder of a model or an adapter.
void save_chat_fingerprint(const ChatFingerprint& fingerprint, const std::filesystem::path& folder);
// Nothing: the folder has none. UserError: the file cannot be read.
std::optional<ChatFingerprint> load_chat_fingerprint(const std::filesystem::path& folder);
// From the folder of a model to that of another one with the same weights in another form, if it has one.
void keep_chat_fingerprint(const std::filesystem::path& from, const std::filesystem::path& to);

// What differs: "the chat template and the special tokens"; empty: nothing.
std::string chat_changes(const ChatFingerprint& before, const ChatFingerprint& now);

}  // namespace easydel::text
