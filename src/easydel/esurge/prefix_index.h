// Which pages hold the keys and values of which tokens: a tree of pages per root, found by the tokens themselves. Pages
// that no sequence uses stay in it until room is wanted.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "easydel/esurge/page_pools.h"
#include "easydel/esurge/page_scores.h"

namespace easydel::esurge {

// Everything that keys and values depend on in addition to the tokens before them. Different roots share nothing.
struct CacheRoot {
  std::string weights = {}, adapter = {}, format = {}, salt = {};
  int64_t adapter_version = 0;
  int64_t frequency_class = 0;  // of models whose rope depends on the sequence's length
  int64_t part = 0;             // of the ranks: the data part that has the pages
  auto operator<=>(const CacheRoot&) const = default;
};

// The tokens of one sequence as the index compares them: prompt, then generated tokens, which are marked if roles
// matter. It refers to the caller's lists.
struct TokenKeys {
  std::span<const int32_t> prompt, generated;
  bool roles_matter = false;
  PromptScores* scores = nullptr;  // of the prompt, which enter the index with its pages; null: none are wanted

  int64_t size() const { return int64_t(prompt.size() + generated.size()); }
  uint32_t operator[](int64_t i) const {
    const auto prompt_size = int64_t(prompt.size());
    if (i < prompt_size) return uint32_t(prompt[size_t(i)]);
    return uint32_t(generated[size_t(i - prompt_size)]) | (roles_matter ? uint32_t(1) << 31 : 0);
  }
  // Number of leading tokens, at most `limit`, that are those of `other`.
  int64_t common(const TokenKeys& other, int64_t limit) const;
};

struct SavedPrefixIndex;

class PrefixIndex {
 public:
  struct Node;
  struct NodeOrder {
    using is_transparent = void;
    bool operator()(const std::unique_ptr<Node>& a, const std::unique_ptr<Node>& b) const;
    bool operator()(const std::unique_ptr<Node>& a, std::span<const uint32_t> b) const;
    bool operator()(std::span<const uint32_t> a, const std::unique_ptr<Node>& b) const;
  };
  using Children = std::set<std::unique_ptr<Node>, NodeOrder>;
  struct KeptState {
    int64_t rows = 0;  // after this many of the node's tokens
    int32_t slot = -1;
    uint64_t stamp = 0;
  };
  // One page of tokens. Siblings are never a prefix of each other; only whole pages have children.
  struct Node {
    Node* parent = nullptr;
    const CacheRoot* root = nullptr;  // of a root alone
    std::vector<uint32_t> tokens;
    Children children;
    std::vector<int32_t> pages;     // by group; -1: none
    std::vector<uint64_t> stamps;   // by group, then of the whole node: when it was last used
    std::vector<char> evictable;    // the same places: whether it is in the list of what can be evicted
    std::vector<KeptState> states;  // in the order of rows
    int64_t users = 0;              // sequences that go on from here
    PageScores scores;              // of its tokens, after those before them
    uint64_t scores_stamp = 0;      // when they were entered; 0: there are none
  };

  // What of a sequence's beginning is there.
  struct Match {
    int64_t tokens = 0;
    std::vector<Node*> path;  // nodes of the whole pages, in order
    Node* partial = nullptr;  // the next page, of which `rows` tokens are common
    int64_t rows = 0;
    int32_t state = -1;  // the state after `tokens` tokens
  };

  // Kept states take at most a quarter of the budget. The pools must outlive the index.
  explicit PrefixIndex(PagePools& pools);
  ~PrefixIndex();

  // The longest beginning of `keys`, at most `limit` tokens, whose pages (of a window or chunk those that the next
  // token sees) and state are there. It changes nothing.
  Match match(const CacheRoot& root, const TokenKeys& keys, int64_t limit) const;
  // The root's own node, made if it is missing.
  Node* root(const CacheRoot& root);

  // A sequence goes on from this node: it is not evicted until forget().
  void use(Node* node) { ++node->users; }
  void forget(Node* node);

  // Enters the tokens of one page (fewer than a page: the end of a sequence) as a child of `parent`. pages[group] are
  // the sequence's own pages or -1. Of a whole page the node may have its own already: `mine` becomes that, with the
  // sequence's ownership moved along.
  Node* insert(Node* parent, std::span<const uint32_t> tokens, std::vector<int32_t>& mine);
  // Takes one more state to keep, for which older ones may be evicted; -1: a quarter of the budget is too little for
  // it. The caller has made sure that the budget has room for it once what is idle is evicted.
  int32_t take_state(std::vector<PageOp>& ops);
  // The same for a state that the caller has anyway. false: there is no room for it.
  bool make_state_room();
  bool has_state(const Node* node, int64_t rows) const;
  // The same state, if it is not kept after all.
  void give_back_state(int32_t slot);
  // Keeps a state that the caller owns as that after `rows` of the node's tokens; the ownership moves.
  void keep_state(Node* node, int64_t rows, int32_t slot);

  // Appends to `scores` what is kept of the prompt's tokens after those whose scores are there already, up to the first
  // one without as many as are wanted. It changes nothing else.
  void find_scores(const CacheRoot& root, const TokenKeys& keys, PromptScores& scores) const;
  // Evicts what is idle until there is room for scores of `count` tokens from position `begin` on, or nothing is left.
  void make_score_room(int64_t begin, int64_t count, const PromptScores& scores);
  // Keeps the scores of the node's first `count` tokens, which are those from position `begin` on, as far as they are
  // there and the budget has room.
  void keep_scores(Node& node, int64_t begin, int64_t count, const PromptScores& scores);
  int64_t score_bytes() const;  // of all that are kept

  // Must be called after the owners of a page in the index have changed. `used`: it counts as used now.
  void changed(int group, int32_t page, bool used);
  // Evicts the least recently used page, leaf or state that only the index owns, or else the oldest scores. false:
  // there is none.
  bool evict_one();

  // A stored page of what restore() entered: its number among those of the group, and its id now.
  struct Restored {
    int group = 0;
    int32_t number = -1, page = -1;
    bool operator==(const Restored&) const = default;
  };
  // Everything that it has. ids[group][number] are the pages whose contents have to be stored.
  SavedPrefixIndex save(std::vector<std::vector<int32_t>>& ids) const;
  // Enters what was saved into an empty index, as much as fits into the budget; what was used last comes first. The
  // contents of the pages that it returns must be there before anything is looked up.
  std::vector<Restored> restore(const SavedPrefixIndex& saved, std::vector<PageOp>& ops);

  int64_t nodes() const { return nodes_; }
  int64_t evictions() const { return evictions_; }
  uint64_t clock() const { return clock_; }

  // Bug: the tree, the marks of the pools and the list of what can be evicted contradict each other.
  // owners[group][page] gets one more for each page of the index.
  void check_tree(std::vector<std::vector<int32_t>>& owners) const;

 private:
  struct Entry {
    Node* node;
    int place;     // a group, or that of the whole node
    int64_t rows;  // of a state
  };
  using Places = std::map<CacheRoot, std::unique_ptr<Node>>;

  int whole() const { return int(pools_.layout().groups.size()); }
  bool is_full(int group) const { return pools_.layout().groups[size_t(group)].kind == CacheGroup::Kind::full; }
  bool can_evict(const Node& node, int place) const;
  void refresh(Node& node, int place);
  void touch(Node& node, int place);
  void set_page(Node& node, int group, int32_t page);
  void unlist(Node& node, int place);
  void drop_page(Node& node, int group);
  void drop_state(Node& node, size_t i);
  void drop_scores(Node& node);
  void evict_state();
  Node* remove(Node& node);
  void prune(Node* node);
  void check_node(const Node& node, std::vector<std::vector<int32_t>>& owners) const;
  void limit_to_pages(Match& match) const;

  PagePools& pools_;
  const bool has_full_;
  const int state_group_;
  int64_t state_budget_ = 0, state_bytes_ = 0;  // of kept states, those that were taken and not kept yet included
  Places roots_;
  std::vector<std::vector<Node*>> node_of_;  // by group and page
  std::map<uint64_t, Entry> evictable_, states_;
  std::map<uint64_t, Node*> scored_;  // that have scores, by their stamps
  uint64_t clock_ = 0;
  int64_t nodes_ = 0, evictions_ = 0;
};

}  // namespace easydel::esurge
