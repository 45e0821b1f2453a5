// A context-free grammar over bytes while it is written: expressions and rules. automaton.h compiles it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/text/constrain/char_set.h"
#include "easydel/text/constrain/limits.h"

namespace easydel::text::constrain {

using ExprId = uint32_t;
using RuleId = uint32_t;

// An edge of a small graph of expressions. no_expr: nothing is written.
constexpr ExprId no_expr = UINT32_MAX;
struct GraphEdge {
  uint32_t from = 0, to = 0;
  ExprId label = no_expr;
};

struct Expr {
  enum class Kind : uint8_t { chars, bytes, literal, sequence, choice, repeat, call, graph };
  Kind kind = Kind::sequence;
  CharSet set = {};                   // of chars
  std::string text = {};              // of literal
  ByteRange range = {};               // of bytes: any one byte in it
  std::vector<ExprId> parts = {};     // of sequence, choice, repeat
  int64_t min = 0, max = 0;           // of repeat; max -1: no bound
  RuleId rule = 0;                    // of call
  std::vector<GraphEdge> edges = {};  // of graph: from node 0 to node 1, the only places where it begins and ends
  uint32_t nodes = 0;                 // of graph
};

struct GrammarRule {
  std::string name;       // for errors
  ExprId body = no_expr;  // no_expr: not defined yet
  bool shared = false;    // stays a rule of its own, so that what is known of it serves every place that calls it
  bool free = false;      // free text around triggered constraints
  bool marker = false;    // a text for which a special token may stand
};

class Grammar {
 public:
  explicit Grammar(Work& work) : work_(work) {}

  ExprId nothing() { return sequence({}); }  // the empty text
  ExprId never() { return choice({}); }      // no text at all
  ExprId chars(CharSet set);
  ExprId bytes(uint8_t first, uint8_t last);
  ExprId literal(std::string text);
  ExprId sequence(std::vector<ExprId> parts);
  ExprId choice(std::vector<ExprId> parts);
  ExprId repeat(ExprId part, int64_t min, int64_t max);  // max -1: no bound
  ExprId optional(ExprId part) { return repeat(part, 0, 1); }
  ExprId call(RuleId rule);
  ExprId graph(uint32_t nodes, std::vector<GraphEdge> edges);

  RuleId add_rule(std::string name, bool shared = false);
  void set_shared(RuleId rule) { rules_[rule].shared = true; }
  void set_free(RuleId rule) { rules_[rule].free = rules_[rule].shared = true; }
  void set_marker(RuleId rule) { rules_[rule].marker = rules_[rule].shared = true; }
  void define(RuleId rule, ExprId body) { rules_[rule].body = body; }

  // Puts the bodies of small rules that do not lead back to themselves where they are called, so that fewer texts cross
  // the border of a rule.
  void inline_small_rules(RuleId root);

  const Expr& expr(ExprId id) const { return exprs_[id]; }
  const std::vector<GrammarRule>& rules() const { return rules_; }
  Work& work() { return work_; }

 private:
  ExprId add(Expr expr);
  Work& work_;
  std::vector<Expr> exprs_;
  std::vector<GrammarRule> rules_;
};

}  // namespace easydel::text::constrain
