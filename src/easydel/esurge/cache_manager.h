// The pages of running sequences: takes them as sequences grow, shares them with the prefix index, and gives them back.
// Ids and counts alone; what has to be done to storage is returned as a list of PageOp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "easydel/esurge/page_pools.h"
#include "easydel/esurge/prefix_index.h"

namespace easydel::esurge {

// What one running sequence holds.
struct SequencePages {
  // By group: position t is row t % page_size of page tables[group][t / page_size]. -1: a window or chunk has passed
  // it. A group of states has one entry. Attention of a bounded group sees positions from first_visible() on alone.
  std::vector<std::vector<int32_t>> tables;
  std::vector<int64_t> first;         // by group: index of the first page that is held
  std::vector<int64_t> quota;         // by group: number of pages that it is sure to get, those it holds included
  int64_t reserved_bytes = 0;         // of the quota, not taken yet
  PrefixIndex::Node* node = nullptr;  // the last whole page that is in the index
  int64_t indexed = 0;                // tokens up to there
  int32_t saved_state = -1;           // a copy of the state before the tokens that are being verified
  bool empty() const { return tables.empty(); }
};

class CacheManager {
 public:
  // What admit() reserves in addition to the hit.
  struct Demand {
    int64_t tokens = 0;      // of the sequence for which pages are reserved
    int64_t max_tokens = 0;  // that it will ever have: nothing is reserved beyond them
    int64_t forks = 0;       // sequences that will continue from its prompt, and the pages reserved for each
    int64_t fork_pages = 1;
    int64_t step_tokens = 0;    // that one step adds at most
    bool count_passed = false;  // admission counts pages that windows will have passed, too
  };

  CacheManager(CacheLayout layout, int64_t budget_bytes, bool index);

  const CacheLayout& layout() const { return pools_.layout(); }
  const PagePools& pools() const { return pools_; }
  const PrefixIndex& index() const { return index_; }
  // Bytes that can be taken or reserved: what is free, what is idle, less what is reserved.
  int64_t free_bytes() const;
  // Changes whenever something was given back or entered the index: what did not fit may fit now.
  uint64_t version() const { return version_; }

  // As PrefixIndex::find_scores.
  void find_scores(const CacheRoot& root, const TokenKeys& keys) const;
  // Number of tokens of a sequence, at most `limit`, that the index has.
  int64_t cached(const CacheRoot& root, const TokenKeys& keys, int64_t limit) const;
  // Begins a sequence: shares what the index has of at most `limit` tokens and reserves pages. Returns the number of
  // tokens that need not be computed; nullopt: there is no room, and nothing has changed.
  std::optional<int64_t> admit(SequencePages& pages, const CacheRoot& root, const TokenKeys& keys, int64_t limit,
                               const Demand& demand, std::vector<PageOp>& ops);
  // Takes the pages for writing positions [from, to), and copies the page at `from` if another sequence has it too.
  // false: there is no room, and nothing has changed.
  bool extend(SequencePages& pages, int64_t from, int64_t to, std::vector<PageOp>& ops);
  // `to` continues from the same tokens as `from`, of which `computed` will be there when its own pass begins: it
  // shares the pages that later ones see. The state is copied by an op of `after`, which is due after the pass that
  // computes the last of these tokens.
  void fork(SequencePages& from, SequencePages& to, int64_t computed, const Demand& demand, std::vector<PageOp>& ops,
            std::vector<PageOp>& after);
  // `computed` tokens are computed: whole pages enter the index, of a prompt also the part of a page that it ends with,
  // and pages that windows have passed are given back.
  void advance(SequencePages& pages, const TokenKeys& keys, int64_t computed);
  // Takes back tokens from `tokens` on (rejected speculation).
  void truncate(SequencePages& pages, int64_t tokens);
  // A copy of the sequence's state after the pass, for keep_state() or drop_state() when the pass is done; -1: none.
  int32_t copy_state(const SequencePages& pages, std::vector<PageOp>& ops, std::vector<PageOp>& after);
  void keep_state(SequencePages& pages, const TokenKeys& keys, int64_t computed, int32_t slot);
  void drop_state(int32_t slot) { index_.give_back_state(slot); }
  // Copies the sequence's state before a pass whose last tokens are speculated. false: there is no room, and nothing
  // has changed.
  bool save_state(SequencePages& pages, std::vector<PageOp>& ops);
  // After the pass: the copy becomes the sequence's state, or is given up.
  void restore_state(SequencePages& pages);
  void drop_saved_state(SequencePages& pages);
  // The sequence ends or is preempted: its pages, and its state if that is the one after `computed` tokens, enter the
  // index and are given back.
  void leave(SequencePages& pages, const TokenKeys& keys, int64_t computed, bool has_state);
  // Empties the index and releases all memory that nobody uses.
  void drop_index(std::vector<PageOp>& ops);

  // PrefixIndex::restore, while no sequence is there.
  std::vector<PrefixIndex::Restored> restore_index(const SavedPrefixIndex& saved, std::vector<PageOp>& ops);

  // Bug: a page is not in exactly one state, counts differ from what tables and index say, or more is promised than
  // there is. `running` are all sequences, `kept` the states of copy_state() that are on their way.
  void check_all(std::span<const SequencePages* const> running, std::span<const int32_t> kept) const;

 private:
  int64_t bytes_of(int group) const { return layout().groups[size_t(group)].page_bytes; }
  // Of the page that ends a sequence of `tokens` tokens.
  int64_t rows_at(int64_t tokens) const { return (tokens - 1) % layout().page_size + 1; }
  int groups() const { return int(layout().groups.size()); }
  int64_t held(const SequencePages& pages, int group) const;
  void share(int group, int32_t page);
  void give_back(int group, int32_t page);
  int32_t take(int group, std::vector<PageOp>& ops);
  bool give_back_passed(SequencePages& pages, int64_t computed);
  void reserve(SequencePages& pages);
  PrefixIndex::Node* index_page(SequencePages& pages, const TokenKeys& keys, int64_t count);
  void index_pages(SequencePages& pages, const TokenKeys& keys, int64_t computed);
  PrefixIndex::Node* index_rest(SequencePages& pages, const TokenKeys& keys, int64_t computed);
  std::vector<int64_t> quota_of(const Demand& demand) const;
  int64_t fork_pages(const Demand& demand, int group) const;
  int64_t need_of(const PrefixIndex::Match& match, const Demand& demand) const;
  int64_t first_page(const PrefixIndex::Match& match, int group) const;

  PagePools pools_;
  PrefixIndex index_;
  const bool has_index_, has_pages_;
  const int state_group_;
  int64_t reserved_bytes_ = 0;
  uint64_t version_ = 1;
  std::vector<uint32_t> tokens_;  // of one page, while it is entered
  std::vector<int32_t> mine_;
};

}  // namespace easydel::esurge
