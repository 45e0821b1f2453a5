#include "easydel/text/constrain/constraint.h"

#include <algorithm>
#include <deque>
#include <map>

#include "easydel/base/error.h"
#include "easydel/text/constrain/gbnf.h"
#include "easydel/text/constrain/json_strings.h"
#include "easydel/text/constrain/pattern.h"
#include "easydel/text/constrain/schema.h"
#include "easydel/text/unicode.h"

namespace easydel::text::constrain {
namespace {

RuleId read_language(const Language& language, Grammar& grammar);

// The whole text matches. Anchors are resolved here: `begin` holds in what is reached from the start without a
// character, `end` in states from which the end is.
RuleId read_regex(std::string_view pattern, Grammar& grammar) {
  CharNfa nfa = parse_pattern(pattern, "regex", grammar.work());
  const auto states = uint32_t(nfa.states.size());
  std::vector<GraphEdge> edges;
  const auto node = [](uint32_t state) { return state + 2; };
  for (const uint32_t state : nfa.closure({nfa.start}, true, false)) edges.push_back({0, node(state), no_expr});
  std::vector<ExprId> labels;
  for (const CharSet& set : nfa.sets) labels.push_back(grammar.chars(set));
  // Backwards from the accepting state over edges that read nothing.
  std::vector<std::vector<uint32_t>> before(states);
  for (uint32_t from = 0; from < states; ++from)
    for (const CharNfa::Edge& edge : nfa.states[from]) {
      if (edge.kind == CharNfa::Kind::chars) edges.push_back({node(from), node(edge.to), labels[edge.set]});
      if (edge.kind == CharNfa::Kind::nothing) edges.push_back({node(from), node(edge.to), no_expr});
      if (edge.kind == CharNfa::Kind::nothing || edge.kind == CharNfa::Kind::end) before[edge.to].push_back(from);
    }
  std::vector<bool> ends(states);
  std::vector<uint32_t> todo = {nfa.accept};
  ends[nfa.accept] = true;
  for (size_t i = 0; i < todo.size(); ++i)
    for (const uint32_t from : before[todo[i]])
      if (!ends[from]) ends[from] = true, todo.push_back(from);
  for (const uint32_t state : todo) edges.push_back({node(state), 1, no_expr});
  // The empty text is before the first character and after the last one at once.
  const auto of_empty = nfa.closure({nfa.start}, true, true);
  if (std::ranges::binary_search(of_empty, nfa.accept)) edges.push_back({0, 1, no_expr});
  const RuleId rule = grammar.add_rule("the pattern");
  grammar.define(rule, grammar.graph(states + 2, std::move(edges)));
  return rule;
}

RuleId read_choices(const std::vector<std::string>& choices, Grammar& grammar) {
  if (choices.empty()) refuse("choice", "there are no choices", "give at least one");
  if (choices.size() > max_choices)
    refuse("choice", str("has ", choices.size(), " choices; at most ", max_choices, " are accepted"), "give fewer");
  std::vector<ExprId> parts;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (choices[i].size() > max_choice_bytes)
      refuse(str("choice ", i + 1),
             str("has ", choices[i].size(), " bytes; at most ", max_choice_bytes, " are accepted"), "shorten it");
    if (valid_prefix(choices[i]) != choices[i].size()) refuse(str("choice ", i + 1), "is not valid UTF-8");
    parts.push_back(grammar.literal(choices[i]));
  }
  const RuleId rule = grammar.add_rule("the choices");
  grammar.define(rule, grammar.choice(std::move(parts)));
  return rule;
}

// Free text: the automaton of Aho and Corasick (doi:10.1145/360825.360855) over the markers, from which a marker that
// is complete leads to what has to follow it.
class FreeText {
 public:
  FreeText(const std::vector<std::string>& markers, Grammar& grammar) : grammar_(grammar) {
    nodes_.emplace_back();
    for (size_t i = 0; i < markers.size(); ++i) {
      uint32_t at = 0;
      for (const char byte : markers[i]) {
        const auto [next, is_new] = nodes_[at].next.emplace(uint8_t(byte), uint32_t(nodes_.size()));
        at = next->second;
        if (is_new) nodes_.emplace_back(), grammar.work().add_states();
      }
      if (nodes_[at].trigger >= 0)
        refuse(str("trigger ", i + 1), "has the marker of trigger " + std::to_string(nodes_[at].trigger + 1),
               "join their languages into one");
      nodes_[at].trigger = int(i);
    }
    std::deque<uint32_t> todo = {0};
    while (!todo.empty()) {
      const uint32_t at = todo.front();
      todo.pop_front();
      for (const auto& [byte, next] : nodes_[at].next) {
        nodes_[next].back = at == 0 ? 0 : step(nodes_[at].back, byte);
        if (nodes_[next].trigger < 0) nodes_[next].trigger = nodes_[nodes_[next].back].trigger;
        todo.push_back(next);
      }
    }
  }

  // `after[i]`: what follows the marker of trigger i; where the text may go on freely, it says so itself.
  ExprId expr(const std::vector<ExprId>& after, const std::vector<bool>& free_again, bool may_end) {
    const auto place = [](uint32_t node) { return node == 0 ? 0 : node + 1; };
    std::vector<GraphEdge> edges;
    for (uint32_t from = 0; from < nodes_.size(); ++from) {
      if (nodes_[from].trigger >= 0) continue;  // never stayed in
      if (may_end) edges.push_back({place(from), 1, no_expr});
      for (unsigned first = 0; first < 256;) {
        const uint32_t to = step(from, uint8_t(first));
        unsigned last = first;
        while (last < 255 && step(from, uint8_t(last + 1)) == to) ++last;
        const ExprId bytes = grammar_.bytes(uint8_t(first), uint8_t(last));
        const int trigger = nodes_[to].trigger;
        if (trigger < 0)
          edges.push_back({place(from), place(to), bytes});
        else
          edges.push_back(
              {place(from), free_again[size_t(trigger)] ? 0u : 1u, grammar_.sequence({bytes, after[size_t(trigger)]})});
        first = last + 1;
        grammar_.work().spend();
      }
    }
    return grammar_.graph(uint32_t(nodes_.size()) + 1, std::move(edges));
  }

 private:
  struct Node {
    std::map<uint8_t, uint32_t> next;
    uint32_t back = 0;
    int trigger = -1;
  };
  uint32_t step(uint32_t at, uint8_t byte) const {
    for (;; at = nodes_[at].back) {
      const auto next = nodes_[at].next.find(byte);
      if (next != nodes_[at].next.end()) return next->second;
      if (at == 0) return 0;
    }
  }
  Grammar& grammar_;
  std::vector<Node> nodes_;
};

// Languages after markers of free text. `again[i]`: after the one of marker i the text is free again. `required`: the
// text may not end before the first marker.
RuleId read_free_text(const std::vector<std::string>& markers, const std::vector<Language>& after,
                      const std::vector<bool>& again, bool required, Grammar& grammar) {
  constexpr size_t max_triggers = 256;
  if (markers.empty()) refuse("triggers", "there are none", "give at least one, or no constraint");
  if (markers.size() > max_triggers)
    refuse("triggers", str("there are ", markers.size(), "; at most ", max_triggers, " are accepted"), "give fewer");
  check(markers.size() == after.size(), "constraint: ", markers.size(), " markers and ", after.size(), " languages");
  std::vector<RuleId> languages;
  for (size_t i = 0; i < markers.size(); ++i) {
    if (markers[i].empty()) refuse(str("trigger ", i + 1), "has no marker", "give the text that it follows");
    if (markers[i].size() > max_choice_bytes)
      refuse(str("trigger ", i + 1), str("has a marker of more than ", max_choice_bytes, " bytes"), "shorten it");
    languages.push_back(read_language(after[i], grammar));
    grammar.set_shared(languages[i]);  // its states are not free text
  }
  FreeText text(markers, grammar);
  std::vector<ExprId> calls, calls_and_text;
  const std::vector<bool> never(markers.size(), false);
  const RuleId free = grammar.add_rule("free text");
  grammar.set_free(free);
  for (size_t i = 0; i < markers.size(); ++i) {
    calls.push_back(grammar.call(languages[i]));
    calls_and_text.push_back(again[i] ? grammar.sequence({calls[i], grammar.call(free)}) : calls[i]);
  }
  if (!required || std::ranges::find(again, true) != again.end()) grammar.define(free, text.expr(calls, again, true));
  if (!required) return free;
  // Before the first marker the text may not end.
  const RuleId root = grammar.add_rule("text before the first marker");
  grammar.set_free(root);
  grammar.define(root, text.expr(calls_and_text, never, false));
  return root;
}

RuleId read_marker(const std::string& text, Grammar& grammar) {
  if (text.empty()) refuse("marker", "is empty", "give its text");
  return grammar.expr(marker_expr(text, grammar)).rule;
}

RuleId read_parts(const Language& language, Grammar& grammar) {
  std::vector<ExprId> parts;
  for (const Language& part : language.parts) parts.push_back(grammar.call(read_language(part, grammar)));
  const RuleId rule = grammar.add_rule("the parts");
  if (language.kind == Language::Kind::sequence) {
    grammar.define(rule, grammar.sequence(std::move(parts)));
  } else if (language.kind == Language::Kind::any_of) {
    grammar.define(rule, grammar.choice(std::move(parts)));
  } else {
    check(parts.size() == 1 || parts.size() == 2, "constraint: a list of ", parts.size(), " parts");
    const ExprId next = parts.size() == 2 ? grammar.sequence({parts[1], parts[0]}) : parts[0];
    const int64_t least = std::max<int64_t>(language.min, 1), most = language.max;
    const ExprId list = most == 0
                            ? grammar.nothing()
                            : grammar.sequence({parts[0], grammar.repeat(next, least - 1, most < 0 ? -1 : most - 1)});
    grammar.define(rule, language.min > 0 ? list : grammar.optional(list));
  }
  return rule;
}

RuleId read_language(const Language& language, Grammar& grammar) {
  switch (language.kind) {
    case Language::Kind::json_schema:
      return read_schema(language.source, {.escaped = CharSet::of(language.escaped)}, grammar);
    case Language::Kind::arguments:
      return read_arguments(language.source, language.notation, grammar);
    case Language::Kind::json_object:
      return any_object({.escaped = CharSet::of(language.escaped)}, grammar);
    case Language::Kind::regex:
      return read_regex(language.source, grammar);
    case Language::Kind::choice:
      return read_choices(language.choices, grammar);
    case Language::Kind::grammar:
      return read_gbnf(language.source, grammar);
    case Language::Kind::marker:
      return read_marker(language.source, grammar);
    case Language::Kind::free_text:
      return read_free_text(language.choices, language.parts,
                            std::vector<bool>(language.parts.size(), !language.ends_text), language.min > 0, grammar);
    case Language::Kind::sequence:
    case Language::Kind::any_of:
    case Language::Kind::repeat:
      return read_parts(language, grammar);
  }
  throw Bug("constraint: a kind of language that there is not");
}

std::string_view name_of(Language::Kind kind) {
  static constexpr std::string_view names[] = {"JSON schema", "arguments", "JSON object", "regex",
                                               "choice",      "grammar",   "marker",      "sequence",
                                               "choice",      "list",      "free text"};
  return names[size_t(kind)];
}

}  // namespace

std::shared_ptr<const Automaton> compile(const Language& language, const std::atomic<bool>* cancel) {
  Work work(cancel);
  Grammar grammar(work);
  const RuleId root = read_language(language, grammar);
  return std::make_shared<const Automaton>(compile(grammar, root, name_of(language.kind)));
}

std::shared_ptr<const Automaton> compile(const std::vector<Trigger>& triggers, bool required,
                                         const std::atomic<bool>* cancel) {
  std::vector<std::string> markers;
  std::vector<Language> languages;
  std::vector<bool> again;
  for (const Trigger& trigger : triggers) {
    markers.push_back(trigger.marker);
    languages.push_back(trigger.language);
    again.push_back(!trigger.ends_text);
  }
  Work work(cancel);
  Grammar grammar(work);
  const RuleId root = read_free_text(markers, languages, again, required, grammar);
  return std::make_shared<const Automaton>(compile(grammar, root, "triggers"));
}

std::string Language::key() const {
  std::string out = str(int(kind), ",", min, ",", max, ",", int(ends_text), ",", source.size(), ":", source);
  if (kind == Kind::arguments) out += notation.key();
  if (!escaped.empty()) out += ",escaped:" + escaped + ",";
  for (const std::string& choice : choices) out += str(",", choice.size(), ":", choice);
  for (const Language& part : parts) {
    const std::string key = part.key();
    out += str(";", key.size(), ":", key);
  }
  return out;
}

}  // namespace easydel::text::constrain
