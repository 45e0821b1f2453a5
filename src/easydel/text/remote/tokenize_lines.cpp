// Converts lines to calls, and results to lines.
#include "easydel/text/remote/tokenize_lines.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/sha256.h"

namespace easydel::text {
namespace {

// Words, digits, white space, scripts and marks that pre-tokenizers and normalizers treat differently.
constexpr std::string_view sample =
    "The 12345 quick-brown foxes can't jump over 3.14 \t\n\n  lazy dogs\r\n\xC3\x89t\xC3\xA9 \xEF\xAC\x81 "
    "\xE4\xBD\xA0\xE5\xA5\xBD\xEF\xBC\x81 \xF0\x9F\xA6\x8A def f(x):\n        return x  # _ok_";

Value read_line(std::string_view line) {
  Value out = parse_json(line, "line");
  if (!out.is_map()) refuse("line", "is not a JSON object");
  return out;
}

std::string text_of(const Value& line, std::string_view key) {
  const Value* value = line.find(key);
  if (!value || !value->is_text()) refuse("line", str("'", key, "' is missing or no string"));
  return value->scalar;
}

std::optional<bool> flag_of(const Value& line, std::string_view key) {
  const Value* value = line.find(key);
  if (!value || value->is_null()) return std::nullopt;
  if (auto flag = value->as_bool()) return flag;
  refuse("line", str("'", key, "' is neither true nor false"));
}

// A list of numbers from 0 to `most`.
std::vector<int64_t> numbers_of(const Value& list, std::string_view key, int64_t most, std::string_view noun) {
  if (!list.is_list()) refuse("line", str("'", key, "' is not a list"));
  std::vector<int64_t> out;
  for (const Value& item : list.items) {
    const auto number = item.as_int();
    if (!number || *number < 0 || *number > most) refuse("line", str("'", key, "' has something that is not a ", noun));
    out.push_back(*number);
  }
  return out;
}

template <class Numbers>
Value list_of(const Numbers& numbers) {
  Value out = Value::list();
  for (const auto each : numbers) out.items.push_back(Value::integer(int64_t(each)));
  return out;
}

Value written(const Encoding& encoding, bool masks) {
  Value out = Value::map(), tokens = Value::list(), offsets = Value::list();
  for (const std::string& token : encoding.tokens) tokens.items.push_back(Value::text(token));
  for (const auto& [begin, end] : encoding.offsets) offsets.items.push_back(list_of(std::array{begin, end}));
  out.set("ids", list_of(encoding.ids));
  out.set("tokens", std::move(tokens));
  out.set("offsets", std::move(offsets));
  if (masks) {
    out.set("special_tokens_mask", list_of(encoding.special_tokens_mask));
    out.set("type_ids", list_of(encoding.type_ids));
  }
  return out;
}

Value decoded(const Tokenizer& tokenizer, const Value& line, const Value& list) {
  std::vector<TokenId> ids;
  for (const int64_t id : numbers_of(list, "ids", INT32_MAX, "token id")) ids.push_back(TokenId(id));
  Value out = Value::map();
  out.set("text",
          Value::text(tokenizer.decode(ids, flag_of(line, "skip_special_tokens").value_or(false),
                                       flag_of(line, "clean_up"), flag_of(line, "time_stamps").value_or(false))));
  return out;
}

std::vector<size_t> breaks_of(const Value& list, std::string_view text) {
  const std::vector<int64_t> places = numbers_of(list, "breaks", std::ssize(text), "place in the text");
  return {places.begin(), places.end()};
}

Value encoded(const Tokenizer& tokenizer, const Value& line) {
  const std::string text = text_of(line, "text");
  EncodeOptions options;
  options.add_special_tokens = flag_of(line, "add_special_tokens").value_or(true);
  options.file_limits = flag_of(line, "file_limits").value_or(false);
  options.parse_special = flag_of(line, "parse_special").value_or(true);
  if (flag_of(line, "only_ids").value_or(false)) {
    Value out = Value::map();
    out.set("ids", list_of(tokenizer.encode(text, options)));
    return out;
  }
  std::optional<std::string> pair;
  if (const Value* second = line.find("pair"); second && !second->is_null()) pair = text_of(line, "pair");
  const Value* const breaks = line.find("breaks");
  const Encoding encoding = breaks ? tokenizer.encode_with_breaks(text, breaks_of(*breaks, text), options)
                                   : tokenizer.encode_full(text, pair, options);
  const bool masks = flag_of(line, "masks").value_or(false);
  Value out = written(encoding, masks);
  if (flag_of(line, "overflowing").value_or(false)) {
    Value rest = Value::list();
    for (const Encoding& each : encoding.overflowing) rest.items.push_back(written(each, masks));
    out.set("overflowing", std::move(rest));
  }
  return out;
}

}  // namespace

TokenizeLines::TokenizeLines(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

std::string TokenizeLines::answer(std::string_view line) const try {
  const Value in = read_line(line);
  if (in.find("tokenizer_hash")) {
    Value out = Value::map();
    out.set("tokenizer_hash", Value::text(tokenizer_hash(*tokenizer_)));
    return to_json(out);
  }
  const Value* const ids = in.find("ids");
  return to_json(ids ? decoded(*tokenizer_, in, *ids) : encoded(*tokenizer_, in));
} catch (const std::exception& error) {
  Value out = Value::map();
  out.set("error", Value::text(error.what()));
  return to_json(out);
}

std::string tokenizer_hash(const Tokenizer& tokenizer) {
  files::Sha256 hash;
  const auto add = [&](std::string_view text) { hash.add(text.data(), text.size()); };
  for (TokenId id = 0; id < tokenizer.id_limit(); ++id)
    add(str(tokenizer.token_of(id), tokenizer.is_special(id) ? " special\n" : "\n"));
  const std::vector<TokenId> ids = tokenizer.encode(sample);
  for (const TokenId id : ids) add(str(id, " "));
  add(tokenizer.decode(ids, false));
  return hash.hex();
}

}  // namespace easydel::text
