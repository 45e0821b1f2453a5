// Field tables. A config struct lists its members once more in fields(), each with its doc and attributes; key name,
// type and default come from the member itself:
//
//   struct TrainerConfig {
//     double learning_rate = 5e-5;
//     std::optional<int64_t> save_steps;
//     Optimizer optimizer = Optimizer::adamw;
//
//     static constexpr auto doc = "How the model is trained.";
//     static constexpr auto fields() {
//       using namespace config;
//       return std::tuple{
//           field<&TrainerConfig::learning_rate>("Step size at its highest.", at_least(0), alias("lr")),
//           field<&TrainerConfig::save_steps>("Steps between checkpoints; null: only the last.", at_least(1)),
//           field<&TrainerConfig::optimizer>("The optimizer."),
//       };
//     }
//     void settle(config::Keys& keys);  // optional: rules over several keys; keys.refuse("save_steps", what, hint)
//   };
//
// Types: bool, integers, double, std::string, std::filesystem::path, enums (with `constexpr auto choices(E)` beside
// them), std::optional, std::vector, std::array, std::map<std::string, T>, std::variant (the first that fits), Auto<T>
// ("auto" or a T), Many<T> (one T or a list), Value (anything), and structs with fields(). A struct with
// `static constexpr bool open = true` passes over unknown keys, with `static constexpr auto unknown_keys = &T::rest`
// (a Value member without a row) keeps them there.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "easydel/config/codec.h"
#include "easydel/config/section.h"

namespace easydel::config {

struct Limits {
  double low = 0, high = 0;
  bool has_low = false, has_high = false, open = false;  // open: `low` itself is outside
};
constexpr Limits between(double low, double high) { return {low, high, true, true, false}; }
constexpr Limits at_least(double low) { return {low, 0, true, false, false}; }
constexpr Limits above(double low) { return {low, 0, true, false, true}; }

struct Alias {
  std::string_view name;
};
struct Deprecated {
  std::string_view name;
};
struct NoEffect {
  std::string_view why;
};
struct NotBuilt {
  std::string_view what;
};
struct Named {
  std::string_view name;
};
struct Required {};
constexpr Alias alias(std::string_view other_name) { return {other_name}; }
constexpr Deprecated deprecated(std::string_view old_name) { return {old_name}; }  // accepted, said once
constexpr NoEffect no_effect(std::string_view why) { return {why}; }               // accepted, typed, named in a note
constexpr NotBuilt not_built(std::string_view what) { return {what}; }             // only its default is accepted
constexpr Named named(std::string_view key) { return {key}; }                      // a key that cannot be a member's name
constexpr Required required() { return {}; }

struct Attributes {
  Limits limits;
  std::array<std::string_view, 6> aliases{};
  std::array<std::string_view, 4> deprecated{};
  std::string_view no_effect, not_built, named;
  bool required = false;

  constexpr void set(Limits l) { limits = l; }
  constexpr void set(Alias a) { append(aliases, a.name); }
  constexpr void set(Deprecated d) { append(deprecated, d.name); }
  constexpr void set(NoEffect n) { no_effect = n.why; }
  constexpr void set(NotBuilt n) { not_built = n.what; }
  constexpr void set(Named n) { named = n.name; }
  constexpr void set(Required) { required = true; }

 private:
  template <size_t N>
  static constexpr void append(std::array<std::string_view, N>& names, std::string_view name) {
    for (auto& slot : names)
      if (slot.empty()) return void(slot = name);
    throw "too many names";  // at compile time
  }
};

// "page_size" for &EngineConfig::page_size: the key is the member's own name, so they never part.
template <auto Member>
consteval std::string_view name_of() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(0, text.find_first_of(";]", text.find("Member = ")));
  return text.substr(text.rfind(':') + 1);
}

template <class OwnerT, class TypeT>
struct Field {
  using Owner = OwnerT;
  using Type = TypeT;
  Type Owner::*member;
  std::string_view name, doc;
  Attributes attributes;
};

template <auto Member>
struct FieldOf;
template <class Owner, class Type, Type Owner::*Member>
struct FieldOf<Member> {
  using type = Field<Owner, Type>;
};

template <auto Member, class... Attribute>
constexpr auto field(std::string_view doc, Attribute... attribute) {
  Attributes all;
  (all.set(attribute), ...);
  const std::string_view name = all.named.empty() ? name_of<Member>() : all.named;
  return typename FieldOf<Member>::type{Member, name, doc, all};
}

namespace detail {

struct Anything {
  template <class T>
  operator T() const;  // never defined: only asked whether it would convert
};

template <class T, size_t... I>
consteval bool takes(std::index_sequence<I...>) {
  return requires { T{((void)I, Anything{})...}; };
}

template <class T, size_t N = 0>
consteval size_t member_count() {
  if constexpr (!takes<T>(std::make_index_sequence<N + 1>{}))
    return N;
  else
    return member_count<T, N + 1>();
}

std::string expects_with(const std::string& expects, const Limits& limits);
Value schema_with(Value schema, const Limits& limits);
bool outside(double value, const Limits& limits);

template <class T>
bool outside(const T& value, const Limits& limits) {
  if constexpr (std::is_same_v<T, bool>) {
    return false;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return outside(static_cast<double>(value), limits);
  } else if constexpr (requires { value.has_value(); *value; }) {
    return value.has_value() && outside(*value, limits);
  } else if constexpr (requires { value.begin(); value.end(); } && !std::is_convertible_v<T, std::string_view>) {
    for (const auto& item : value)
      if (outside(item, limits)) return true;
    return false;
  } else {
    return false;
  }
}

// A key without a value: where null is no value of its type, its default stays, and that is said.
template <class T>
constexpr bool empty_means_default = !Sectioned<T> && !std::is_same_v<T, Value>;
template <class T>
constexpr bool empty_means_default<std::optional<T>> = false;
template <class... T>
constexpr bool empty_means_default<std::variant<T...>> = !(std::is_same_v<T, Value> || ...);
template <class T>
void note_empty(const std::string& path, const T& out, Problems& problems) {
  problems.note(path, "is empty; its default " + to_yaml_flow(Codec<T>::write(out)) + " is used");
}

template <auto Member, auto...>
struct OwnerOf {
  using type = typename FieldOf<Member>::type::Owner;
};

template <class T>
struct SectionsIn {  // the shape of a key, and the struct inside
  static constexpr auto shape = Sectioned<T> ? Key::Shape::section : Key::Shape::value;
  using type = T;
};
template <class T>
struct SectionsIn<std::optional<T>> : SectionsIn<T> {};
template <Sectioned T>
struct SectionsIn<std::vector<T>> {
  static constexpr auto shape = Key::Shape::list_of_sections;
  using type = T;
};
template <Sectioned T>
struct SectionsIn<Many<T>> : SectionsIn<std::vector<T>> {};
template <Sectioned T>
struct SectionsIn<std::map<std::string, T>> {
  static constexpr auto shape = Key::Shape::map_of_sections;
  using type = T;
};

}  // namespace detail

// The bridge: a typed row becomes a plain Key.
template <class F>
Key key_of(const F& row, const typename F::Owner& defaults) {
  using T = typename F::Type;
  using Owner = typename F::Owner;
  const Attributes& attributes = row.attributes;
  Key key{.name = std::string(row.name), .doc = std::string(row.doc)};
  for (std::string_view name : attributes.aliases)
    if (!name.empty()) key.aliases.emplace_back(name);
  for (std::string_view name : attributes.deprecated)
    if (!name.empty()) key.deprecated.emplace_back(name);
  key.no_effect = attributes.no_effect, key.not_built = attributes.not_built, key.required = attributes.required;
  key.expects = detail::expects_with(Codec<T>::expects(), attributes.limits);
  key.default_value = Codec<T>::write(defaults.*row.member);
  key.write = [m = row.member](const void* object) { return Codec<T>::write(static_cast<const Owner*>(object)->*m); };
  using Inner = detail::SectionsIn<T>;
  key.shape = Inner::shape;
  if constexpr (Inner::shape != Key::Shape::value) {
    key.section = [] { return &section_of<typename Inner::type>(); };
    if constexpr (Sectioned<T>)
      key.settle = [m = row.member](void* object, const std::string& path, Problems& problems) {
        read_section(section_of<T>(), {}, &(static_cast<Owner*>(object)->*m), path, problems);
      };
  } else {
    key.schema = detail::schema_with(Codec<T>::schema(), attributes.limits);
  }
  const bool plain = Inner::shape == Key::Shape::value;
  const std::string hint =
      plain ? "expected " + key.expects + " (default " + to_yaml_flow(key.default_value) + ")" : "expected " + key.expects;
  key.read = [m = row.member, limits = attributes.limits, hint](const Value& value, void* object,
                                                                const std::string& path, Problems& problems) {
    T& out = static_cast<Owner*>(object)->*m;
    if (value.is_null() && detail::empty_means_default<T>) return detail::note_empty(path, out, problems);
    if (!Codec<T>::read(value, out, {path, problems, hint})) return;
    if ((limits.has_low || limits.has_high) && detail::outside(out, limits))
      problems.add(path, value.place, to_yaml_flow(value) + " is out of range", hint);
  };
  return key;
}

template <Sectioned T>
Section make_section() {
  static constexpr auto rows = T::fields();
  constexpr size_t kept_apart = requires { T::unknown_keys; } ? 1 : 0;
  static_assert(std::tuple_size_v<decltype(rows)> + kept_apart == detail::member_count<T>(),
                "fields() must have one row for each member");
  const T defaults{};
  Section section{.doc = std::string(T::doc)};
  if constexpr (requires { T::open; }) section.open = T::open;
  if constexpr (requires { T::unknown_keys; }) {
    section.open = true;
    section.unknown_keys = [](void* object) { return &(static_cast<T*>(object)->*T::unknown_keys); };
  }
  if constexpr (requires(T& object, Keys& keys) { object.settle(keys); })
    section.settle = [](void* object, Keys& keys) { static_cast<T*>(object)->settle(keys); };
  std::apply([&](const auto&... row) { (section.keys.push_back(key_of(row, defaults)), ...); }, rows);
  return section;
}

template <Sectioned T>
const Section& section_of() {
  static const Section section = [] {
    if constexpr (requires { T::section(); })
      return T::section();  // a struct that makes its own table (see Section::read_all)
    else
      return make_section<T>();
  }();
  return section;
}

// Reads a whole document into `out`; what is wrong is in the result (throw_if_any() turns it into one UserError).
template <Sectioned T>
Problems read(const Value& value, T& out, std::string file = "config") {
  Problems problems(std::move(file));
  read_section(section_of<T>(), value, &out, "", problems);
  return problems;
}

template <Sectioned T>
Value write(const T& object) {
  return write_section(section_of<T>(), &object);
}

// One flat section from members that are sections themselves: `static config::Section section()` of a struct may be
//   return config::flat<&Run::common, &Run::sampling>("doc");
template <auto... Members>
Section flat(std::string doc) {
  const auto parts_of = []<class Owner, class... Inner>(Owner* object, Inner Owner::*... members) {
    return std::array{Part{&section_of<Inner>(), &(object->*members)}...};
  };
  const auto sections = []<class Owner, class... Inner>(Inner Owner::*...) {
    return std::array<const Section*, sizeof...(Inner)>{&section_of<Inner>()...};
  }(Members...);
  Section out = merged(std::move(doc), sections);
  using Owner = typename detail::OwnerOf<Members...>::type;
  out.parts = [parts_of](void* object) {
    const auto parts = parts_of(static_cast<Owner*>(object), Members...);
    return std::vector<Part>(parts.begin(), parts.end());
  };
  out.read_all = [parts_of](const Value& value, void* object, const std::string& path, Problems& problems) {
    read_sections(parts_of(static_cast<Owner*>(object), Members...), value, path, problems);
  };
  out.write_all = [parts_of](const void* object) {
    return write_sections(parts_of(static_cast<Owner*>(const_cast<void*>(object)), Members...));
  };
  return out;
}

template <Sectioned T>
Part part(T& object) {
  return {&section_of<T>(), &object};
}

}  // namespace easydel::config
