// Automata over characters: what patterns, formats, lengths and names say of a text, and how that is combined.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/text/constrain/char_set.h"
#include "easydel/text/constrain/limits.h"

namespace easydel::text::constrain {

// Nondeterministic, as a pattern is written. Anchors are edges: `begin` may be taken only before the first character,
// `end` only after the last one.
struct CharNfa {
  enum class Kind : uint8_t { chars, nothing, begin, end };
  struct Edge {
    Kind kind = Kind::nothing;
    uint32_t set = 0;  // of `chars`: index in sets
    uint32_t to = 0;
  };
  std::vector<std::vector<Edge>> states;
  std::vector<CharSet> sets;
  uint32_t start = 0, accept = 0;

  // The states that are reached from `from` without a character, sorted; with or without the two anchors.
  std::vector<uint32_t> closure(std::vector<uint32_t> from, bool begin, bool end);

 private:
  std::vector<uint32_t> seen_;  // by state: the last call that met it
  uint32_t calls_ = 0;
};

// Deterministic; the first state is the start. A letter without an edge leads to no text of the language. Every state
// leads to an accepting one, except that the start remains if the language is empty.
class CharDfa {
 public:
  struct State {
    std::vector<Arrow> edges;  // sorted and disjoint
    bool accepts = false;
  };
  enum class Join : uint8_t { both, either, first_only };

  static CharDfa any();                                                // every text
  static CharDfa words(const std::vector<std::string>& words, Work&);  // valid UTF-8
  static CharDfa length(int64_t min, std::optional<int64_t> max, Work&);
  // `anywhere`: a part of the text has to match, not the whole text.
  static CharDfa of(CharNfa nfa, bool anywhere, Work&);

  CharDfa join(const CharDfa& other, Join how, Work& work) const;
  bool empty() const;                     // no text at all
  bool has(std::string_view text) const;  // valid UTF-8
  const std::vector<State>& states() const { return states_; }

 private:
  void trim();
  std::vector<State> states_;
};

}  // namespace easydel::text::constrain
