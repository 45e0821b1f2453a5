#include "easydel/text/constrain/stacks.h"

#include <algorithm>
#include <functional>

namespace easydel::text::constrain {
namespace {

// In a frame: not a state of a caller, but all that follows another frame. It stands for callers that had nothing left
// to write after the call, so that recursion at the end of a rule needs no deeper stack.
constexpr StateId through_marker = UINT32_MAX;

uint64_t hash_configs(std::span<const Config> configs) {
  uint64_t h = configs.size();
  for (const Config& config : configs) {
    h = (h ^ (uint64_t{config.state} << 32 | config.frame)) * 0x9E3779B97F4A7C15u;
    h ^= h >> 31;
  }
  return h;
}

void tidy_configs(std::vector<Config>& configs) {
  if (configs.size() < 2) return;
  std::ranges::sort(configs);
  configs.erase(std::unique(configs.begin(), configs.end()), configs.end());
}

}  // namespace

Stacks::Stacks(const Automaton& automaton)
    : automaton_(automaton),
      frames_(2),
      slots_(64),
      pending_(automaton.rule_count()),
      rule_of_order_(automaton.rule_count()) {
  for (RuleId rule = 0; rule < automaton.rule_count(); ++rule) rule_of_order_[automaton.rule(rule).order] = rule;
}

Position Stacks::begin() const {
  return {{{automaton_.rule(automaton_.root()).start, bottom_stack}}, automaton_.takes_empty(), false};
}

void Stacks::place(FrameId frame) {
  size_t at = frames_[frame].hash & (slots_.size() - 1);
  while (slots_[at]) at = (at + 1) & (slots_.size() - 1);
  slots_[at] = frame;
}

FrameId Stacks::intern(const std::vector<Config>& configs) {
  const uint64_t hash = hash_configs(configs);
  for (size_t at = hash & (slots_.size() - 1); slots_[at]; at = (at + 1) & (slots_.size() - 1))
    if (frames_[slots_[at]].hash == hash && std::ranges::equal(configs_of(slots_[at]), configs)) return slots_[at];
  const auto frame = static_cast<FrameId>(frames_.size());
  frames_.push_back({uint32_t(pool_.size()), hash});
  pool_.insert(pool_.end(), configs.begin(), configs.end());
  if (frames_.size() * 2 > slots_.size()) {
    slots_.assign(slots_.size() * 2, 0);
    for (FrameId each = 2; each < frames_.size(); ++each) place(each);
  } else {
    place(frame);
  }
  return frame;
}

void Stacks::release(size_t mark) {
  while (frames_.size() > mark) {
    // The last one that was placed: nothing that is still there was put further on because of it.
    const auto frame = static_cast<FrameId>(frames_.size() - 1);
    size_t at = frames_[frame].hash & (slots_.size() - 1);
    while (slots_[at] != frame) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = 0;
    pool_.resize(frames_[frame].begin);
    frames_.pop_back();
  }
}

// Callers that end with the call are replaced by their own frames.
FrameId Stacks::frame_of(std::vector<Config>& callers) {
  bool through = false;
  for (Config& caller : callers)
    if (automaton_.state(caller.state).ends) caller.state = through_marker, through = true;
  tidy_configs(callers);
  if (through && callers.size() == 1) return callers[0].frame;
  return intern(callers);
}

void Stacks::arrive(Config at, Position& to) {
  const Automaton::State& state = automaton_.state(at.state);
  if (!state.ends) to.configs.push_back(at);
  if (state.accepts) ended_.push_back(at.frame);
}

void Stacks::end_rules(Position& to) {
  while (!ended_.empty()) {
    const FrameId frame = ended_.back();
    ended_.pop_back();
    if (frame == bottom_stack) {
      to.may_end = true;
      continue;
    }
    if (frame == unknown_stack) {
      to.escapes = true;
      continue;
    }
    if (ended_at_.size() <= frame) ended_at_.resize(frames_.size());
    if (ended_at_[frame] == steps_) continue;
    ended_at_[frame] = steps_;
    for (const Config& caller : configs_of(frame))
      caller.state == through_marker ? ended_.push_back(caller.frame) : arrive(caller, to);
  }
}

void Stacks::advance(Config from, uint8_t byte, Position& to, bool markers_only) {
  const auto edges = automaton_.edges(from.state);
  if (markers_only && !automaton_.is_marker(from.state)) {
    // Only what is called here may be a marker.
  } else if (automaton_.state(from.state).exact && edges.size() > 6) {
    const auto after = std::ranges::upper_bound(edges, byte, {}, &Automaton::Edge::first);
    if (after != edges.begin() && std::prev(after)->last >= byte) arrive({std::prev(after)->to, from.frame}, to);
  } else {
    for (const Automaton::Edge& edge : edges)
      if (edge.first <= byte && byte <= edge.last) arrive({edge.to, from.frame}, to);
  }
  for (const Automaton::Call& call : automaton_.calls(from.state)) {
    const Automaton::Rule& rule = automaton_.rule(call.rule);
    if (!rule.first[byte]) continue;
    if (pending_[call.rule].empty()) {
      pending_orders_.push_back(rule.order);
      std::ranges::push_heap(pending_orders_, std::greater());
    }
    pending_[call.rule].push_back({call.to, from.frame});
  }
}

void Stacks::step(const Position& from, uint8_t byte, Position& to, bool markers_only) {
  to.configs.clear();
  to.may_end = to.escapes = false;
  if (++steps_ == 0) std::ranges::fill(ended_at_, 0), steps_ = 1;
  for (const Config& config : from.configs) advance(config, byte, to, markers_only);
  // Rules that begin with this byte, callers before callees, so that all callers of a rule are known when it begins.
  while (!pending_orders_.empty()) {
    std::ranges::pop_heap(pending_orders_, std::greater());
    const RuleId rule = rule_of_order_[pending_orders_.back()];
    pending_orders_.pop_back();
    const FrameId frame = frame_of(pending_[rule]);
    pending_[rule].clear();
    advance({automaton_.rule(rule).start, frame}, byte, to, markers_only);
  }
  end_rules(to);
  tidy_configs(to.configs);
}

Position Stacks::at(const std::vector<Config>& configs) {
  Position out;
  if (++steps_ == 0) std::ranges::fill(ended_at_, 0), steps_ = 1;
  for (const Config& config : configs) arrive(config, out);
  end_rules(out);
  tidy_configs(out.configs);
  return out;
}

Position Stacks::after(FrameId frame) {
  Position out;
  if (++steps_ == 0) std::ranges::fill(ended_at_, 0), steps_ = 1;
  ended_.push_back(frame);
  end_rules(out);
  tidy_configs(out.configs);
  return out;
}

bool Stacks::compact(Position& position) {
  constexpr size_t worthwhile = 1 << 14;
  if (frames_.size() < std::max(worthwhile, 2 * compacted_)) return false;
  // Frames name only older ones, so one sweep downwards finds what is needed and one upwards numbers it anew.
  std::vector<bool> needed(frames_.size());
  for (const Config& config : position.configs) needed[config.frame] = true;
  for (size_t frame = frames_.size(); frame-- > 2;)
    if (needed[frame])
      for (const Config& config : configs_of(static_cast<FrameId>(frame))) needed[config.frame] = true;
  std::vector<FrameId> renamed(frames_.size());
  renamed[unknown_stack] = unknown_stack;
  const std::vector<Frame> frames = std::exchange(frames_, std::vector<Frame>(2));
  const std::vector<Config> pool = std::exchange(pool_, {});
  std::ranges::fill(slots_, 0);
  std::vector<Config> configs;
  for (size_t frame = 2; frame < frames.size(); ++frame) {
    if (!needed[frame]) continue;
    const size_t end = frame + 1 < frames.size() ? frames[frame + 1].begin : pool.size();
    configs.assign(pool.begin() + frames[frame].begin, pool.begin() + static_cast<std::ptrdiff_t>(end));
    for (Config& config : configs) config.frame = renamed[config.frame];
    tidy_configs(configs);
    renamed[frame] = intern(configs);
  }
  for (Config& config : position.configs) config.frame = renamed[config.frame];
  tidy_configs(position.configs);
  ended_at_.assign(frames_.size(), 0);
  compacted_ = frames_.size();
  return true;
}

}  // namespace easydel::text::constrain
