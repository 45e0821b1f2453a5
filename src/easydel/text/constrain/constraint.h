// Constrained output: which tokens may come next, so that the text ends as one of a language, or is cut as the
// beginning of one. The language is a JSON schema, any JSON object, a regular expression, one of some choices or a
// grammar; or free text with such parts after markers. What is accepted and what refuses: docs/constrained_output.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/text/constrain/language.h"
#include "easydel/text/constrain/limits.h"
#include "easydel/text/constrain/stacks.h"
#include "easydel/text/constrain/token_trie.h"

namespace easydel::text::constrain {

// Compiles a language. Thread-safe. UserError: the language is not one, uses what is not supported (with the JSON
// pointer of a schema's keyword), accepts nothing, or passes a limit. `cancel`: set by another thread, gives up soon.
std::shared_ptr<const Automaton> compile(const Language& language, const std::atomic<bool>* cancel = nullptr);
// Free text with triggers. `required`: the text may not end before the first marker.
std::shared_ptr<const Automaton> compile(const std::vector<Trigger>& triggers, bool required = false,
                                         const std::atomic<bool>* cancel = nullptr);

using MaskWord = uint64_t;
inline size_t mask_words(int64_t tokens) { return (size_t(tokens) + 63) / 64; }
inline bool has_token(std::span<const MaskWord> mask, TokenId id) {
  const auto at = size_t(id);
  return id >= 0 && at / 64 < mask.size() && (mask[at / 64] >> (at % 64) & 1);
}

// A language over a vocabulary. What was learned about an automaton's states is kept and serves all matchers.
// Thread-safe.
class Constraint {
 public:
  // What was learned is forgotten when it would take more than `max_learned`; masks then wait for it again.
  Constraint(std::shared_ptr<const Automaton> automaton, std::shared_ptr<const TokenBytes> tokens,
             size_t max_learned = max_learned_bytes);
  ~Constraint();
  Constraint(const Constraint&) = delete;
  Constraint& operator=(const Constraint&) = delete;

  const Automaton& automaton() const { return *automaton_; }
  const TokenBytes& tokens() const { return *tokens_; }
  size_t known_states() const;  // that masks no longer wait for
  size_t memory_bytes() const;  // with what was learned, without the tokens, which others share

 private:
  friend class Matcher;
  struct Known;  // of one state: the tokens that stay in its rule, and the rest of those that leave it
  struct Store;
  bool has_learned_half() const;  // of what it may keep
  std::shared_ptr<const Automaton> automaton_;
  std::shared_ptr<const TokenBytes> tokens_;
  std::unique_ptr<Store> store_;
};

// One text under a constraint. A copy goes on from the same place. Not thread-safe.
class Matcher {
 public:
  // `place`: where the first token is; after a prompt, where the prompt's last token leaves the next one.
  explicit Matcher(std::shared_ptr<const Constraint> constraint, TextPlace place = TextPlace::start);

  // Sets the bits of the tokens that may come next, and those that end the text where it may end: all bits of `mask`
  // [mask_words(tokens)] are written. If no bit is set, no token of this vocabulary can go on.
  void fill(std::span<MaskWord> mask);
  // The same by a walk over the whole vocabulary, without what is known of states; for tests.
  void fill_plainly(std::span<MaskWord> mask);
  // Finds what the states of the constraint allow before a text reaches them, so that fill() waits for nothing: states
  // in the order in which texts come to them, until it took `seconds` of this thread's time or `stop` is set. Changes
  // no mask; other matchers of the constraint may be at work.
  void learn_ahead(const std::atomic<bool>& stop, double seconds = 0.2);
  // The token becomes part of the text. False: it is not allowed, and nothing changes.
  bool accept(TokenId token);
  // Bytes become part of the text, as if tokens had brought them that leave the next one at `next`. False: not allowed;
  // nothing changes.
  bool accept_bytes(std::string_view bytes, TextPlace next = TextPlace::inside);
  bool may_end() const { return position_.may_end; }
  bool must_end() const { return position_.configs.empty(); }  // only the end is left
  bool ended() const { return ended_; }                        // accept() took a token that ends the text
  TextPlace place() const { return place_; }

 private:
  using Mask = std::span<MaskWord>;
  // Follows the tokens of `trie` from a position, and calls on_node(node index, position) for each of its nodes that
  // the constraint allows.
  template <class OnNode>
  void visit(const TokenTrie& trie, Position from, Work& work, const OnNode& on_node);
  void walk(const TokenTrie& trie, const Position& from, Mask mask);
  std::shared_ptr<const Constraint::Known> known(StateId state);
  std::shared_ptr<const Constraint::Known> learn(StateId state);
  void add_ends(Mask mask);
  bool is_free() const;
  bool accept_special(std::string_view text);
  // The position after a marker that is spelled so; a dead one: none may come now.
  Position after_marker(std::string_view text);

  std::shared_ptr<const Constraint> constraint_;
  Stacks stacks_;
  Position position_;
  TextPlace place_;
  bool ended_ = false;
  std::vector<Position> levels_;  // of a walk, by depth
};

}  // namespace easydel::text::constrain
