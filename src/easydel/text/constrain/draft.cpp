#include "easydel/text/constrain/draft.h"

#include <algorithm>
#include <unordered_map>

namespace easydel::text::constrain {
namespace {

// Thompson's construction.
class DraftBuilder {
 public:
  DraftBuilder(const Grammar& grammar, Work& work) : grammar_(grammar), work_(work) {}

  Draft build(ExprId body) {
    const uint32_t start = state(), end = state();
    add(body, start, end);
    draft_.states[end].accepts = true;
    return std::move(draft_);
  }

 private:
  uint32_t state() {
    work_.add_states();
    draft_.states.emplace_back();
    return uint32_t(draft_.states.size() - 1);
  }
  void skip(uint32_t from, uint32_t to) { draft_.states[from].nothing.push_back(to); }

  // The texts of `id` lead from `from` to `to`. Nothing that is added leads into `from` or out of `to`. Recursion:
  // expressions are at most some hundred levels deep, because readers bound their groups and inlined rules are small.
  void add(ExprId id, uint32_t from, uint32_t to) {
    const Expr& one = grammar_.expr(id);
    switch (one.kind) {
      case Expr::Kind::chars:
        for (const Utf8Run& run : utf8_runs(one.set)) {
          uint32_t at = from;
          for (size_t i = 0; i < run.length; ++i) {
            const uint32_t next = i + 1 == run.length ? to : state();
            draft_.states[at].bytes.push_back({run.bytes[i].first, run.bytes[i].last, next});
            at = next;
          }
        }
        return;
      case Expr::Kind::bytes:
        draft_.states[from].bytes.push_back({one.range.first, one.range.last, to});
        return;
      case Expr::Kind::literal: {
        for (size_t i = 0; i < one.text.size(); ++i) {
          const uint32_t next = i + 1 == one.text.size() ? to : state();
          const auto byte = uint8_t(one.text[i]);
          draft_.states[from].bytes.push_back({byte, byte, next});
          from = next;
        }
        if (one.text.empty()) skip(from, to);
        return;
      }
      case Expr::Kind::sequence:
        for (size_t i = 0; i < one.parts.size(); ++i) {
          const uint32_t next = i + 1 == one.parts.size() ? to : state();
          add(one.parts[i], from, next);
          from = next;
        }
        if (one.parts.empty()) skip(from, to);
        return;
      case Expr::Kind::choice:
        for (const ExprId part : one.parts) add(part, from, to);
        return;
      case Expr::Kind::call:
        draft_.states[from].calls.push_back({one.rule, to});
        return;
      case Expr::Kind::repeat:
        return add_repeat(one, from, to);
      case Expr::Kind::graph: {
        std::vector<uint32_t> places(one.nodes);
        for (uint32_t i = 0; i < one.nodes; ++i) places[i] = state();
        skip(from, places[0]);
        skip(places[1], to);
        for (const GraphEdge& edge : one.edges)
          edge.label == no_expr ? skip(places[edge.from], places[edge.to])
                                : add(edge.label, places[edge.from], places[edge.to]);
        return;
      }
    }
  }

  void add_repeat(const Expr& one, uint32_t from, uint32_t to) {
    // Loops get states of their own, so that nothing else enters or leaves by them.
    for (int64_t i = 0; i < one.min; ++i) {
      const uint32_t next = state();
      add(one.parts[0], from, next);
      from = next;
    }
    if (one.max < 0) {
      const uint32_t loop = state(), body = state();
      skip(from, loop);
      skip(loop, body);
      add(one.parts[0], body, loop);
      skip(loop, to);
      return;
    }
    for (int64_t i = one.min; i < one.max; ++i) {
      skip(from, to);
      const uint32_t next = state();
      add(one.parts[0], from, next);
      from = next;
    }
    skip(from, to);
  }

  const Grammar& grammar_;
  Work& work_;
  Draft draft_;
};

struct HashOfStates {
  size_t operator()(const std::vector<uint32_t>& states) const {
    uint64_t h = states.size();
    for (const uint32_t state : states) h = (h ^ state) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
    return h;
  }
};

// Sets of states become states.
class Determinizer {
 public:
  Determinizer(const Draft& from, const std::vector<bool>& nullable, Work& work)
      : from_(from), nullable_(nullable), work_(work), seen_(from.states.size()) {}

  Draft run() {
    // Sets can be exponentially many. Where they outnumber what is reasonable, states stay single ones, of which
    // several are then active at once.
    const size_t limit = 4 * from_.states.size() + 512;
    Draft out;
    for (const bool together : {true, false}) {
      out = {};
      ids_.clear(), todo_.clear();
      out.exact = together;
      id_of(closed({0}));
      bool small = true;
      for (size_t i = 0; i < todo_.size() && small; ++i) {
        out.states.push_back(make(todo_[i], together));
        small = !together || todo_.size() <= limit;
      }
      if (small) return out;
    }
    return out;
  }

 private:
  std::vector<uint32_t> closed(std::vector<uint32_t> states) {
    ++calls_;
    std::vector<uint32_t> kept;  // only states from which something is written, or which accept
    for (const uint32_t state : states) seen_[state] = calls_;
    const auto reach = [&](uint32_t to) {
      if (seen_[to] != calls_) seen_[to] = calls_, states.push_back(to);
    };
    for (size_t i = 0; i < states.size(); ++i) {
      const Draft::State& state = from_.states[states[i]];
      if (state.accepts || !state.bytes.empty() || !state.calls.empty()) kept.push_back(states[i]);
      for (const uint32_t to : state.nothing) reach(to);
      for (const Automaton::Call& call : state.calls)
        if (nullable_[call.rule]) reach(call.to);
    }
    work_.spend(states.size());
    std::ranges::sort(kept);
    return kept;
  }

  uint32_t id_of(std::vector<uint32_t> set) {
    const auto [at, is_new] = ids_.emplace(std::move(set), uint32_t(ids_.size()));
    if (is_new) todo_.push_back(at->first), work_.add_states();
    return at->second;
  }

  // `set` is a copy: id_of may move what todo_ holds.
  Draft::State make(std::vector<uint32_t> set, bool together) {
    Draft::State out;
    std::vector<Arrow> arrows;
    std::vector<Automaton::Call> calls;
    for (const uint32_t state : set) {
      const Draft::State& one = from_.states[state];
      out.accepts |= one.accepts;
      arrows.insert(arrows.end(), one.bytes.begin(), one.bytes.end());
      calls.insert(calls.end(), one.calls.begin(), one.calls.end());
    }
    work_.spend(arrows.size() + calls.size());
    if (together) {
      sweep(arrows, [&](uint32_t first, uint32_t last, const std::vector<uint32_t>& targets) {
        work_.spend(targets.size());
        const uint32_t to = id_of(closed(targets));
        if (!out.bytes.empty() && out.bytes.back().to == to && out.bytes.back().last + 1 == first)
          out.bytes.back().last = last;
        else
          out.bytes.push_back({first, last, to});
      });
    } else {
      // Each target alone; the start's set is the only one of several states.
      for (const Arrow& arrow : arrows)
        for (const uint32_t to : closed({arrow.to})) out.bytes.push_back({arrow.first, arrow.last, id_of({to})});
      std::ranges::sort(out.bytes);
      out.bytes.erase(std::unique(out.bytes.begin(), out.bytes.end()), out.bytes.end());
    }
    std::ranges::sort(calls, {}, &Automaton::Call::rule);
    for (size_t i = 0; i < calls.size();) {
      std::vector<uint32_t> targets;
      const RuleId rule = calls[i].rule;
      for (; i < calls.size() && calls[i].rule == rule; ++i) targets.push_back(calls[i].to);
      std::ranges::sort(targets);
      targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
      targets = closed(std::move(targets));
      if (together) {
        out.calls.push_back({rule, id_of(std::move(targets))});
        continue;
      }
      for (const uint32_t to : targets) out.calls.push_back({rule, id_of({to})});
    }
    return out;
  }

  const Draft& from_;
  const std::vector<bool>& nullable_;
  Work& work_;
  std::vector<uint32_t> seen_;
  uint32_t calls_ = 0;
  std::unordered_map<std::vector<uint32_t>, uint32_t, HashOfStates> ids_;
  std::vector<std::vector<uint32_t>> todo_;
};

}  // namespace

Draft draft_of(const Grammar& grammar, ExprId body, Work& work) { return DraftBuilder(grammar, work).build(body); }

Draft determinized(const Draft& draft, const std::vector<bool>& nullable, Work& work) {
  return Determinizer(draft, nullable, work).run();
}

}  // namespace easydel::text::constrain
