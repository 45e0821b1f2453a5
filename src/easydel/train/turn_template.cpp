#include "easydel/train/turn_template.h"

#include <algorithm>

#include "easydel/base/error.h"

namespace easydel::train {
namespace {

constexpr std::string_view placeholder = "sampled-turn-5e1f";  // a text that no template changes and nobody writes

}  // namespace

TurnTemplate::TurnTemplate(std::shared_ptr<const text::Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)), renderer_(tokenizer_) {}

Value TurnTemplate::sampled_turn() {
  Value out = Value::map();
  out.set("role", Value::text("assistant"));
  out.set("content", Value::text(std::string(placeholder)));
  return out;
}

std::string TurnTemplate::prompt(const Value& messages, text::ChatOptions options) const {
  options.add_generation_prompt = true;
  return renderer_.text(messages, options);
}

std::vector<int32_t> TurnTemplate::between(const Value& messages, const std::vector<Value>& added,
                                           text::ChatOptions options, std::optional<int32_t> last) const {
  const std::string before = prompt(messages, options);
  Value longer = messages;
  longer.items.push_back(sampled_turn());
  longer.items.insert(longer.items.end(), added.begin(), added.end());
  const std::string after = prompt(longer, options);
  // A template may close reasoning that the prompt opened before it writes the turn.
  const size_t turn = after.starts_with(before) ? after.find(placeholder, before.size()) : std::string::npos;
  if (turn == std::string::npos) refuse_change(before + std::string(placeholder), after);
  std::vector<int32_t> ids = tokenizer_->encode(after.substr(turn + placeholder.size()), {.add_special_tokens = false});
  if (last && !ids.empty() && ids.front() == *last) ids.erase(ids.begin());
  return ids;
}

void TurnTemplate::refuse_change(const std::string& before, const std::string& after) const {
  const auto tokens = [&](const std::string& text) { return tokenizer_->encode(text, {.add_special_tokens = false}); };
  const std::vector<int32_t> old_ids = tokens(before), new_ids = tokens(after);
  const auto [a, b] = std::ranges::mismatch(old_ids, new_ids);
  const auto shown = [&](auto at, const std::vector<int32_t>& ids) {
    return at == ids.end() ? std::string("its end") : "'" + tokenizer_->decode(std::vector<int32_t>{*at}, false) + "'";
  };
  refuse("chat template",
         str("changes what it has written when a conversation goes on: token ", a - old_ids.begin(), " was ",
             shown(a, old_ids), " and becomes ", shown(b, new_ids)),
         "give a template that only appends, as model.chat_template");
}

}  // namespace easydel::train
