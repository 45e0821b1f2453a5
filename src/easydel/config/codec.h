// How each type of member is read from a document, written and described: one Codec per type.
#pragma once

#include <array>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "easydel/base/names.h"
#include "easydel/config/choice.h"
#include "easydel/config/section.h"

namespace easydel::config {

// "auto", or a value: Auto<int64_t> threads;  if (threads.value) ...
template <class T>
struct Auto {
  std::optional<T> value = {};
  bool automatic() const { return !value; }
  bool has_value() const { return value.has_value(); }
  const T& operator*() const { return *value; }
  T value_or(T other) const { return value ? *value : other; }
};

// One value or a list of values in the document; always a list in the program.
template <class T>
struct Many : std::vector<T> {
  using std::vector<T>::vector;
};

// A struct with keys: with fields() (which come with a doc), or one that makes its section itself.
template <class T>
concept Sectioned = requires {
  T::doc;
}
|| requires { T::section(); };

template <Sectioned T>
const Section& section_of();

// Where a Codec reports problems.
struct At {
  const std::string& path;
  Problems& problems;
  const std::string& remedy;  // "expected an integer from 1 to 256 (default 16)"
  bool wrong(const Value& value, std::string what, std::string better_remedy = "") const {
    problems.add(path, value.place, std::move(what), better_remedy.empty() ? remedy : std::move(better_remedy));
    return false;
  }
};

// How a wrong value is named in an error: "'many' is not an integer", "a list is not an integer".
std::string shown(const Value& value);

namespace detail {
bool read_bool(const Value&, bool& out, const At&);
bool read_integer(const Value&, int64_t& out, int64_t low, int64_t high, const At&);
bool read_double(const Value&, double& out, const At&);
bool read_text(const Value&, std::string& out, const At&);
struct PlainChoice {
  std::string_view name;
  std::span<const std::string_view> aliases;
  bool built;
};
// The index of the choice that `value` names; -1 and a problem if there is none.
int read_choice(const Value&, std::span<const PlainChoice>, const At&);
std::string expects_choice(std::span<const PlainChoice>);
Value schema_choice(std::span<const PlainChoice>);
Value schema_type(std::string_view type);
Value schema_any_of(std::vector<Value> schemas);
Value schema_list(Value items, std::optional<size_t> size = std::nullopt);
Value schema_map(Value values);
}  // namespace detail

template <class T>
struct Codec;

template <class T>
requires std::is_arithmetic_v<T>
struct Codec<T> {
  static std::string expects() {
    return std::is_same_v<T, bool> ? "true or false" : std::is_integral_v<T> ? "an integer" : "a number";
  }
  static Value schema() {
    return detail::schema_type(std::is_same_v<T, bool> ? "boolean" : std::is_integral_v<T> ? "integer" : "number");
  }
  static bool read(const Value& value, T& out, const At& at) {
    if constexpr (std::is_same_v<T, bool>) {
      return detail::read_bool(value, out, at);
    } else if constexpr (std::is_integral_v<T>) {
      constexpr auto type_max = std::numeric_limits<T>::max();
      constexpr int64_t int64_top = std::cmp_greater(type_max, INT64_MAX) ? INT64_MAX : int64_t(type_max);
      int64_t wide = 0;
      if (!detail::read_integer(value, wide, int64_t(std::numeric_limits<T>::min()), int64_top, at)) return false;
      return out = static_cast<T>(wide), true;
    } else {
      double wide = 0;
      if (!detail::read_double(value, wide, at)) return false;
      return out = static_cast<T>(wide), true;
    }
  }
  static Value write(T value) {
    if constexpr (std::is_same_v<T, bool>)
      return Value::boolean(value);
    else if constexpr (std::is_integral_v<T>)
      return Value::integer(int64_t(value));
    else
      return Value::number(double(value));
  }
};

template <>
struct Codec<std::string> {
  static std::string expects() { return "a string"; }
  static Value schema() { return detail::schema_type("string"); }
  static bool read(const Value& value, std::string& out, const At& at) { return detail::read_text(value, out, at); }
  static Value write(const std::string& value) { return Value::text(value); }
};

template <>
struct Codec<std::filesystem::path> {
  static std::string expects() { return "a path"; }
  static Value schema() { return detail::schema_type("string"); }
  static bool read(const Value& value, std::filesystem::path& out, const At& at) {
    std::string text;
    return detail::read_text(value, text, at) && (out = text, true);
  }
  static Value write(const std::filesystem::path& value) { return Value::text(value.string()); }
};

template <>
struct Codec<Value> {
  static std::string expects() { return "anything"; }
  static Value schema() { return Value::map(); }
  static bool read(const Value& value, Value& out, const At&) { return out = value, true; }
  static Value write(const Value& value) { return value; }
};

template <class E>
requires std::is_enum_v<E>
struct Codec<E> {
  static constexpr auto all = choices(E{});
  static std::vector<detail::PlainChoice> plain() {
    std::vector<detail::PlainChoice> out;
    for (const auto& choice : all) out.push_back({choice.name, choice.aliases, choice.built});
    return out;
  }
  static std::string expects() { return detail::expects_choice(plain()); }
  static Value schema() { return detail::schema_choice(plain()); }
  static bool read(const Value& value, E& out, const At& at) {
    const int index = detail::read_choice(value, plain(), at);
    return index >= 0 && (out = all[size_t(index)].value, true);
  }
  static Value write(E value) {
    const std::string_view word = word_of(value);
    return word.data() ? Value::text(std::string(word)) : Value{};
  }
};

template <class T>
struct Codec<std::optional<T>> {
  static std::string expects() { return Codec<T>::expects() + ", or null"; }
  static Value schema() { return detail::schema_any_of({Codec<T>::schema(), detail::schema_type("null")}); }
  static bool read(const Value& value, std::optional<T>& out, const At& at) {
    if (value.is_null()) return out.reset(), true;
    T inner{};
    return Codec<T>::read(value, inner, at) && (out = std::move(inner), true);
  }
  static Value write(const std::optional<T>& value) { return value ? Codec<T>::write(*value) : Value{}; }
};

template <class T>
struct Codec<Auto<T>> {
  static std::string expects() { return "auto, or " + Codec<T>::expects(); }
  static Value schema() {
    Value word = Value::map();
    word.set("const", Value::text("auto"));
    return detail::schema_any_of({word, Codec<T>::schema()});
  }
  static bool read(const Value& value, Auto<T>& out, const At& at) {
    if (value.as_string() && canonical(*value.as_string()) == "auto") return out.value.reset(), true;
    T inner{};
    return Codec<T>::read(value, inner, at) && (out.value = std::move(inner), true);
  }
  static Value write(const Auto<T>& value) { return value.value ? Codec<T>::write(*value.value) : Value::text("auto"); }
};

template <class T>
struct Codec<std::vector<T>> {
  static std::string expects() {
    if constexpr (Sectioned<T>) return "a list of sections";
    return "a list, each item " + Codec<T>::expects();
  }
  static Value schema() { return detail::schema_list(Codec<T>::schema()); }
  static bool read(const Value& value, std::vector<T>& out, const At& at) {
    if (!value.is_list()) return at.wrong(value, shown(value) + " is not a list");
    std::vector<T> items;
    bool good = true;
    for (size_t i = 0; i < value.items.size(); ++i) {
      const std::string path = at.path + "[" + std::to_string(i) + "]";
      at.problems.saw(path, value.items[i].place);
      T item{};
      good &= Codec<T>::read(value.items[i], item, {path, at.problems, at.remedy});
      items.push_back(std::move(item));
    }
    out.swap(items);
    return good;
  }
  static Value write(const std::vector<T>& value) {
    Value list = Value::list();
    for (const T& item : value) list.items.push_back(Codec<T>::write(item));
    return list;
  }
};

template <class T>
struct Codec<Many<T>> {
  static std::string expects() { return Codec<T>::expects() + ", or a list of them"; }
  static Value schema() { return detail::schema_any_of({Codec<T>::schema(), detail::schema_list(Codec<T>::schema())}); }
  static bool read(const Value& value, Many<T>& out, const At& at) {
    if (value.is_list()) return Codec<std::vector<T>>::read(value, out, at);
    T item{};
    if (!Codec<T>::read(value, item, at)) return false;
    out.clear();
    return out.push_back(std::move(item)), true;
  }
  static Value write(const Many<T>& value) {
    return value.size() == 1 ? Codec<T>::write(value[0]) : Codec<std::vector<T>>::write(value);
  }
};

template <class T, size_t N>
struct Codec<std::array<T, N>> {
  static std::string expects() { return "a list of " + std::to_string(N) + ", each item " + Codec<T>::expects(); }
  static Value schema() { return detail::schema_list(Codec<T>::schema(), N); }
  static bool read(const Value& value, std::array<T, N>& out, const At& at) {
    std::vector<T> items;
    if (!Codec<std::vector<T>>::read(value, items, at)) return false;
    if (items.size() != N)
      return at.wrong(value, "has " + std::to_string(items.size()) + " items, not " + std::to_string(N));
    for (size_t i = 0; i < N; ++i) out[i] = std::move(items[i]);
    return true;
  }
  static Value write(const std::array<T, N>& value) {
    return Codec<std::vector<T>>::write({value.begin(), value.end()});
  }
};

template <class T>
struct Codec<std::map<std::string, T>> {
  static std::string expects() {
    if constexpr (Sectioned<T>) return "a map of sections";
    return "a map, each value " + Codec<T>::expects();
  }
  static Value schema() { return detail::schema_map(Codec<T>::schema()); }
  static bool read(const Value& value, std::map<std::string, T>& out, const At& at) {
    if (!value.is_map()) return at.wrong(value, shown(value) + " is not a map");
    std::map<std::string, T> items;
    bool good = true;
    for (const auto& [name, child] : value.entries) {
      const std::string path = join_path(at.path, name);
      at.problems.saw(path, child.place);
      good &= Codec<T>::read(child, items[name], {path, at.problems, at.remedy});
    }
    out.swap(items);
    return good;
  }
  static Value write(const std::map<std::string, T>& value) {
    Value map = Value::map();
    for (const auto& [name, item] : value) map.set(name, Codec<T>::write(item));
    return map;
  }
};

template <class... T>
struct Codec<std::variant<T...>> {
  static std::string expects() {
    std::string out;
    ((out += (out.empty() ? "" : ", or ") + Codec<T>::expects()), ...);
    return out;
  }
  static Value schema() { return detail::schema_any_of({Codec<T>::schema()...}); }
  static bool read(const Value& value, std::variant<T...>& out, const At& at) {
    return (read_as<T>(value, out, at) || ...) || at.wrong(value, shown(value) + " is not valid here");
  }
  static Value write(const std::variant<T...>& value) {
    return std::visit([]<class U>(const U& inner) { return Codec<U>::write(inner); }, value);
  }

 private:
  template <class U>
  static bool read_as(const Value& value, std::variant<T...>& out, const At& at) {
    Problems aside;
    U inner{};
    if (!Codec<U>::read(value, inner, {at.path, aside, at.remedy})) return false;
    return out = std::move(inner), true;
  }
};

template <Sectioned T>
struct Codec<T> {
  static std::string expects() { return "a section: keys below it"; }
  static Value schema() { return json_schema(section_of<T>()); }
  static bool read(const Value& value, T& out, const At& at) {
    const size_t before = at.problems.size();
    read_section(section_of<T>(), value, &out, at.path, at.problems);
    return at.problems.size() == before;
  }
  static Value write(const T& value) { return write_section(section_of<T>(), &value); }
};

}  // namespace easydel::config
