// Makes the table of a config struct from its fields(). Only the file tables.cpp of a layer includes this header, so
// that a table is compiled once, with one line for each struct that other files read or describe:
//
//   template const Section& section_of<train::TrainerConfig>();  // in namespace easydel::config
#pragma once

#include <string>
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

std::string expects_with(const std::string& expects, const Limits& limits);
Value schema_with(Value schema, const Limits& limits);
bool outside(double value, const Limits& limits);

template <class T>
bool outside(const T& value, const Limits& limits) {
  if constexpr (std::is_same_v<T, bool>) {
    return false;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return outside(double(value), limits);
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

struct MemberType {
  std::string (*expects)();
  Value (*schema)();
  bool (*read)(const Value& value, void* member, const At& at);
  Value (*write)(const void* member);
  bool (*outside)(const void* member, const Limits& limits);
  bool empty_means_default;
  Key::Shape shape;
  const Section* (*section)();  // of the shapes with sections
  bool is_section;              // itself; not a list or map of them
};

template <class T>
const MemberType MemberTypeOf<T>::value{
    .expects = Codec<T>::expects,
    .schema = Codec<T>::schema,
    .read = [](const Value& value, void* member,
               const At& at) { return Codec<T>::read(value, *static_cast<T*>(member), at); },
    .write = [](const void* member) { return Codec<T>::write(*static_cast<const T*>(member)); },
    .outside = [](const void* member,
                  const Limits& limits) { return detail::outside(*static_cast<const T*>(member), limits); },
    .empty_means_default = detail::empty_means_default<T>,
    .shape = detail::SectionsIn<T>::shape,
    .section = []() -> const Section* {
      if constexpr (detail::SectionsIn<T>::shape != Key::Shape::value)
        return &section_of<typename detail::SectionsIn<T>::type>();
      else
        return nullptr;
    },
    .is_section = Sectioned<T>,
};

// `defaults` is a struct of the row's owner. The key refers to the row, which must outlive it.
Key key_of(const Field& row, void* defaults);

template <Sectioned T>
Section make_section() {
  static constexpr auto rows = T::template fields<T>();
  constexpr bool keeps_unknown = requires { T::unknown_keys; }
  , notes_given = requires { T::given_keys; };
  constexpr size_t members = rows.size() + keeps_unknown + notes_given;
  static_assert(detail::takes<T>(std::make_index_sequence<members>{}) &&
                    !detail::takes<T>(std::make_index_sequence<members + 1>{}),
                "fields() must have one row for each member");
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
        for (const Field& row : rows)
          if (keys.given(row.name)) (typed.*T::given_keys).emplace(row.name);
      if constexpr (settles) typed.settle(keys);
    };
  T defaults{};
  for (const Field& row : rows) section.keys.push_back(key_of(row, &defaults));
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
