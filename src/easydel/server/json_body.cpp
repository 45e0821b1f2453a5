#include "easydel/server/json_body.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_set>

#include "easydel/base/error.h"
#include "easydel/base/simdjson.h"

namespace easydel::server {
namespace {

namespace ondemand = simdjson::ondemand;
constexpr std::string_view blanks = " \t\r\n";
static_assert(json_padding >= simdjson::SIMDJSON_PADDING);

// The keys that an object had so far. A few are compared one by one, which takes less time than a set of them; nothing
// is allocated or cleared for them, because most objects are messages with two keys.
class KeysSeen {
 public:
  // False: the key was there before. The text must stay where it is.
  bool add(std::string_view key) {
    if (!set_) {
      for (size_t i = 0; i < size_; ++i)
        if (std::string_view(first_[i].data, first_[i].size) == key) return false;
      if (size_ < first_.size()) {
        first_[size_++] = {key.data(), key.size()};
        return true;
      }
      set_.emplace();
      for (const Text& each : first_) set_->emplace(each.data, each.size);
    }
    if (!set_->insert(key).second) return false;
    ++size_;
    return true;
  }
  size_t size() const { return size_; }

 private:
  struct Text {  // without a constructor
    const char* data;
    size_t size;
  };
  std::array<Text, 16> first_;  // the first size_ of them have values
  size_t size_ = 0;
  std::optional<std::unordered_set<std::string_view>> set_;  // of all keys, if they are more
};

class BodyReader {
 public:
  BodyReader(const std::string& body, const JsonLimits& limits)
      : copy_(has_padding(body) ? std::string_view() : std::string_view(body)),
        text_(has_padding(body) ? simdjson::padded_string_view(body) : simdjson::padded_string_view(copy_)),
        limits_(limits) {}

  // `tokens` may be null.
  Value document(std::string_view tokens_key, TokenLists* tokens) {
    ondemand::parser parser;
    ondemand::document document;
    if (text_.empty()) throw InvalidJson("The body is empty.");
    check_error(parser.iterate(text_).get(document));
    ondemand::json_type type = ondemand::json_type::null;
    check_error(document.type().get(type));
    if (type != ondemand::json_type::object) throw InvalidJson("The body is not a JSON object.");
    ondemand::object object;
    check_error(document.get_object().get(object));
    tokens_key_ = tokens_key;
    tokens_ = tokens;
    Value out;
    read_members(object, 1, out);
    const char* rest = nullptr;
    if (!document.current_location().get(rest)) throw InvalidJson("The body is not JSON: there is more after its end.");
    return out;
  }

 private:
  static bool has_padding(const std::string& body) { return body.capacity() >= body.size() + json_padding; }

  static void check_error(simdjson::error_code error) {
    switch (error) {
      case simdjson::SUCCESS:
        return;
      case simdjson::MEMALLOC:
        throw std::bad_alloc();
      case simdjson::UTF8_ERROR:
        throw InvalidJson("The body is not UTF-8 text.");
      case simdjson::STRING_ERROR:
        throw InvalidJson("The body is not JSON: a string contains an invalid escape.");
      case simdjson::UNCLOSED_STRING:
        throw InvalidJson("The body is not JSON: a string is not closed.");
      case simdjson::UNESCAPED_CHARS:
        throw InvalidJson("The body is not JSON: a string contains a control character.");
      case simdjson::NUMBER_ERROR:
        throw InvalidJson("The body is not JSON: a number is malformed or too large.");
      default:
        throw InvalidJson("The body is not JSON.");
    }
  }

  // Of the value that is being read.
  std::string path() const {
    std::string out;
    for (const Step& step : steps_) {
      if (step.key.data())
        out += str(out.empty() ? "" : ".", step.key);
      else
        out += str("[", step.index, "]");
    }
    return out;
  }

  void count_node() {
    if (++nodes_ > limits_.nodes) refuse(path(), str("the body has more than ", limits_.nodes, " values"));
  }

  // Values are made where they stay: moving those of a long conversation takes as long as parsing it.
  void read_node(ondemand::value& value, int depth, Value& out) {
    count_node();
    if (depth > limits_.depth) refuse(path(), str("is nested more than ", limits_.depth, " levels deep"));
    std::string_view token = value.raw_json_token();
    switch (token[0]) {
      case '{': {
        ondemand::object object;
        check_error(value.get_object().get(object));
        return read_members(object, depth + 1, out);
      }
      case '[': {
        ondemand::array array;
        check_error(value.get_array().get(array));
        return read_items(array, depth + 1, out);
      }
      case '"': {
        std::string_view text;
        check_error(value.get_string().get(text));
        out.kind = Value::Kind::text;
        out.scalar = text;
        return;
      }
      case 't':
      case 'f': {
        bool flag = false;
        check_error(value.get_bool().get(flag));
        out = Value::boolean(flag);
        return;
      }
      case 'n': {
        bool null = false;
        check_error(value.is_null().get(null));
        if (!null) throw InvalidJson("The body is not JSON.");
        return;
      }
      default:
        read_number(value, token, out);
    }
  }

  static void read_number(ondemand::value& value, std::string_view token, Value& out) {
    double number = 0;
    check_error(value.get_double().get(number));
    if (!std::isfinite(number)) check_error(simdjson::NUMBER_ERROR);
    const size_t end = token.find_last_not_of(blanks);
    out.kind = Value::Kind::plain;
    out.scalar = token.substr(0, end + 1);
  }

  void read_items(ondemand::array& array, int depth, Value& out) {
    out.kind = Value::Kind::list;
    for (auto&& item : array) {
      ondemand::value child;
      check_error(item.get(child));
      steps_.push_back({.index = out.items.size()});
      read_node(child, depth, out.items.emplace_back());
      steps_.pop_back();
    }
  }

  void read_members(ondemand::object& object, int depth, Value& out) {
    out.kind = Value::Kind::map;
    KeysSeen seen;
    for (auto&& item : object) {
      ondemand::field field;
      check_error(std::move(item).get(field));
      std::string_view key;
      check_error(field.unescaped_key().get(key));
      if (int64_t(seen.size()) >= limits_.keys) refuse(path(), str("has more than ", limits_.keys, " members"));
      if (!seen.add(key)) {
        const std::string above = path();
        refuse(str(above, above.empty() ? "" : ".", key), "is given twice", "keep one of them");
      }
      steps_.push_back({.key = key});
      if (tokens_ && depth == 1 && key == tokens_key_ && begins_with_ids(field.value())) {
        read_ids(field.value());
      } else {
        if (out.entries.empty()) out.entries.reserve(2);  // as most messages have
        read_node(field.value(), depth, out.entries.emplace_back(key, Value()).second);
      }
      steps_.pop_back();
    }
  }

  // Whether this is a list whose first item is a number, or such a list of lists.
  bool begins_with_ids(ondemand::value& value) {
    const char* at = value.raw_json_token().data();
    const char* const end = text_.data() + text_.size();
    const auto skip_blanks = [&] {
      while (at < end && blanks.find(*at) != std::string_view::npos) ++at;
    };
    if (*at != '[') return false;
    ++at;
    skip_blanks();
    if (at < end && *at == '[') {
      tokens_->nested = true;
      ++at;
      skip_blanks();
    }
    const bool number = at < end && (*at == '-' || (*at >= '0' && *at <= '9'));
    tokens_->nested = tokens_->nested && number;
    return number;
  }

  void read_ids(ondemand::value& value) {
    ondemand::array array;
    check_error(value.get_array().get(array));
    if (!tokens_->nested) return read_list(array);
    for (auto&& item : array) {
      count_node();
      ondemand::array inner;
      steps_.push_back({.index = tokens_->lists.size()});
      if (item.get_array().get(inner)) refuse(path(), "is not a list of token ids");
      read_list(inner);
      steps_.pop_back();
    }
  }

  void read_list(ondemand::array& array) {
    std::vector<int32_t> ids;
    for (auto&& item : array) {
      int64_t id = 0;
      if (item.get_int64().get(id) || id < 0 || id > std::numeric_limits<int32_t>::max())
        refuse(str(path(), "[", ids.size(), "]"), "is not a token id");
      ids.push_back(int32_t(id));
    }
    tokens_->lists.push_back(std::move(ids));
  }

  simdjson::padded_string copy_;
  simdjson::padded_string_view text_;
  JsonLimits limits_;
  struct Step {                 // from a value into one that it holds
    std::string_view key = {};  // of an object; null: of a list
    size_t index = 0;
  };
  std::vector<Step> steps_;
  std::string_view tokens_key_;
  TokenLists* tokens_ = nullptr;
  int64_t nodes_ = 0;
};

}  // namespace

Value read_value(const std::string& body, const JsonLimits& limits) {
  return BodyReader(body, limits).document("", nullptr);
}

Value read_value(const std::string& body, std::string_view tokens_key, TokenLists& tokens, const JsonLimits& limits) {
  return BodyReader(body, limits).document(tokens_key, &tokens);
}

size_t memory_of(const Value& value) {
  const size_t in_place = std::string().capacity();  // text that needs no memory of its own
  const auto text_bytes = [&](const std::string& text) { return text.capacity() > in_place ? text.capacity() : 0; };
  size_t out = sizeof(Value) + text_bytes(value.scalar);
  out += (value.items.capacity() - value.items.size()) * sizeof(Value);
  out += value.entries.capacity() * sizeof(value.entries[0]);
  for (const Value& item : value.items) out += memory_of(item);
  for (const auto& [key, item] : value.entries) out += text_bytes(key) + memory_of(item) - sizeof(Value);
  return out;
}

size_t memory_of(const TokenLists& tokens) {
  constexpr size_t block = 16;  // what the allocator keeps for itself
  size_t out = tokens.lists.capacity() * sizeof(tokens.lists[0]);
  for (const auto& list : tokens.lists) out += block + list.capacity() * sizeof(list[0]);
  return out;
}

void throw_problems(const config::Problems& problems) { throw config::ConfigError(problems); }

}  // namespace easydel::server
