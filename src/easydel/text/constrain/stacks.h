// Runs an automaton over bytes. Where a text may be is a set of configurations: a state, and the frame that says where
// to go on when the state's rule ends. A frame is a set of configurations too, so that a rule that several callers
// begin at one byte runs once (as in Earley's algorithm, doi:10.1145/362007.362035): the work for a byte is at most
// quadratic in the number of bytes before it, whatever the grammar. Equal frames are one frame, so equal situations
// have equal configurations wherever they are in the text.
#pragma once

#include <compare>
#include <vector>

#include "easydel/text/constrain/automaton.h"

namespace easydel::text::constrain {

using FrameId = uint32_t;
constexpr FrameId bottom_stack = 0;   // the root's: when it ends, the whole text may end
constexpr FrameId unknown_stack = 1;  // of a state that is looked at without its callers

struct Config {
  StateId state = 0;
  FrameId frame = 0;
  auto operator<=>(const Config&) const = default;
};

// Where a text may be after some bytes.
struct Position {
  std::vector<Config> configs;  // sorted and unique; those from which nothing can be written are left out
  bool may_end = false;         // the root's rule may end here
  bool escapes = false;         // a rule whose frame is unknown_stack may end here
  bool dead() const { return configs.empty() && !may_end && !escapes; }
  bool operator==(const Position&) const = default;
};

class Stacks {
 public:
  // `automaton` must outlive it.
  explicit Stacks(const Automaton& automaton);

  Position begin() const;
  // The position after one more byte. Not thread-safe.
  // `markers_only`: the byte has to be of a marker.
  void step(const Position& from, uint8_t byte, Position& to, bool markers_only = false);
  // The position at these configurations.
  Position at(const std::vector<Config>& configs);
  // What is possible after the rules whose frame is `frame` have ended, without a byte.
  Position after(FrameId frame);

  // Frames that were made after mark() are dropped by release(mark).
  size_t mark() const { return frames_.size(); }
  void release(size_t mark);
  // Drops all frames that `position` does not need; its frames get new numbers. True if anything was done.
  bool compact(Position& position);

 private:
  struct Frame {
    uint32_t begin = 0;  // its configurations, in pool_, up to the next frame's
    uint64_t hash = 0;
  };
  struct Pending {
    RuleId rule;
    Config config;
    bool operator<(const Pending& other) const { return config < other.config; }
  };

  std::span<const Config> configs_of(FrameId frame) const {
    return std::span(pool_).subspan(
        frames_[frame].begin,
        (frame + 1 < frames_.size() ? frames_[frame + 1].begin : pool_.size()) - frames_[frame].begin);
  }
  FrameId intern(const std::vector<Config>& configs);
  void place(FrameId frame);
  void advance(Config from, uint8_t byte, Position& to, bool markers_only);
  void arrive(Config at, Position& to);
  void end_rules(Position& to);
  FrameId frame_of(std::vector<Config>& callers);

  const Automaton& automaton_;
  std::vector<Frame> frames_;
  std::vector<Config> pool_;
  std::vector<FrameId> slots_;  // open addressing over frames_; 0: free (bottom_stack is never looked up)
  size_t compacted_ = 0;        // number of frames after the last compaction

  // Of one step.
  std::vector<FrameId> ended_;
  std::vector<uint32_t> ended_at_;  // by frame: the last step in which it ended
  uint32_t steps_ = 0;
  std::vector<std::vector<Config>> pending_;  // by rule
  std::vector<uint32_t> pending_orders_;      // a heap of the orders of rules that are pending
  std::vector<RuleId> rule_of_order_;
};

}  // namespace easydel::text::constrain
