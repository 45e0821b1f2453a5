// A small model that guesses the next tokens of sequences. What it guesses changes the speed, never the tokens. No
// torch in this header; everything on the thread of steps.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "easydel/esurge/model_runner.h"
#include "easydel/esurge/scheduler.h"

namespace easydel::esurge {

class DraftModel {
 public:
  // UserError: a model that sees both sides.
  DraftModel(std::shared_ptr<const models::Model> model, int64_t page_size);

  const CacheLayout& layout() const { return runner_.facts().layout; }
  // For its own keys and values. Called once, before draft().
  void reserve(const CacheBudget& budget);

  struct Wish {
    SequenceId id;
    std::span<const TokenId> tokens;  // of the prompt and the answer
    int64_t prompt = 0;               // number of prompt tokens
    int64_t count = 0;                // drafts
    // Chooses the token after `tokens` and `drafts` by a row of scores. It may throw: then there are no more drafts.
    std::function<TokenId(std::span<const float> logits, std::span<const TokenId> drafts)> choose;
    std::vector<TokenId> drafts = {};  // the answer: at most `count`
  };
  // Computes at most `tokens` tokens that it has not read yet. A sequence of which it has not read all gets no drafts,
  // and neither does one whose keys and values find no room when those of all others are given up.
  void draft(std::span<Wish> wishes, int64_t tokens);
  // The request has ended.
  void forget(RequestId request);
  // Gives up all pages, and their memory: sequences are read again when drafts of them are wanted.
  void release();
  int64_t resident_bytes() const { return pools_->resident_bytes(); }

 private:
  struct Sequence {
    std::vector<std::vector<int32_t>> tables;  // by group; -1: windows have passed it
    std::vector<TokenId> read;                 // tokens whose keys and values are there, guesses included
    std::vector<TokenId> drafts;               // for the sequence when it had `drafted_at` tokens
    size_t drafted_at = 0;
    int64_t known = 0;     // tokens that the sequence had when it was read last
    int32_t scratch = -1;  // of layers with states: the state of guesses
    int64_t used = 0;      // when
  };
  struct Run {
    Wish* wish;
    Sequence* sequence;
    bool goes_on = true;
  };

  // Pages for a sequence of `tokens` tokens, of which those from position `from` on are computed; gives back those that
  // nothing from there on sees.
  bool take_pages(Sequence& sequence, int64_t from, int64_t tokens);
  bool take(int group, int32_t& page);
  void give_back(Sequence& sequence);
  // Computes the tokens of each run, and draws one draft of each that `draws`.
  void run(std::vector<RunSequence> sequences, std::vector<Run*> runs);

  std::shared_ptr<const models::Model> model_;
  ModelRunner runner_;
  std::unique_ptr<PagePools> pools_;
  std::map<std::pair<RequestId, int64_t>, Sequence> sequences_;
  std::vector<PageOp> ops_;  // due before the next pass
  int64_t clock_ = 0;
};

}  // namespace easydel::esurge
