#include "easydel/text/constrain/char_automaton.h"

#include <algorithm>
#include <map>

#include "easydel/text/unicode.h"

namespace easydel::text::constrain {
namespace {

constexpr uint32_t nowhere = UINT32_MAX;

// Numbers keys in the order in which they are first asked for.
template <class Key>
class Numbering {
 public:
  explicit Numbering(Work& work) : work_(work) {}
  uint32_t operator()(const Key& key) {
    const auto [at, is_new] = ids_.emplace(key, uint32_t(ids_.size()));
    if (is_new) todo_.push_back(at->first), work_.add_states();
    return at->second;
  }
  // The next key whose state is still to be made; its number is that of the call.
  bool next(Key& key) {
    if (done_ == todo_.size()) return false;
    key = todo_[done_++];
    return true;
  }

 private:
  Work& work_;
  std::map<Key, uint32_t> ids_;
  std::vector<Key> todo_;
  size_t done_ = 0;
};

void add_edge(CharDfa::State& state, uint32_t first, uint32_t last, uint32_t to) {
  if (!state.edges.empty() && state.edges.back().to == to && state.edges.back().last + 1 == first)
    state.edges.back().last = last;
  else
    state.edges.push_back({first, last, to});
}

}  // namespace

std::vector<uint32_t> CharNfa::closure(std::vector<uint32_t> from, bool begin, bool end) {
  seen_.resize(states.size());
  ++calls_;
  for (const uint32_t state : from) seen_[state] = calls_;
  for (size_t i = 0; i < from.size(); ++i)
    for (const Edge& edge : states[from[i]]) {
      const bool free =
          edge.kind == Kind::nothing || (edge.kind == Kind::begin && begin) || (edge.kind == Kind::end && end);
      if (!free || seen_[edge.to] == calls_) continue;
      seen_[edge.to] = calls_;
      from.push_back(edge.to);
    }
  std::ranges::sort(from);
  return from;
}

CharDfa CharDfa::any() {
  CharDfa out;
  State& state = out.states_.emplace_back();
  for (const CharRange& range : CharSet::any().ranges()) state.edges.push_back({range.first, range.last, 0});
  state.accepts = true;
  return out;
}

CharDfa CharDfa::words(const std::vector<std::string>& words, Work& work) {
  CharDfa out;
  std::vector<std::u32string> sorted;
  for (const std::string& word : words) sorted.push_back(to_utf32(word));
  std::ranges::sort(sorted);
  out.states_.emplace_back();
  std::vector<uint32_t> path = {0};  // the states along the word before
  std::u32string before;
  for (const std::u32string& word : sorted) {
    const auto common = size_t(std::ranges::mismatch(word, before).in1 - word.begin());
    path.resize(common + 1);
    for (size_t i = common; i < word.size(); ++i) {
      const auto next = uint32_t(out.states_.size());
      out.states_[path.back()].edges.push_back({word[i], word[i], next});
      out.states_.emplace_back();
      work.add_states();
      path.push_back(next);
    }
    out.states_[path.back()].accepts = true;
    before = word;
  }
  return out;
}

CharDfa CharDfa::length(int64_t min, std::optional<int64_t> max, Work& work) {
  CharDfa out;
  const int64_t last = max ? *max : min;
  for (int64_t i = 0; i <= last; ++i) {
    work.add_states();
    State& state = out.states_.emplace_back();
    state.accepts = i >= min;
    if (i == last && max) break;
    const auto next = uint32_t(i == last ? i : i + 1);
    for (const CharRange& range : CharSet::any().ranges()) state.edges.push_back({range.first, range.last, next});
  }
  return out;
}

CharDfa CharDfa::of(CharNfa nfa, bool anywhere, Work& work) {
  // The start with its anchors is a state of its own, because `begin` is open there alone. Where a part may match,
  // the pattern starts anew after every character, and a text that has matched stays so.
  struct Key {
    std::vector<uint32_t> states;
    bool first = false, matched = false;
    auto operator<=>(const Key&) const = default;
  };
  const std::vector<uint32_t> again = nfa.closure({nfa.start}, false, false);
  const auto has_accept = [&](const std::vector<uint32_t>& states) {
    return std::ranges::binary_search(states, nfa.accept);
  };
  const auto make = [&](std::vector<uint32_t> states, bool first) {
    Key key{nfa.closure(std::move(states), first, false), first, false};
    if (anywhere && has_accept(key.states)) key = {{}, false, true};
    return key;
  };
  CharDfa out;
  Numbering<Key> number(work);
  number(make({nfa.start}, true));
  for (Key key; number.next(key);) {
    State state;
    if (key.matched) {
      state.accepts = true;
      const auto self = uint32_t(out.states_.size());
      for (const CharRange& range : CharSet::any().ranges()) state.edges.push_back({range.first, range.last, self});
      out.states_.push_back(std::move(state));
      continue;
    }
    state.accepts = has_accept(nfa.closure(key.states, key.first, true));
    std::vector<Arrow> arrows;
    for (const uint32_t from : key.states)
      for (const CharNfa::Edge& edge : nfa.states[from])
        if (edge.kind == CharNfa::Kind::chars)
          for (const CharRange& range : nfa.sets[edge.set].ranges())
            arrows.push_back({range.first, range.last, edge.to});
    if (anywhere)
      for (const CharRange& range : CharSet::any().ranges()) arrows.push_back({range.first, range.last, nfa.start});
    work.spend(arrows.size());
    sweep(arrows, [&](uint32_t first, uint32_t last, const std::vector<uint32_t>& targets) {
      work.spend(targets.size());
      add_edge(state, first, last, number(make(targets, false)));
    });
    out.states_.push_back(std::move(state));
  }
  out.trim();
  return out;
}

CharDfa CharDfa::join(const CharDfa& other, Join how, Work& work) const {
  using Key = std::pair<uint32_t, uint32_t>;
  CharDfa out;
  Numbering<Key> number(work);
  number({0, 0});
  for (Key key; number.next(key);) {
    static const State nothing;
    const State &a = key.first == nowhere ? nothing : states_[key.first],
                &b = key.second == nowhere ? nothing : other.states_[key.second];
    State state;
    state.accepts = how == Join::both     ? a.accepts && b.accepts
                    : how == Join::either ? a.accepts || b.accepts
                                          : a.accepts && !b.accepts;
    size_t i = 0, j = 0;
    for (uint32_t at = 0; i < a.edges.size() || j < b.edges.size();) {
      // The next piece on which both sides lead to one state each.
      const Arrow* const x = i < a.edges.size() ? &a.edges[i] : nullptr;
      const Arrow* const y = j < b.edges.size() ? &b.edges[j] : nullptr;
      const uint32_t first = std::max(at, std::min(x ? x->first : UINT32_MAX, y ? y->first : UINT32_MAX));
      const bool in_x = x && x->first <= first, in_y = y && y->first <= first;
      uint32_t last = UINT32_MAX;
      if (x) last = std::min(last, in_x ? x->last : x->first - 1);
      if (y) last = std::min(last, in_y ? y->last : y->first - 1);
      const bool wanted = how == Join::both ? in_x && in_y : how == Join::either ? in_x || in_y : in_x;
      if (wanted) add_edge(state, first, last, number({in_x ? x->to : nowhere, in_y ? y->to : nowhere}));
      at = last + 1;
      i += in_x && x->last == last;
      j += in_y && y->last == last;
      work.spend();
    }
    out.states_.push_back(std::move(state));
  }
  out.trim();
  return out;
}

void CharDfa::trim() {
  std::vector<std::vector<uint32_t>> before(states_.size());
  std::vector<uint32_t> alive;
  std::vector<bool> lives(states_.size());
  for (uint32_t i = 0; i < states_.size(); ++i) {
    for (const Arrow& edge : states_[i].edges) before[edge.to].push_back(i);
    if (states_[i].accepts) alive.push_back(i), lives[i] = true;
  }
  for (size_t i = 0; i < alive.size(); ++i)
    for (const uint32_t from : before[alive[i]])
      if (!lives[from]) lives[from] = true, alive.push_back(from);
  lives[0] = true;
  std::vector<uint32_t> place(states_.size(), nowhere);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < states_.size(); ++i)
    if (lives[i]) place[i] = kept++;
  std::vector<State> states(kept);
  for (uint32_t i = 0; i < states_.size(); ++i) {
    if (!lives[i]) continue;
    State& state = states[place[i]];
    state.accepts = states_[i].accepts;
    for (const Arrow& edge : states_[i].edges)
      if (lives[edge.to]) state.edges.push_back({edge.first, edge.last, place[edge.to]});
  }
  states_ = std::move(states);
  if (empty()) states_.assign(1, {});
}

bool CharDfa::empty() const {
  return std::ranges::none_of(states_, [](const State& state) { return state.accepts; });
}

bool CharDfa::has(std::string_view text) const {
  uint32_t at = 0;
  for (size_t i = 0; i < text.size();) {
    const uint32_t c = next_character(text, i);
    const auto& edges = states_[at].edges;
    const auto after = std::ranges::upper_bound(edges, c, {}, [](const Arrow& edge) { return edge.first; });
    if (after == edges.begin() || std::prev(after)->last < c) return false;
    at = std::prev(after)->to;
  }
  return states_[at].accepts;
}

}  // namespace easydel::text::constrain
