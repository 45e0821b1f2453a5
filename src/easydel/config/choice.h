// The words of an enum in the configuration.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "easydel/base/names.h"

namespace easydel::config {

// How an enum is written in YAML: declare `constexpr auto choices(E)` beside the enum, returning a std::array of these:
//   std::array{Choice{E::flash_attn2, "flash_attn2"}.also("flash"), Choice{E::ring, "ring"}.not_built()}
// Case does not matter, nor '-' against '_'.
template <class E>
struct Choice {
  E value;
  std::string_view name;
  std::array<std::string_view, 6> aliases{};
  bool built = true;

  constexpr Choice(E value, std::string_view name) : value(value), name(name) {}
  constexpr Choice also(std::string_view other) const {
    Choice out = *this;
    for (auto& slot : out.aliases)
      if (slot.empty()) return slot = other, out;
    throw "too many aliases";  // at compile time
  }
  constexpr Choice not_built() const {
    Choice out = *this;
    return out.built = false, out;
  }
};

// The word that is written for `value`: the first name of its choice. Empty: no choice has the value.
template <class E>
requires std::is_enum_v<E>
constexpr std::string_view word_of(E value) {
  for (const Choice<E>& choice : choices(E{}))
    if (choice.value == value) return choice.name;
  return {};
}

// The value that a word names, by one of its names; nothing: none has it.
template <class E>
requires std::is_enum_v<E> std::optional<E> value_of(std::string_view word) {
  const std::string wanted = canonical(word);
  const auto same = [&](std::string_view name) { return !name.empty() && canonical(name) == wanted; };
  for (const Choice<E>& choice : choices(E{}))
    if (same(choice.name) || std::ranges::any_of(choice.aliases, same)) return choice.value;
  return std::nullopt;
}

}  // namespace easydel::config
