// Makes the table of a config struct from its fields(). Compiling takes seconds per struct, so only the file tables.cpp
// of a layer includes this header, with one line for each struct that other files read or describe:
//
//   template const Section& section_of<train::TrainerConfig>();  // in namespace easydel::config
#pragma once

#include <string>
#include <tuple>
#include <utility>

#include "easydel/config/fields.h"

namespace easydel::config {

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
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    return value.has_value() && outside(*value, limits);
  } else if constexpr (requires {
                         value.begin();
                         value.end();
                       } &&
                       !std::is_convertible_v<T, std::string_view>) {
    for (const auto& item : value)
      if (outside(item, limits)) return true;
    return false;
  } else {
    return false;
  }
}

template <class T>
void note_empty(const std::string& path, const T& out, Problems& problems) {
  problems.note(path, "is empty; its default " + to_yaml_flow(Codec<T>::write(out)) + " is used");
}

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
  const std::string remedy = plain ? "expected " + key.expects + " (default " + to_yaml_flow(key.default_value) + ")"
                                   : "expected " + key.expects;
  key.read = [m = row.member, limits = attributes.limits, remedy](const Value& value, void* object,
                                                                  const std::string& path, Problems& problems) {
    T& out = static_cast<Owner*>(object)->*m;
    if (value.is_null() && detail::empty_means_default<T>) return detail::note_empty(path, out, problems);
    if (!Codec<T>::read(value, out, {path, problems, remedy})) return;
    if ((limits.has_low || limits.has_high) && detail::outside(out, limits))
      problems.add(path, value.place, to_yaml_flow(value) + " is out of range", remedy);
  };
  return key;
}

template <Sectioned T>
Section make_section() {
  static constexpr auto rows = T::fields();
  constexpr bool keeps_unknown = requires { T::unknown_keys; }
  , notes_given = requires { T::given_keys; };
  static_assert(std::tuple_size_v<decltype(rows)> + keeps_unknown + notes_given == detail::member_count<T>(),
                "fields() must have one row for each member");
  const T defaults{};
  Section section{.doc = std::string(T::doc)};
  if constexpr (requires { T::open; }) section.open = T::open;
  if constexpr (requires { T::unknown_keys; }) {
    section.open = true;
    section.unknown_keys = [](void* object) { return &(static_cast<T*>(object)->*T::unknown_keys); };
  }
  constexpr bool settles = requires(T & object, Keys & keys) { object.settle(keys); };
  if constexpr (settles || notes_given)
    section.settle = [](void* object, Keys& keys) {
      T& typed = *static_cast<T*>(object);
      if constexpr (notes_given)
        std::apply(
            [&](const auto&... row) {
              ((keys.given(row.name) ? void((typed.*T::given_keys).emplace(row.name)) : void()), ...);
            },
            rows);
      if constexpr (settles) typed.settle(keys);
    };
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

}  // namespace easydel::config
