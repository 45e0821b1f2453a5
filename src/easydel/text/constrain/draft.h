// The automaton of one rule while a grammar is compiled.
#pragma once

#include <vector>

#include "easydel/text/constrain/automaton.h"

namespace easydel::text::constrain {

// The automaton of one rule while it is made.
struct Draft {
  struct State {
    std::vector<uint32_t> nothing;  // edges that write nothing
    std::vector<Arrow> bytes;
    std::vector<Automaton::Call> calls;  // `to` is a state of this draft
    bool accepts = false;
  };
  std::vector<State> states;
  bool exact = true;
};

// Nondeterministic: states may have edges that write nothing.
Draft draft_of(const Grammar& grammar, ExprId body, Work& work);
// Without such edges, and deterministic (`exact`) where that stays small. A call of a rule that is nullable (by rule)
// may write nothing.
Draft determinized(const Draft& draft, const std::vector<bool>& nullable, Work& work);

}  // namespace easydel::text::constrain
