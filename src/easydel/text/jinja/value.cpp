// Creates and compares values, as in Python.
#include "easydel/text/jinja/value.h"

#include <algorithm>

#include "easydel/text/unicode.h"

namespace easydel::text::jinja {
namespace {

struct StringData : Heap {
  std::string text;
  explicit StringData(std::string text) : text(std::move(text)) {}
};
struct ArrayData : Heap {
  std::vector<Var> items;
  explicit ArrayData(std::vector<Var> items) : items(std::move(items)) {}
};
struct DictHeap : Heap {
  DictData data;
  explicit DictHeap(DictData data) : data(std::move(data)) {}
};

}  // namespace

Var Var::undefined(std::string why) {
  Var out;
  out.heap_ = std::make_shared<StringData>(std::move(why));
  return out;
}
Var Var::none() {
  Var out;
  out.type_ = Type::none;
  return out;
}
Var Var::boolean(bool b) {
  Var out;
  out.type_ = Type::boolean;
  out.integer_ = b;
  return out;
}
Var Var::integer(int64_t i) {
  Var out;
  out.type_ = Type::integer;
  out.integer_ = i;
  return out;
}
Var Var::number(double d) {
  Var out;
  out.type_ = Type::number;
  out.number_ = d;
  return out;
}
Var Var::string(std::string s, bool markup) {
  check_size(s.size());
  Var out;
  out.type_ = Type::string;
  out.markup_ = markup;
  out.heap_ = std::make_shared<StringData>(std::move(s));
  return out;
}
Var Var::list(std::vector<Var> items) {
  check_size(items.size() * sizeof(Var));
  Var out;
  out.type_ = Type::list;
  out.heap_ = std::make_shared<ArrayData>(std::move(items));
  return out;
}
Var Var::tuple(std::vector<Var> items) {
  Var out = list(std::move(items));
  out.type_ = Type::tuple;
  return out;
}
Var Var::dict(DictData entries) {
  Var out;
  out.type_ = Type::dict;
  out.heap_ = std::make_shared<DictHeap>(std::move(entries));
  return out;
}
Var Var::view(std::string kind, std::vector<Var> items) {
  Var out;
  out.type_ = Type::view;
  out.heap_ = std::make_shared<ViewData>(std::move(kind), std::move(items));
  return out;
}
Var Var::object(std::shared_ptr<Object> o) {
  Var out;
  out.type_ = Type::object;
  out.heap_ = std::move(o);
  return out;
}

const std::string& Var::as_string() const {
  static const std::string empty;
  return heap_ ? static_cast<const StringData&>(*heap_).text : empty;
}
const std::vector<Var>& Var::items() const { return static_cast<const ArrayData&>(*heap_).items; }
const DictData& Var::as_dict() const { return static_cast<const DictHeap&>(*heap_).data; }
ViewData& Var::as_view() const { return static_cast<ViewData&>(*heap_); }
Object& Var::as_object() const { return static_cast<Object&>(*heap_); }

bool Var::truth() const {
  switch (type_) {
    case Type::undefined:
    case Type::none:
      return false;
    case Type::boolean:
    case Type::integer:
      return integer_ != 0;
    case Type::number:
      return number_ != 0;
    case Type::string:
      return !as_string().empty();
    case Type::list:
    case Type::tuple:
      return !items().empty();
    case Type::dict:
      return !as_dict().entries.empty();
    case Type::view:
      return as_view().once() || !as_view().items.empty();
    case Type::object:
      return true;
  }
  return false;
}

const Var* DictData::find(std::string_view key) const {
  auto it = by_name.find(std::string(key));
  return it == by_name.end() ? nullptr : &entries[it->second].second;
}

const Var* DictData::find(const Var& key) const {
  if (key.is_string()) return find(key.as_string());
  if (key.type() == Var::Type::list || key.is_dict()) fail("unhashable type: '", type_name(key), "'");
  for (auto& [k, v] : entries)
    if (!k.is_string() && equal(k, key)) return &v;
  return nullptr;
}

void DictData::set(Var key, Var value) {
  if (const Var* old = find(key)) {
    const_cast<Var&>(*old) = std::move(value);
    return;
  }
  if (key.is_string()) by_name.emplace(key.as_string(), entries.size());
  entries.emplace_back(std::move(key), std::move(value));
}

const Var* Arguments::find(size_t position, std::string_view name) const {
  if (position < positional.size()) return &positional[position];
  for (auto& [key, value] : named)
    if (key == name) return &value;
  return nullptr;
}

Var from_document(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      return Var::none();
    case Value::Kind::text:
      return Var::string(value.scalar);
    case Value::Kind::plain: {
      if (auto flag = value.as_bool()) return Var::boolean(*flag);
      bool whole = value.scalar.find_first_not_of("-+0123456789") == std::string::npos;
      if (auto number = value.as_int(); number && whole) return Var::integer(*number);
      if (auto number = value.as_double()) return Var::number(*number);
      return Var::string(value.scalar);
    }
    case Value::Kind::list: {
      std::vector<Var> items;
      for (const Value& item : value.items) items.push_back(from_document(item));
      return Var::list(std::move(items));
    }
    case Value::Kind::map: {
      DictData entries;
      for (auto& [key, item] : value.entries) entries.set(Var::string(key), from_document(item));
      return Var::dict(std::move(entries));
    }
  }
  return Var();
}

bool equal(const Var& a, const Var& b) {
  if (a.is_numeric() && b.is_numeric()) {
    if (a.is_integral() && b.is_integral()) return a.as_integer() == b.as_integer();
    return a.as_number() == b.as_number();
  }
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case Var::Type::undefined:
    case Var::Type::none:
      return true;
    case Var::Type::string:
      return a.as_string() == b.as_string();
    case Var::Type::list:
    case Var::Type::tuple:
      return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), equal);
    case Var::Type::dict: {
      const DictData &x = a.as_dict(), &y = b.as_dict();
      if (x.entries.size() != y.entries.size()) return false;
      for (auto& [key, value] : x.entries) {
        const Var* other = y.find(key);
        if (!other || !equal(value, *other)) return false;
      }
      return true;
    }
    case Var::Type::view:
      if (a.as_view().kind == "range" && b.as_view().kind == "range")
        return equal(Var::list(a.as_view().items), Var::list(b.as_view().items));
      [[fallthrough]];
    default:
      return a.identity() == b.identity();
  }
}

bool less(const Var& a, const Var& b) {
  if (a.is_undefined() || b.is_undefined()) {
    const Var& which = a.is_undefined() ? a : b;
    fail(which.as_string().empty() ? "a value is undefined" : which.as_string());
  }
  if (a.is_integral() && b.is_integral()) return a.as_integer() < b.as_integer();
  if (a.is_numeric() && b.is_numeric()) return a.as_number() < b.as_number();
  if (a.is_string() && b.is_string()) return a.as_string() < b.as_string();  // UTF-8 has the order of its code points
  if (a.is_array() && a.type() == b.type()) {
    const auto &x = a.items(), &y = b.items();
    for (size_t i = 0; i < x.size() && i < y.size(); ++i)
      if (!equal(x[i], y[i])) return less(x[i], y[i]);
    return x.size() < y.size();
  }
  fail("'<' not supported between instances of '", type_name(a), "' and '", type_name(b), "'");
}

bool contains(const Var& container, const Var& item) {
  switch (container.type()) {
    case Var::Type::string:
      if (!item.is_string()) fail("'in <string>' requires string as left operand, not ", type_name(item));
      return container.as_string().find(item.as_string()) != std::string::npos;
    case Var::Type::dict:
      return container.as_dict().find(item) != nullptr;
    case Var::Type::undefined:
      return false;
    default:
      for (const Var& each : iterate(container))
        if (equal(each, item)) return true;
      return false;
  }
}

size_t characters(const std::string& text) { return size_t(count_characters(text)); }

int64_t length(const Var& value) {
  switch (value.type()) {
    case Var::Type::undefined:
      return 0;
    case Var::Type::string:
      return int64_t(characters(value.as_string()));
    case Var::Type::list:
    case Var::Type::tuple:
      return int64_t(value.items().size());
    case Var::Type::dict:
      return int64_t(value.as_dict().entries.size());
    case Var::Type::view:
      if (!value.as_view().once()) return int64_t(value.as_view().items.size());
      [[fallthrough]];
    default:
      fail("object of type '", type_name(value), "' has no len()");
  }
}

std::vector<Var> iterate(const Var& value) {
  std::vector<Var> out;
  switch (value.type()) {
    case Var::Type::undefined:
      return out;
    case Var::Type::list:
    case Var::Type::tuple:
      return value.items();
    case Var::Type::view: {
      ViewData& view = value.as_view();
      if (!view.failure.empty()) fail(view.failure);
      if (!view.once()) return view.items;
      out.assign(view.items.begin() + int64_t(view.taken), view.items.end());
      view.taken = view.items.size();
      return out;
    }
    case Var::Type::dict:
      for (auto& entry : value.as_dict().entries) out.push_back(entry.first);
      return out;
    case Var::Type::string: {
      const std::string& text = value.as_string();
      for (size_t at = 0; at < text.size();) {
        size_t from = at;
        next_character(text, at);
        out.push_back(Var::string(text.substr(from, at - from)));
      }
      return out;
    }
    default:
      fail("'", type_name(value), "' object is not iterable");
  }
}

std::string escape(std::string_view text) {
  std::string out;
  for (char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  return out;
}

void check_size(size_t bytes) {
  constexpr size_t most = 64u << 20;
  if (bytes > most) fail("a value would be larger than ", most >> 20, " MiB");
}

}  // namespace easydel::text::jinja
