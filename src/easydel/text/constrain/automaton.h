// A grammar as it is run: one automaton over bytes for each rule, with edges that call other rules. Every state lies on
// the way to an accepted text, so whatever can be begun can be ended.
#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "easydel/text/constrain/grammar.h"

namespace easydel::text::constrain {

using StateId = uint32_t;
using ByteSet = std::bitset<256>;

class Automaton {
 public:
  struct Edge {
    uint8_t first = 0, last = 0;
    StateId to = 0;
  };
  struct Call {
    RuleId rule = 0;
    StateId to = 0;  // where the caller goes on
  };
  struct State {
    uint32_t edges = 0, calls = 0;  // where its own begin; they end where the next state's begin
    RuleId rule = 0;
    bool accepts = false;
    bool exact = true;  // at most one edge for a byte, and edges are sorted
    bool ends = false;  // accepts, and has neither edges nor calls
  };
  struct Rule {
    StateId start = 0;
    ByteSet first;   // the bytes that its texts begin with
    ByteSet follow;  // the bytes that may come after its texts, wherever it is called
    bool marker = false;
    uint32_t order = 0;  // greater than that of every rule that calls it before writing a byte
  };

  std::span<const Edge> edges(StateId state) const {
    return std::span(edges_).subspan(states_[state].edges, states_[state + 1].edges - states_[state].edges);
  }
  std::span<const Call> calls(StateId state) const {
    return std::span(calls_).subspan(states_[state].calls, states_[state + 1].calls - states_[state].calls);
  }
  const State& state(StateId state) const { return states_[state]; }
  const Rule& rule(RuleId rule) const { return rules_[rule]; }
  size_t state_count() const { return states_.size() - 1; }
  size_t rule_count() const { return rules_.size(); }
  RuleId root() const { return root_; }
  bool takes_empty() const { return takes_empty_; }  // the empty text is accepted
  size_t memory_bytes() const;
  // In this state any bytes may follow, and tokens that are not text too (the free text around a triggered constraint).
  bool is_free(StateId state) const { return !free_.empty() && free_[state]; }
  // This state is of a marker, for which a special token may stand.
  bool is_marker(StateId state) const { return rules_[states_[state].rule].marker; }
  bool has_markers() const { return has_markers_; }

 private:
  friend class AutomatonBuilder;
  std::vector<State> states_;  // and one more, where the last one's edges end
  std::vector<Edge> edges_;
  std::vector<Call> calls_;
  std::vector<Rule> rules_;
  std::vector<bool> free_;
  bool has_markers_ = false;
  RuleId root_ = 0;
  bool takes_empty_ = false;
};

// UserError "where: ...": no text is accepted at all, a rule calls itself before it writes a byte, or a limit.
Automaton compile(Grammar& grammar, RuleId root, std::string_view where);

}  // namespace easydel::text::constrain
