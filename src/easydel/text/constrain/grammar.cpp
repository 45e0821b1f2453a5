#include "easydel/text/constrain/grammar.h"

#include <algorithm>

namespace easydel::text::constrain {

ExprId Grammar::add(Expr expr) {
  work_.spend();
  exprs_.push_back(std::move(expr));
  return static_cast<ExprId>(exprs_.size() - 1);
}

ExprId Grammar::chars(CharSet set) {
  if (set.empty()) return never();
  return add({.kind = Expr::Kind::chars, .set = std::move(set)});
}

ExprId Grammar::bytes(uint8_t first, uint8_t last) { return add({.kind = Expr::Kind::bytes, .range = {first, last}}); }

ExprId Grammar::literal(std::string text) { return add({.kind = Expr::Kind::literal, .text = std::move(text)}); }

ExprId Grammar::sequence(std::vector<ExprId> parts) {
  if (parts.size() == 1) return parts[0];
  return add({.kind = Expr::Kind::sequence, .parts = std::move(parts)});
}

ExprId Grammar::choice(std::vector<ExprId> parts) {
  if (parts.size() == 1) return parts[0];
  return add({.kind = Expr::Kind::choice, .parts = std::move(parts)});
}

ExprId Grammar::repeat(ExprId part, int64_t min, int64_t max) {
  if (min == 1 && max == 1) return part;
  return add({.kind = Expr::Kind::repeat, .parts = {part}, .min = min, .max = max});
}

ExprId Grammar::call(RuleId rule) { return add({.kind = Expr::Kind::call, .rule = rule}); }

ExprId Grammar::graph(uint32_t nodes, std::vector<GraphEdge> edges) {
  return add({.kind = Expr::Kind::graph, .edges = std::move(edges), .nodes = nodes});
}

RuleId Grammar::add_rule(std::string name, bool shared) {
  rules_.push_back({std::move(name), no_expr, shared, false});
  return static_cast<RuleId>(rules_.size() - 1);
}

void Grammar::inline_small_rules(RuleId root) {
  // The weight of a rule: about how many states its body has with everything put in that will be. A rule is weighed
  // after those that it calls, in the order of a walk that keeps its own stack; a rule that is met again on the way
  // leads back to itself and stays.
  constexpr int64_t small = 48, endless = INT64_MAX / 4;
  enum class State : uint8_t { unseen, open, done };
  std::vector<State> state(rules_.size(), State::unseen);
  std::vector<int64_t> weight(rules_.size(), endless);
  const auto called = [&](RuleId rule, auto&& each) {
    std::vector<std::pair<ExprId, int64_t>> todo = {{rules_[rule].body, 1}};  // and how often it is copied
    while (!todo.empty()) {
      const auto [id, copies] = todo.back();
      todo.pop_back();
      if (id == no_expr) continue;
      work_.spend();
      const Expr& one = exprs_[id];
      each(one, copies);
      const int64_t times = one.kind == Expr::Kind::repeat ? std::max(one.max, one.min + 1) : 1;
      for (const ExprId part : one.parts)
        todo.emplace_back(part, std::min(endless, copies * std::max<int64_t>(1, times)));
      for (const GraphEdge& edge : one.edges) todo.emplace_back(edge.label, copies);
    }
  };
  std::vector<RuleId> stack = {root};
  while (!stack.empty()) {
    const RuleId rule = stack.back();
    if (state[rule] == State::unseen) {
      state[rule] = State::open;
      called(rule, [&](const Expr& one, int64_t) {
        if (one.kind == Expr::Kind::call && state[one.rule] == State::unseen) stack.push_back(one.rule);
      });
      continue;
    }
    stack.pop_back();
    if (state[rule] == State::done) continue;
    int64_t sum = 1;
    called(rule, [&](const Expr& one, int64_t copies) {
      int64_t own = 1;
      if (one.kind == Expr::Kind::literal) own = int64_t(one.text.size());
      if (one.kind == Expr::Kind::chars) own = one.set.ranges().back().last < 0x80 ? 1 : 4;
      if (one.kind == Expr::Kind::call) {
        // A callee that is still open leads back here.
        if (state[one.rule] != State::done)
          own = endless;
        else if (weight[one.rule] <= small)
          own = weight[one.rule];
      }
      sum = std::min(endless, sum + std::min(endless, own * copies));
    });
    weight[rule] = rules_[rule].shared ? endless : sum;
    state[rule] = State::done;
  }
  // Callees first, so each call is replaced by a body in which nothing is left to replace.
  for (Expr& one : exprs_) {
    if (one.kind != Expr::Kind::call || weight[one.rule] > small || one.rule == root) continue;
    const ExprId body = rules_[one.rule].body;
    one = {.kind = Expr::Kind::sequence, .parts = {body}};
  }
}

}  // namespace easydel::text::constrain
