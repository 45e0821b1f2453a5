// Rules to automata: nondeterministic first, then deterministic where that stays small, then without what leads
// nowhere.
#include "easydel/text/constrain/automaton.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/text/constrain/draft.h"

namespace easydel::text::constrain {
class AutomatonBuilder {
 public:
  AutomatonBuilder(Grammar& grammar, RuleId root, std::string_view where)
      : grammar_(grammar), work_(grammar.work()), root_(root), where_(where) {}

  Automaton build() {
    grammar_.inline_small_rules(root_);
    collect();
    find_nullable();
    for (size_t i = 0; i < rules_.size(); ++i) {
      Draft draft = draft_of(grammar_, grammar_.rules()[rules_[i]].body, work_);
      for (Draft::State& state : draft.states)
        for (Automaton::Call& call : state.calls) call.rule = place_[call.rule];
      drafts_.push_back(determinized(draft, nullable_, work_));
    }
    remove_dead();
    lay_out();
    order_rules();
    find_first_and_follow();
    return std::move(out_);
  }

 private:
  // The rules that the root leads to, in the order in which they are met; calls name them by their place here.
  void collect() {
    place_.assign(grammar_.rules().size(), UINT32_MAX);
    const auto meet = [&](RuleId rule) {
      if (place_[rule] != UINT32_MAX) return;
      place_[rule] = static_cast<RuleId>(rules_.size());
      rules_.push_back(rule);
    };
    meet(root_);
    std::vector<bool> seen;
    for (size_t i = 0; i < rules_.size(); ++i) {
      std::vector<ExprId> todo = {grammar_.rules()[rules_[i]].body};
      while (!todo.empty()) {
        const ExprId id = todo.back();
        todo.pop_back();
        if (id == no_expr) continue;
        if (seen.size() <= id) seen.resize(id + 1);
        if (seen[id]) continue;
        seen[id] = true;
        const Expr& one = grammar_.expr(id);
        if (one.kind == Expr::Kind::call) meet(one.rule);
        todo.insert(todo.end(), one.parts.begin(), one.parts.end());
        for (const GraphEdge& edge : one.edges) todo.push_back(edge.label);
      }
    }
  }
  // Which rules accept the empty text. Again and again over all of them: every round but the last finds one more, and
  // rounds are few because rules are met from callers to callees and read backwards.
  void find_nullable() {
    nullable_.assign(rules_.size(), false);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = rules_.size(); i-- > 0;) {
        if (nullable_[i] || !can_be_empty(grammar_.rules()[rules_[i]].body)) continue;
        nullable_[i] = changed = true;
      }
    }
  }
  bool can_be_empty(ExprId id) {
    work_.spend();
    const Expr& one = grammar_.expr(id);
    const auto empty = [&](ExprId part) { return can_be_empty(part); };
    switch (one.kind) {
      case Expr::Kind::chars:
      case Expr::Kind::bytes:
        return false;
      case Expr::Kind::literal:
        return one.text.empty();
      case Expr::Kind::sequence:
        return std::ranges::all_of(one.parts, empty);
      case Expr::Kind::choice:
        return std::ranges::any_of(one.parts, empty);
      case Expr::Kind::repeat:
        return one.min == 0 || can_be_empty(one.parts[0]);
      case Expr::Kind::call:
        return nullable_[place_[one.rule]];
      case Expr::Kind::graph:
        break;
    }
    std::vector<bool> seen(one.nodes);
    std::vector<std::vector<const GraphEdge*>> from(one.nodes);
    for (const GraphEdge& edge : one.edges) from[edge.from].push_back(&edge);
    std::vector<uint32_t> todo = {0};
    seen[0] = true;
    for (size_t i = 0; i < todo.size(); ++i)
      for (const GraphEdge* edge : from[todo[i]])
        if (!seen[edge->to] && (edge->label == no_expr || can_be_empty(edge->label)))
          seen[edge->to] = true, todo.push_back(edge->to);
    return seen[1];
  }

  // Keeps only what leads to an accepted text: first which rules have a text at all, then which states lead to one.
  void remove_dead() {
    // Backwards from accepting states over bytes and over calls of rules that are known to have a text.
    struct Place {
      uint32_t rule, state;
    };
    std::vector<std::vector<std::vector<std::pair<uint32_t, RuleId>>>> before(drafts_.size());  // source, rule or none
    std::vector<std::vector<bool>> alive(drafts_.size());
    std::vector<std::vector<Place>> waiting(drafts_.size());  // calls of a rule whose caller could go on
    constexpr RuleId no_rule = UINT32_MAX;
    std::vector<Place> todo;
    std::vector<bool> has_text(drafts_.size());
    for (uint32_t r = 0; r < drafts_.size(); ++r) {
      before[r].resize(drafts_[r].states.size());
      alive[r].resize(drafts_[r].states.size());
      for (uint32_t s = 0; s < drafts_[r].states.size(); ++s) {
        for (const Arrow& edge : drafts_[r].states[s].bytes) before[r][edge.to].emplace_back(s, no_rule);
        for (const Automaton::Call& call : drafts_[r].states[s].calls) before[r][call.to].emplace_back(s, call.rule);
        if (drafts_[r].states[s].accepts) alive[r][s] = true, todo.push_back({r, s});
      }
    }
    const auto live = [&](uint32_t rule, uint32_t state) {
      if (!alive[rule][state]) alive[rule][state] = true, todo.push_back({rule, state});
    };
    for (size_t i = 0; i < todo.size(); ++i) {
      const auto [rule, state] = todo[i];
      work_.spend();
      if (state == 0 && !has_text[rule]) {
        has_text[rule] = true;
        for (const Place& caller : waiting[rule]) live(caller.rule, caller.state);
      }
      for (const auto& [from, called] : before[rule][state]) {
        if (called == no_rule || has_text[called])
          live(rule, from);
        else
          waiting[called].push_back({rule, from});
      }
    }
    if (!has_text[0])
      refuse(std::string(where_), "accepts no text at all",
             "look for demands that contradict each other, and for recursion without an end");
    for (uint32_t r = 0; r < drafts_.size(); ++r)
      for (Draft::State& state : drafts_[r].states) {
        std::erase_if(state.bytes, [&](const Arrow& edge) { return !alive[r][edge.to]; });
        std::erase_if(state.calls,
                      [&](const Automaton::Call& call) { return !has_text[call.rule] || !alive[r][call.to]; });
      }
  }

  void lay_out() {
    for (uint32_t r = 0; r < drafts_.size(); ++r) {
      const auto base = static_cast<StateId>(out_.states_.size());
      out_.rules_.emplace_back().start = base;
      for (const Draft::State& from : drafts_[r].states) {
        Automaton::State state{.edges = uint32_t(out_.edges_.size()),
                               .calls = uint32_t(out_.calls_.size()),
                               .rule = r,
                               .accepts = from.accepts,
                               .exact = drafts_[r].exact};
        state.ends = from.accepts && from.bytes.empty() && from.calls.empty();
        for (const Arrow& edge : from.bytes)
          out_.edges_.push_back({uint8_t(edge.first), uint8_t(edge.last), base + edge.to});
        for (const Automaton::Call& call : from.calls) out_.calls_.push_back({call.rule, base + call.to});
        out_.states_.push_back(state);
      }
      drafts_[r] = {};
    }
    out_.states_.push_back({.edges = uint32_t(out_.edges_.size()), .calls = uint32_t(out_.calls_.size())});
    out_.root_ = 0;
    out_.takes_empty_ = nullable_[0];
    for (uint32_t r = 0; r < rules_.size(); ++r) {
      out_.rules_[r].marker = grammar_.rules()[rules_[r]].marker;
      out_.has_markers_ = out_.has_markers_ || out_.rules_[r].marker;
    }
    if (std::ranges::none_of(rules_, [&](RuleId rule) { return grammar_.rules()[rule].free; })) return;
    out_.free_.resize(out_.states_.size());
    for (StateId s = 0; s + 1 < out_.states_.size(); ++s)
      out_.free_[s] = grammar_.rules()[rules_[out_.states_[s].rule]].free && !out_.edges(s).empty();
  }

  // Rules that call others before a byte come before them. A cycle has no such order.
  void order_rules() {
    const size_t count = out_.rules_.size();
    std::vector<uint32_t> callers(count);
    const auto calls = [&](RuleId rule) { return out_.calls(out_.rules_[rule].start); };
    for (RuleId rule = 0; rule < count; ++rule)
      for (const Automaton::Call& call : calls(rule)) ++callers[call.rule];
    std::vector<RuleId> todo;
    for (RuleId rule = 0; rule < count; ++rule)
      if (!callers[rule]) todo.push_back(rule);
    for (size_t i = 0; i < todo.size(); ++i) {
      out_.rules_[todo[i]].order = uint32_t(i);
      for (const Automaton::Call& call : calls(todo[i]))
        if (--callers[call.rule] == 0) todo.push_back(call.rule);
    }
    if (todo.size() == count) return;
    const auto cyclic = size_t(std::ranges::find_if(callers, [](uint32_t n) { return n > 0; }) - callers.begin());
    refuse(std::string(where_),
           str("'", grammar_.rules()[rules_[cyclic]].name, "' can lead back to itself before anything is written"),
           "put something before the recursion: list ::= item (\",\" item)* instead of list ::= list \",\" item");
  }

  void find_first_and_follow() {
    std::vector<RuleId> by_order(out_.rules_.size());
    for (RuleId rule = 0; rule < by_order.size(); ++rule) by_order[out_.rules_[rule].order] = rule;
    const auto first_of = [&](StateId state) {
      ByteSet out;
      for (const Automaton::Edge& edge : out_.edges(state))
        for (unsigned byte = edge.first; byte <= edge.last; ++byte) out.set(byte);
      for (const Automaton::Call& call : out_.calls(state)) out |= out_.rules_[call.rule].first;
      return out;
    };
    for (size_t i = by_order.size(); i-- > 0;)
      out_.rules_[by_order[i]].first = first_of(out_.rules_[by_order[i]].start);
    // What follows a rule whose call is the last thing in its caller is what follows the caller.
    std::vector<std::vector<RuleId>> last_in(out_.rules_.size());
    for (StateId s = 0; s + 1 < out_.states_.size(); ++s) {
      for (const Automaton::Call& call : out_.calls(s)) {
        work_.spend(4);
        out_.rules_[call.rule].follow |= first_of(call.to);
        if (out_.states_[call.to].accepts) last_in[out_.states_[s].rule].push_back(call.rule);
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (RuleId caller = 0; caller < last_in.size(); ++caller) {
        auto& callees = last_in[caller];
        std::ranges::sort(callees);
        callees.erase(std::unique(callees.begin(), callees.end()), callees.end());
        for (const RuleId callee : callees) {
          const ByteSet before = out_.rules_[callee].follow;
          out_.rules_[callee].follow |= out_.rules_[caller].follow;
          changed |= before != out_.rules_[callee].follow;
          work_.spend();
        }
      }
    }
  }

  Grammar& grammar_;
  Work& work_;
  RuleId root_;
  std::string_view where_;
  std::vector<RuleId> rules_;  // by place: the grammar's rule
  std::vector<RuleId> place_;  // by the grammar's rule
  std::vector<bool> nullable_;
  std::vector<Draft> drafts_;
  Automaton out_;
};

size_t Automaton::memory_bytes() const {
  return states_.size() * sizeof(State) + edges_.size() * sizeof(Edge) + calls_.size() * sizeof(Call) +
         rules_.size() * sizeof(Rule) + free_.size() / 8;
}

Automaton compile(Grammar& grammar, RuleId root, std::string_view where) {
  return AutomatonBuilder(grammar, root, where).build();
}

}  // namespace easydel::text::constrain
