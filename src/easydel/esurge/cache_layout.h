// What the layers of a model keep of a sequence, as groups of pages: sizes and reach, without storage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace easydel::esurge {

// Layers whose pages are needed equally long share a group: a page of a group holds `page_size` tokens of all of its
// layers. Layers that keep nothing of their own (shared keys) are in no group. MLA's short rows, with or without an
// indexer's keys, are a full group with rows of another size.
struct CacheGroup {
  enum class Kind : uint8_t {
    full,    // every earlier token is visible
    window,  // of `span` tokens: a token sees itself and the span - 1 tokens before it
    chunk,   // tokens see their own chunk of `span` tokens, up to themselves
    state,   // recurrent and convolution states: one "page" for each sequence, whatever its length
  };
  Kind kind = Kind::full;
  int64_t page_bytes = 0;
  int64_t span = 0;

  bool operator==(const CacheGroup&) const = default;
  bool bounded() const { return kind == Kind::window || kind == Kind::chunk; }
  // The first position whose keys the token at `position` sees; `position` itself if it sees no earlier one.
  int64_t first_visible(int64_t position) const;
};

struct CacheLayout {
  int64_t page_size = 128;
  std::vector<CacheGroup> groups;
  // Whether a token's keys depend on its being prompt or generated (MLA, Mamba-2), so that the prefix index must not
  // take one for the other.
  bool roles_matter = false;

  bool operator==(const CacheLayout&) const = default;
  int64_t pages_of(int64_t tokens) const { return (tokens + page_size - 1) / page_size; }
  int state_group() const;  // -1: none
  bool has_full() const;

  // Number of pages of a group that a sequence of `tokens` tokens holds at most, if a step adds at most `step_tokens`
  // to it: ceil((span + step_tokens) / page_size) + 1 of a window or chunk.
  int64_t max_pages(const CacheGroup& group, int64_t tokens, int64_t step_tokens) const;
  // The same in bytes, for all groups.
  int64_t max_bytes(int64_t tokens, int64_t step_tokens) const;
  // The bytes of all pages of `tokens` tokens, as if no window ever passed one.
  int64_t all_bytes(int64_t tokens) const;

  // UserError: a page size that is not between 1 and 4096. Bug: impossible groups.
  void check_valid() const;
};

// The bytes that pages and states may take together.
struct CacheBudget {
  int64_t bytes = 0;
  bool limited_by_need = false;  // less than the memory allows: max_num_seqs sequences of max_model_len need no more

  // "KV cache: 1.50 GiB, 12345 pages of 128 tokens (1580160 tokens)"
  std::string describe(const CacheLayout& layout) const;
};

// hbm_utilization x free_bytes, but not more than max_num_seqs sequences of max_model_len tokens need. UserError: not
// enough for one page of each group.
CacheBudget cache_budget(const CacheLayout& layout, double hbm_utilization, int64_t free_bytes, int64_t max_num_seqs,
                         int64_t max_model_len);

}  // namespace easydel::esurge
