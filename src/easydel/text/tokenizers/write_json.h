// Writes a tokenizer of any format as tokenizer.json.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "easydel/text/tokenizers/json_tokenizer.h"

namespace easydel::text {

// The parts as a tokenizer.json. UserError that says why: tokenizer.json cannot express them.
std::string tokenizer_json(const TokenizerParts& parts);

// The text of a tokenizer.json with tokenizer.new_tokens() in its list of added tokens.
std::string with_new_tokens(const Tokenizer& tokenizer, const std::string& json);

// A tokenizer_config.json with the named special tokens and the chat template; or `given`, if it is not empty, with the
// special tokens that it does not name because its class knows them.
std::string tokenizer_config_json(const Tokenizer& tokenizer, const std::string& given);

// Compares two tokenizers on texts with blanks, digits, scripts, unusual characters and the added tokens. The first
// text that they encode or decode differently; nullopt: none.
std::optional<std::string> first_difference(const Tokenizer& one, const Tokenizer& other);

// Writes tokenizer.json, and what tokenizer_config.json lacks. The folder must not have a tokenizer.json.
// Warns with the reason, and leaves no tokenizer.json, if tokenizer.json cannot express the tokenizer: it is read back
// and compared.
void write_tokenizer_json(const Tokenizer& tokenizer, const std::filesystem::path& folder);

}  // namespace easydel::text
