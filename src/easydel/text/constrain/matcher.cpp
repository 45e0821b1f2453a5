// Masks: what each state allows by itself is found once and kept; only tokens that go on after the state's rule has
// ended are looked at for every position.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>

#include "easydel/base/error.h"
#include "easydel/text/constrain/constraint.h"

namespace easydel::text::constrain {
namespace {

void set_bit(std::span<MaskWord> mask, TokenId id) { mask[size_t(id) / 64] |= MaskWord{1} << (size_t(id) % 64); }

void set_bits(std::span<MaskWord> mask, std::pair<const TokenId*, const TokenId*> ids) {
  for (const TokenId* id = ids.first; id != ids.second; ++id) set_bit(mask, *id);
}

}  // namespace

// The tokens that can be written from the state without anything from outside its rule: as bits where they are many.
// Of the others that begin like such tokens, `rest` has what is left of them after the rule has ended.
struct Constraint::Known {
  std::vector<MaskWord> bits;
  std::vector<TokenId> ids;
  TokenTrie rest;

  size_t memory_bytes() const {
    return sizeof(Known) + bits.capacity() * sizeof(MaskWord) + ids.capacity() * sizeof(TokenId) + rest.memory_bytes();
  }
};

struct Constraint::Store {
  explicit Store(size_t limit) : max_bytes(limit) {}

  const size_t max_bytes;
  // Of all that follows. Written with the mutex; read without it, because it may be held while states are compared.
  std::atomic<size_t> bytes = 0;
  std::mutex mutex;
  std::unordered_map<StateId, std::shared_ptr<const Known>> known[3];  // by place
  // States that no token can tell apart have one representative. Made when a state is first expensive.
  std::vector<StateId> representative;

  StateId represented(StateId state) const { return representative.empty() ? state : representative[state]; }
  void set_representatives(std::vector<StateId> states) {
    if (!representative.empty()) return;
    representative = std::move(states);
    bytes += representative.capacity() * sizeof(StateId);
  }
  // Null: nothing is known of the state.
  std::shared_ptr<const Known> find(size_t place, StateId state) {
    const auto own = known[place].find(state);
    if (own != known[place].end()) return own->second;
    const auto other = known[place].find(represented(state));
    if (other == known[place].end()) return nullptr;
    return keep(place, state, other->second, 0);
  }
  // What is kept in the end: if two threads have looked at a state, what the first one found.
  std::shared_ptr<const Known> keep(size_t place, StateId state, std::shared_ptr<const Known> found, size_t size) {
    constexpr size_t entry_bytes = 64;  // of the table, with what the allocator adds
    if (bytes + size + entry_bytes > max_bytes) {
      for (auto& table : known) table = {};
      bytes = representative.capacity() * sizeof(StateId);
    }
    const auto [at, is_new] = known[place].try_emplace(state, std::move(found));
    if (is_new) bytes += size + entry_bytes;
    return at->second;
  }
};

namespace {

// Two states are alike if the same byte strings, up to the longest token, lead on from them and end their rules.
// Moore's refinement, one round a byte.
std::vector<StateId> representatives(const Automaton& automaton, size_t rounds) {
  const size_t count = automaton.state_count();
  const auto mix = [](uint64_t h, uint64_t value) {
    h = (h ^ value) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
  };
  std::vector<uint32_t> kind(count), next(count);
  std::unordered_map<uint64_t, uint32_t> kinds;
  const auto number = [&](uint64_t key) { return kinds.emplace(key, uint32_t(kinds.size())).first->second; };
  std::hash<ByteSet> hash_bytes;
  std::vector<uint64_t> follow(automaton.rule_count());
  for (RuleId rule = 0; rule < follow.size(); ++rule) follow[rule] = hash_bytes(automaton.rule(rule).follow);
  for (StateId s = 0; s < count; ++s) {
    const Automaton::State& state = automaton.state(s);
    kind[s] = number(mix(mix(follow[state.rule], state.accepts), state.ends));
  }
  for (size_t round = 0, before = 0; round < rounds && before != kinds.size(); ++round) {
    before = kinds.size();
    kinds.clear();
    for (StateId s = 0; s < count; ++s) {
      uint64_t h = mix(1, kind[s]);
      for (const Automaton::Edge& edge : automaton.edges(s))
        h = mix(h, uint64_t{kind[edge.to]} << 16 | edge.first << 8 | edge.last);
      for (const Automaton::Call& call : automaton.calls(s)) h = mix(h, uint64_t{call.rule} << 32 | kind[call.to]);
      next[s] = number(h);
    }
    kind.swap(next);
  }
  std::vector<StateId> first(kinds.size(), UINT32_MAX), out(count);
  for (StateId s = 0; s < count; ++s) {
    if (first[kind[s]] == UINT32_MAX) first[kind[s]] = s;
    out[s] = first[kind[s]];
  }
  return out;
}

constexpr size_t many_nodes = 4096;  // of a walk: from here on it pays to know which states are alike
constexpr size_t few_tokens = 512;   // kept as a list

}  // namespace

Constraint::Constraint(std::shared_ptr<const Automaton> automaton, std::shared_ptr<const TokenBytes> tokens,
                       size_t max_learned)
    : automaton_(std::move(automaton)), tokens_(std::move(tokens)), store_(std::make_unique<Store>(max_learned)) {}
Constraint::~Constraint() = default;

size_t Constraint::known_states() const {
  const std::lock_guard lock(store_->mutex);
  return store_->known[0].size() + store_->known[1].size() + store_->known[2].size();
}

size_t Constraint::memory_bytes() const {
  return sizeof(Constraint) + sizeof(Store) + automaton_->memory_bytes() + store_->bytes;
}

bool Constraint::has_learned_half() const { return store_->bytes > store_->max_bytes / 2; }

Matcher::Matcher(std::shared_ptr<const Constraint> constraint, TextPlace place)
    : constraint_(std::move(constraint)),
      stacks_(constraint_->automaton()),
      position_(stacks_.begin()),
      place_(constraint_->tokens().canonical(place)) {}

void Matcher::learn_ahead(const std::atomic<bool>& stop, double seconds) {
  const Automaton& automaton = constraint_->automaton();
  const double end = Work::thread_seconds() + seconds;
  // All states together are expensive, so those that are alike are looked at once.
  auto alike = representatives(automaton, constraint_->tokens().trie(place_).depth());
  {
    Constraint::Store& store = *constraint_->store_;
    const std::lock_guard lock(store.mutex);
    store.set_representatives(std::move(alike));
  }
  std::vector<bool> seen(automaton.state_count());
  std::vector<StateId> queue;
  const auto add = [&](StateId state) {
    if (!seen[state]) seen[state] = true, queue.push_back(state);
  };
  add(automaton.rule(automaton.root()).start);
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const Automaton::Edge& edge : automaton.edges(queue[i])) add(edge.to);
    for (const Automaton::Call& call : automaton.calls(queue[i])) add(automaton.rule(call.rule).start), add(call.to);
  }
  // Most states take microseconds each: those that few bytes lead on from come first.
  const auto is_cheap = [&](StateId state) {
    constexpr size_t few_bytes = 16;
    size_t bytes = 0;
    for (const Automaton::Edge& edge : automaton.edges(state)) bytes += size_t(edge.last) - edge.first + 1;
    for (const Automaton::Call& call : automaton.calls(state)) bytes += automaton.rule(call.rule).first.count();
    return bytes <= few_bytes;
  };
  // std::ranges::stable_partition of libstdc++ 12 does not compile with clang 14.
  std::stable_partition(queue.begin(), queue.end(), is_cheap);
  for (const StateId state : queue) {
    if (stop || Work::thread_seconds() > end || constraint_->has_learned_half()) return;
    if (!automaton.state(state).ends) known(state);
  }
}

bool Matcher::is_free() const {
  return std::ranges::any_of(position_.configs,
                             [&](const Config& config) { return constraint_->automaton().is_free(config.state); });
}

void Matcher::add_ends(Mask mask) {
  const TokenBytes& tokens = constraint_->tokens();
  if (is_free())
    for (const auto& [text, id] : tokens.special()) set_bit(mask, id);
  if (constraint_->automaton().has_markers()) {
    const size_t mark = stacks_.mark();
    for (const auto& [text, id] : tokens.special()) {
      if (!after_marker(text).dead()) set_bit(mask, id);
      stacks_.release(mark);
    }
  }
  // Whatever their texts are, they only end.
  for (const TokenId id : tokens.ends()) {
    MaskWord& word = mask[size_t(id) / 64];
    const MaskWord bit = MaskWord{1} << (size_t(id) % 64);
    word = position_.may_end ? word | bit : word & ~bit;
  }
}

Position Matcher::after_marker(std::string_view text) {
  Position at = position_, to;
  for (const char byte : text) {
    stacks_.step(at, uint8_t(byte), to, true);
    std::swap(at, to);
    if (at.dead()) return at;
  }
  // The whole marker, not its beginning.
  std::erase_if(at.configs, [&](const Config& config) { return constraint_->automaton().is_marker(config.state); });
  return at;
}

template <class OnNode>
void Matcher::visit(const TokenTrie& trie, Position from, Work& work, const OnNode& on_node) {
  const auto& nodes = trie.nodes();
  if (levels_.size() < trie.depth() + 1) levels_.resize(trie.depth() + 1);
  levels_[0] = std::move(from);
  const size_t mark = stacks_.mark();
  for (size_t i = 0; i < nodes.size();) {
    const TokenTrie::Node& node = nodes[i];
    Position& to = levels_[node.depth];
    stacks_.step(levels_[node.depth - 1], node.byte, to);
    work.spend(1 + to.configs.size());
    if (!to.dead()) on_node(i, to);
    i += to.configs.empty() ? node.size : 1;
  }
  stacks_.release(mark);
}

void Matcher::walk(const TokenTrie& trie, const Position& from, Mask mask) {
  if (from.configs.empty()) return;
  Work work;
  visit(trie, from, work, [&](size_t node, const Position&) { set_bits(mask, trie.tokens(node)); });
}

// Which tokens the state allows, and what is left of those that leave its rule.
std::shared_ptr<const Constraint::Known> Matcher::learn(StateId state) {
  const TokenTrie& trie = constraint_->tokens().trie(place_);
  const auto& nodes = trie.nodes();
  const Automaton& automaton = constraint_->automaton();
  const ByteSet& follow = automaton.rule(automaton.state(state).rule).follow;
  const auto known = std::make_shared<Constraint::Known>();
  std::vector<TokenId> allowed;
  std::vector<std::pair<std::string_view, TokenId>> rest;
  Work work;
  visit(trie, {{{state, unknown_stack}}, false, false}, work, [&](size_t i, const Position& to) {
    const auto here = trie.tokens(i);
    allowed.insert(allowed.end(), here.first, here.second);
    if (!to.escapes) return;
    const TokenTrie::Node& node = nodes[i];
    for (size_t child = i + 1; child < i + node.size; child += nodes[child].size) {
      if (!follow[nodes[child].byte]) continue;
      const auto add = [&](std::pair<const TokenId*, const TokenId*> ids) {
        for (const TokenId* id = ids.first; id != ids.second; ++id) {
          if (constraint_->tokens().is_end(*id)) continue;
          TextPlace place = place_;
          rest.emplace_back(constraint_->tokens().bytes(*id, place).substr(node.depth), *id);
        }
      };
      add(trie.tokens(child)), add(trie.tokens_below(child));
      work.spend(nodes[child].size);
    }
  });
  if (allowed.size() <= few_tokens) {
    known->ids = std::move(allowed);
  } else {
    known->bits.resize(mask_words(constraint_->tokens().size()));
    for (const TokenId id : allowed) set_bit(known->bits, id);
  }
  known->rest = TokenTrie(std::move(rest));
  return known;
}

std::shared_ptr<const Constraint::Known> Matcher::known(StateId state) {
  Constraint::Store& store = *constraint_->store_;
  const auto place = size_t(place_);
  {
    const std::lock_guard lock(store.mutex);
    if (auto found = store.find(place, state)) return found;
  }
  auto found = learn(state);
  const size_t bytes = found->memory_bytes();
  const bool many = !found->bits.empty() || found->rest.size() > many_nodes;
  const std::lock_guard lock(store.mutex);
  if (!many) return store.keep(place, state, std::move(found), bytes);
  if (store.representative.empty())
    store.set_representatives(representatives(constraint_->automaton(), constraint_->tokens().trie(place_).depth()));
  store.keep(place, store.represented(state), std::move(found), bytes);
  return store.find(place, state);
}

void Matcher::fill(Mask mask) {
  check(mask.size() == mask_words(constraint_->tokens().size()), "constraint: a mask of ", mask.size(), " words");
  std::ranges::fill(mask, 0);
  for (size_t i = 0; i < position_.configs.size(); ++i) {
    const Config config = position_.configs[i];
    const auto known = this->known(config.state);
    for (size_t word = 0; word < known->bits.size(); ++word) mask[word] |= known->bits[word];
    for (const TokenId id : known->ids) set_bit(mask, id);
    if (known->rest.size() > 0 && config.frame != bottom_stack) walk(known->rest, stacks_.after(config.frame), mask);
  }
  add_ends(mask);
}

void Matcher::fill_plainly(Mask mask) {
  std::ranges::fill(mask, 0);
  walk(constraint_->tokens().trie(place_), position_, mask);
  add_ends(mask);
}

bool Matcher::accept_bytes(std::string_view bytes, TextPlace next) {
  Position at = position_, to;
  const size_t mark = stacks_.mark();
  for (const char byte : bytes) {
    stacks_.step(at, uint8_t(byte), to);
    if (to.dead()) {
      stacks_.release(mark);
      return false;
    }
    std::swap(at, to);
  }
  position_ = std::move(at);
  place_ = constraint_->tokens().canonical(next);
  stacks_.compact(position_);
  return true;
}

bool Matcher::accept(TokenId token) {
  const TokenBytes& tokens = constraint_->tokens();
  if (ended_) return false;
  if (std::ranges::binary_search(tokens.ends(), token)) {
    if (!position_.may_end) return false;
    return ended_ = true;
  }
  TextPlace place = place_;
  const std::string_view bytes = tokens.bytes(token, place);
  if (!bytes.empty()) return accept_bytes(bytes, place);
  const auto special = std::ranges::find(tokens.special(), token, [](const auto& each) { return each.second; });
  return special != tokens.special().end() && accept_special(special->first);
}

// A special token may stand for a marker that may come now. In free text any other one leaves the text as it is, and a
// marker that has begun before it does not go on after it.
bool Matcher::accept_special(std::string_view text) {
  if (constraint_->automaton().has_markers()) {
    if (Position after = after_marker(text); !after.dead()) {
      position_ = std::move(after);
      stacks_.compact(position_);
      return true;
    }
  }
  std::vector<Config> anew;
  const Automaton& automaton = constraint_->automaton();
  for (const Config& config : position_.configs)
    if (automaton.is_free(config.state))
      anew.push_back({automaton.rule(automaton.state(config.state).rule).start, config.frame});
  if (anew.empty()) return false;
  position_ = stacks_.at(anew);
  const Position between = position_;
  if (!accept_bytes(text, place_) || is_free()) position_ = between;
  return true;
}

}  // namespace easydel::text::constrain
