// Speculation without a draft model: what followed the same tokens earlier in the prompt or the answer is proposed
// again, and how many tokens are proposed follows from how many were right.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::esurge {

// The tokens of one sequence with an index of their n-grams, from 1 to max_ngram tokens. A token costs max_ngram
// look-ups, however long the sequence is. Copies are independent. Nothing is taken back: only tokens that stay are
// added.
class PromptLookup {
 public:
  // 1 <= min_ngram <= max_ngram.
  PromptLookup(int64_t min_ngram, int64_t max_ngram);

  void add(std::span<const text::TokenId> tokens);
  int64_t size() const { return int64_t(tokens_.size()); }

  // The `count` tokens that followed the last earlier occurrence of the longest possible end of the sequence, which has
  // min_ngram to max_ngram tokens; none: it has not occurred. An occurrence may overlap the end: then what it would
  // continue with repeats.
  std::vector<text::TokenId> propose(int64_t count) const;

 private:
  // The n-grams are a tree in which a node's child is named by a token.
  struct Slot {
    uint64_t key = 0;   // node and token
    int32_t child = 0;  // 0: the slot is empty
    int32_t end = -1;   // index after the last occurrence of the child's n-gram
  };
  Slot& slot_of(int32_t node, text::TokenId token);
  void grow();

  int64_t min_ngram_, max_ngram_;
  std::vector<text::TokenId> tokens_;
  std::vector<Slot> slots_;       // a hash table with open addressing; its size is a power of two
  int32_t nodes_ = 0;             // 0 is the root
  std::vector<int32_t> open_;     // nodes of the last tokens: of the n-gram of length 1, 2, ... that ends here
  std::vector<int32_t> earlier_;  // by length - 1: where it ended before; -1: nowhere
};

// How many tokens are drafted for a sequence. A draft is worth computing if it is more likely to be right than a row
// costs of what the step yields. The likelihood is estimated from the drafts so far; when it is too small, one draft is
// tried from time to time, less and less often.
class DraftCount {
 public:
  // `max_drafts`: at most so many for a step; 0: never any. `price`: what guessing one takes, as a share of a step of
  // few rows.
  explicit DraftCount(int64_t max_drafts, double price = 0) : max_drafts_(max_drafts), price_(price) {}

  // For a step in which `rows` tokens are computed without drafts.
  int64_t next(int64_t rows) const;
  // The next step verified `tried` drafts, of which the first `accepted` were right. 0 of 0: it had no drafts although
  // some could be proposed.
  void record(int64_t tried, int64_t accepted);
  double acceptance() const { return acceptance_; }

 private:
  int64_t max_drafts_;
  double price_;
  double acceptance_ = 0.8;        // that a draft is right if those before it are
  int64_t waited_ = 0, wait_ = 8;  // steps without drafts; before the next trial
};

}  // namespace easydel::esurge
