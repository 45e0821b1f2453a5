#include "easydel/data/learn_rules.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "easydel/base/error.h"
#include "easydel/text/assistant_spans.h"

namespace easydel::data {

std::optional<double> mark_of(const Value& marked) {
  std::optional<double> out;
  if (!marked.is_map()) return out;
  for (const char* name : {"weight", "loss_weight"}) {
    const Value* const value = marked.find(name);
    if (!value || value->is_null()) continue;
    out = value->as_double();
    if (!out || !std::isfinite(*out) || *out < 0)
      refuse("messages", str("'", name, "' is ", to_yaml_flow(*value), ", which is not a weight"),
             "give a number from 0; 0 leaves the message out of the loss");
  }
  const Value* const train = marked.find("train");
  if (!train || train->is_null()) return out;
  const auto yes = train->as_bool();
  if (!yes)
    refuse("messages", "'train' is " + to_yaml_flow(*train) + ", which is neither true nor false",
           "give true or false");
  return *yes ? out.value_or(1) : 0;
}

const Value* parts_of(const Value& message) {
  const Value* const content = message.is_map() ? message.find("content") : nullptr;
  return content && content->is_list() ? content : nullptr;
}

const std::string* text_of_part(const Value& part) {
  const Value* const text = part.is_map() ? part.find("text") : nullptr;
  return text && text->is_text() ? &text->scalar : nullptr;
}

namespace {

bool has_marked_parts(const Value& message) {
  const Value* const parts = parts_of(message);
  return parts && std::ranges::any_of(parts->items, [](const Value& part) { return mark_of(part).has_value(); });
}

bool is_learned_role(const Value& message, const LearnRules& rules) {
  if (rules.roles.empty()) return text::is_assistant(message);
  const Value* const role = message.find("role");
  return role && std::ranges::find(rules.roles, role->scalar) != rules.roles.end();
}

class Masks {
 public:
  Masks(const Value& messages, const text::RenderedTurns& turns, const LearnRules& rules, const RenderText& render)
      : messages_(messages), turns_(turns), rules_(rules), render_(render) {
    out_.learn.assign(turns.ids.size(), 0);
  }

  LearnedTokens masks(bool only_turns) {
    if (!only_turns) std::ranges::fill(out_.learn, uint8_t{1});
    const std::vector<size_t> learned = learned_turns();
    std::vector<size_t> with_parts;
    for (size_t i = 0; i < messages_.items.size(); ++i) {
      const Value& message = messages_.items[i];
      const bool is_learned = std::ranges::find(learned, i) != learned.end();
      const auto mark = mark_of(message);
      if (only_turns && is_learned) learn_turn(i);
      // A mark that says yes is about a turn that could be learned; one that says no is about all of the message.
      if (mark && (is_learned || !only_turns)) weigh(only_turns ? own(i) : turn(i), *mark);
      if (has_marked_parts(message) && (is_learned || !only_turns)) with_parts.push_back(i);
    }
    for (const PartPlace& place : part_places(messages_, turns_, with_parts, render_)) weigh_part(place);
    if (only_turns) choose_ends(learned), note_masked(learned);
    for (size_t t = 0; t < out_.weights.size(); ++t)
      if (out_.weights[t] == 0) out_.learn[t] = 0;
    if (std::ranges::all_of(out_.weights, [](float weight) { return weight == 0 || weight == 1; }))
      out_.weights.clear();
    return std::move(out_);
  }

 private:
  using Tokens = std::vector<size_t>;

  std::vector<size_t> learned_turns() const {
    std::vector<size_t> out;
    for (size_t i = 0; i < messages_.items.size(); ++i)
      if (is_learned_role(messages_.items[i], rules_)) out.push_back(i);
    if (rules_.turns == TrainOnTurns::last && out.size() > 1) out.erase(out.begin(), out.end() - 1);
    return out;
  }

  Tokens where(const std::vector<int32_t>& owners, size_t message) const {
    Tokens out;
    for (size_t t = 0; t < owners.size(); ++t)
      if (owners[t] == int32_t(message)) out.push_back(t);
    return out;
  }
  Tokens own(size_t message) const { return where(turns_.authors, message); }
  Tokens turn(size_t message) const { return where(turns_.messages, message); }

  void learn_turn(size_t message) {
    for (const size_t t : own(message)) out_.learn[t] = 1;
  }

  void weigh(const Tokens& tokens, double weight) {
    if (out_.weights.empty()) out_.weights.assign(turns_.ids.size(), 1);
    for (const size_t t : tokens) out_.weights[t] = float(weight);
  }

  void weigh_part(const PartPlace& place) {
    Tokens tokens;
    for (size_t t = 0; t < turns_.offsets.size(); ++t)
      if (turns_.offsets[t].first < turns_.offsets[t].second && turns_.offsets[t].first >= place.begin &&
          turns_.offsets[t].first < place.end)
        tokens.push_back(t);
    weigh(tokens, *mark_of(parts_of(messages_.items[place.message])->items[place.part]));
  }

  // Before weights are applied, which are the user's own words.
  void note_masked(const std::vector<size_t>& learned) {
    for (const size_t i : learned)
      out_.masks_turn |= std::ranges::none_of(own(i), [&](size_t t) { return out_.learn[t] != 0; });
  }

  bool is_blank(size_t token) const {
    const auto [first, last] = turns_.offsets[token];
    return turns_.text.substr(size_t(first), size_t(last - first)).find_first_not_of(U" \t\r\n") ==
           std::u32string::npos;
  }

  // The special token at the end of a turn's own text, before blanks; nothing: it ends without one.
  std::optional<size_t> end_of(const Tokens& tokens) const {
    for (size_t i = tokens.size(); i > 0; --i) {
      if (turns_.special[tokens[i - 1]]) return tokens[i - 1];
      if (!is_blank(tokens[i - 1])) break;
    }
    return std::nullopt;
  }

  void choose_ends(const std::vector<size_t>& learned) {
    Tokens last;  // from the end token of the last learned turn on
    std::vector<int32_t> stops;
    for (const size_t i : learned) {
      const Tokens tokens = own(i);
      const auto end = end_of(tokens);
      if (!end) continue;
      stops.push_back(turns_.ids[*end]);
      if (rules_.eos != TrainOnEos::none && rules_.eos != TrainOnEos::last) continue;
      last.clear();
      for (const size_t t : tokens)
        if (t >= *end) out_.learn[t] = 0, last.push_back(t);
    }
    if (rules_.eos == TrainOnEos::last)
      for (const size_t t : last) out_.learn[t] = 1;
    if (rules_.eos != TrainOnEos::all) return;
    for (size_t t = 0; t < turns_.ids.size(); ++t)
      if (turns_.messages[t] >= 0 && turns_.special[t] && std::ranges::find(stops, turns_.ids[t]) != stops.end())
        out_.learn[t] = 1;
  }

  const Value& messages_;
  const text::RenderedTurns& turns_;
  const LearnRules& rules_;
  const RenderText& render_;
  LearnedTokens out_;
};

}  // namespace

bool has_marks(const Value& messages) {
  return std::ranges::any_of(
      messages.items, [](const Value& message) { return mark_of(message).has_value() || has_marked_parts(message); });
}

bool has_effect(const Value& messages) {
  return std::ranges::any_of(messages.items, [](const Value& message) {
    if (mark_of(message).value_or(1) != 1) return true;
    const Value* const parts = parts_of(message);
    return parts && std::ranges::any_of(parts->items, [](const Value& part) { return mark_of(part).value_or(1) != 1; });
  });
}

Value without_part_marks(const Value& messages) {
  Value out = messages;
  for (Value& message : out.items) {
    if (!has_marked_parts(message)) continue;
    std::string whole;
    bool all_text = true;
    for (const Value& part : parts_of(message)->items) {
      const std::string* const text = text_of_part(part);
      all_text &= text != nullptr;
      if (text) whole += *text;
    }
    if (all_text) message.set("content", Value::text(whole));
  }
  return out;
}

LearnedTokens learned_tokens(const Value& messages, const text::RenderedTurns& turns, const LearnRules& rules,
                             bool only_turns, const RenderText& render) {
  return Masks(messages, turns, rules, render).masks(only_turns);
}

}  // namespace easydel::data
