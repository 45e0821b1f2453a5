#include "easydel/text/chat_fingerprint.h"

#include <algorithm>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"

namespace easydel::text {
namespace {

namespace fs = std::filesystem;

constexpr const char* fingerprint_name = "chat_fingerprint.json";

std::string hash_of_special_tokens(const Tokenizer& tokenizer) {
  std::string all;
  const auto add = [&](const char* what, TokenId id) { all += str(what, " ", id, " ", tokenizer.token_of(id), "\n"); };
  if (const auto id = tokenizer.bos_id()) add("bos", *id);
  if (const auto id = tokenizer.eos_id()) add("eos", *id);
  for (TokenId id = 0; id < tokenizer.id_limit(); ++id)
    if (tokenizer.is_special(id)) add("special", id);
  return files::sha256(all);
}

}  // namespace

ChatFingerprint chat_fingerprint(const Tokenizer& tokenizer, std::vector<TokenId> end_tokens) {
  std::ranges::sort(end_tokens);
  const std::optional<std::string> source = tokenizer.chat_template();
  return {source ? files::sha256(*source) : "", hash_of_special_tokens(tokenizer), std::move(end_tokens)};
}

void save_chat_fingerprint(const ChatFingerprint& fingerprint, const fs::path& folder) {
  Value out = Value::map(), ends = Value::list();
  for (const TokenId id : fingerprint.end_tokens) ends.items.push_back(Value::integer(id));
  out.set("chat_template", Value::text(fingerprint.chat_template));
  out.set("special_tokens", Value::text(fingerprint.special_tokens));
  out.set("end_tokens", std::move(ends));
  files::write(folder / fingerprint_name, to_json(out, 2) + "\n");
}

std::optional<ChatFingerprint> load_chat_fingerprint(const fs::path& folder) {
  const fs::path file = folder / fingerprint_name;
  if (!files::is_file(file)) return std::nullopt;
  const Value value = parse_file(file);
  const auto text = [&](const char* name) {
    const Value* const found = value.find(name);
    return found ? found->scalar : std::string();
  };
  ChatFingerprint out{text("chat_template"), text("special_tokens"), {}};
  if (const Value* const ends = value.find("end_tokens"))
    for (const Value& id : ends->items) out.end_tokens.push_back(TokenId(id.as_int().value_or(-1)));
  return out;
}

void keep_chat_fingerprint(const fs::path& from, const fs::path& to) {
  if (const auto fingerprint = load_chat_fingerprint(from)) save_chat_fingerprint(*fingerprint, to);
}

std::string chat_changes(const ChatFingerprint& before, const ChatFingerprint& now) {
  std::vector<std::string> out;
  if (before.chat_template != now.chat_template) out.emplace_back("the chat template");
  if (before.special_tokens != now.special_tokens) out.emplace_back("the special tokens");
  if (before.end_tokens != now.end_tokens) out.emplace_back("the tokens that end an answer");
  return join(out, " and ");
}

}  // namespace easydel::text
