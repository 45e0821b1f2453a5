// Field tables. A config struct lists its members once more in fields(), each with its doc and attributes; key name,
// type and default come from the member itself:
//
//   struct TrainerConfig {
//     double learning_rate = 5e-5;
//     std::optional<int64_t> save_steps;
//     Optimizer optimizer = Optimizer::adamw;
//
//     static constexpr auto doc = "How the model is trained.";
//     template <class C>  // C is TrainerConfig; a template costs nothing in the files that only use the members
//     static constexpr auto fields() {
//       using namespace config;
//       return std::array{
//           field<&C::learning_rate>("Step size at its highest.", at_least(0), alias("lr")),
//           field<&C::save_steps>("Steps between checkpoints; null: only the last.", at_least(1)),
//           field<&C::optimizer>("The optimizer."),
//       };
//     }
//     void settle(config::Keys& keys);  // optional: rules over several keys; keys.refuse("save_steps", what, remedy)
//   };
//
// Types: bool, integers, double, std::string, std::filesystem::path, enums (with `constexpr auto choices(E)` beside
// them), std::optional, std::vector, std::array, std::map<std::string, T>, std::variant (the first that fits), Auto<T>
// ("auto" or a T), Many<T> (one T or a list), Value (anything), and structs with fields(). A struct with
// `static constexpr bool open = true` passes over unknown keys, with `static constexpr auto unknown_keys = &T::rest`
// (a Value member without a row) keeps them there. With `static constexpr auto given_keys = &T::given` (a std::set of
// texts without a row) reading adds the names of the keys that a document gives.
//
// The table itself, section_of<T>(), is made in one file of the layer, tables.cpp, which names T (see config/tables.h).
#pragma once

#include <array>
#include <string>
#include <string_view>
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
constexpr Deprecated deprecated(std::string_view old_name) { return {old_name}; }  // accepted, with a note
constexpr NoEffect no_effect(std::string_view why) { return {why}; }               // accepted and checked, with a note
constexpr NotBuilt not_built(std::string_view what) { return {what}; }             // only its default is accepted
constexpr Named named(std::string_view key) { return {key}; }  // a key that cannot be a member's name
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

// "page_size" for &EngineConfig::page_size: the key is the member's own name, so they cannot differ.
template <auto Member>
consteval std::string_view name_of() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(0, text.find_first_of(";]", text.find("Member = ")));
  return text.substr(text.rfind(':') + 1);
}

// How members of one type are read, written and described; tables.h makes it.
struct MemberType;
template <class T>
struct MemberTypeOf {
  static const MemberType value;
};

// One row of fields().
struct Field {
  std::string_view name, doc;
  Attributes attributes;
  const MemberType* type;
  void* (*member)(void* object);  // where it is in an object of the struct
};

template <auto Member>
struct FieldOf;
template <class Owner_, class Type_, Type_ Owner_::*Member>
struct FieldOf<Member> {
  using Owner = Owner_;
  using Type = Type_;
  static void* member(void* object) { return &(static_cast<Owner*>(object)->*Member); }
};

template <auto Member, class... Attribute>
constexpr Field field(std::string_view doc, Attribute... attribute) {
  Attributes all;
  (all.set(attribute), ...);
  const std::string_view name = all.named.empty() ? name_of<Member>() : all.named;
  using Of = FieldOf<Member>;
  return {name, doc, all, &MemberTypeOf<typename Of::Type>::value, Of::member};
}

namespace detail {

// A key without a value ("key:") keeps its default with a note, if null is not a value of its type.
template <class T>
constexpr bool empty_means_default = !Sectioned<T> && !std::is_same_v<T, Value>;
template <class T>
constexpr bool empty_means_default<std::optional<T>> = false;
template <class... T>
constexpr bool empty_means_default<std::variant<T...>> = !(std::is_same_v<T, Value> || ...);

template <auto Member, auto...>
struct OwnerOf {
  using type = typename FieldOf<Member>::Owner;
};

}  // namespace detail

// Reads a whole document into `out`. The result has what is wrong; throw_if_any() turns it into one UserError.
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
