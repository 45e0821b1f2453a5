// The prefix index as data that outlive the engine: which pages hold the keys and values of which tokens. What the
// pages contain is stored elsewhere, by group and number. No torch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/esurge/cache_layout.h"
#include "easydel/esurge/prefix_index.h"

namespace easydel::esurge {

struct SavedPrefixIndex {
  struct State {
    int64_t rows = 0;     // after this many of the node's tokens
    int32_t number = -1;  // among the stored pages of the group of states
    uint64_t stamp = 0;   // greater: used later
  };
  struct Node {
    int32_t parent = -1;                // an earlier node; -1: a child of its root
    int32_t root = 0;                   // an index into roots, if it has no parent
    std::vector<uint32_t> tokens = {};  // as TokenKeys marks them
    std::vector<int32_t> pages = {};    // by group: its number among the stored pages; -1: none
    std::vector<State> states = {};     // in the order of rows
    uint64_t stamp = 0;
  };
  std::vector<CacheRoot> roots = {};
  std::vector<Node> nodes = {};
  std::vector<int64_t> pages = {};  // by group: number of stored pages, states included

  // As bytes, which decode_prefix_index() reads.
  std::string encode(const CacheLayout& layout) const;
};

// UserError: these bytes are not an index of this layout. Whatever the bytes are, the result is one that can be
// restored: all of its numbers are in range, and every page is named once.
SavedPrefixIndex decode_prefix_index(std::string_view bytes, const CacheLayout& layout);

// Where a rank stands among those of an engine.
struct RankPlace {
  int64_t rank = 0, ranks = 1;
  int64_t part = 0, parts = 1;  // data parts, each of which has pages of its own
  bool operator==(const RankPlace&) const = default;
  std::string describe() const;  // "rank 1 of 2, part 0 of 1"
};

// By group and number: which of the part's own stored pages it is, counted from 0; -1: one of another part.
std::vector<std::vector<int32_t>> own_pages(const SavedPrefixIndex& index, const CacheLayout& layout, int64_t part);

// What keys and values on the disk depend on in addition to the layout.
struct PrefixCacheIdentity {
  std::string weights = {};  // hash of the model's weights
  std::string order = {};    // class of the order of additions
  std::string format = {};   // of keys and values: "bf16", "int8"
  RankPlace place = {};
  bool operator==(const PrefixCacheIdentity&) const = default;
};

// The manifest beside the stored pages: identity, layout, and the digest of the encoded index.
Value prefix_cache_manifest(const PrefixCacheIdentity& identity, const CacheLayout& layout, std::string_view index);
// Why what was stored with this manifest cannot be used now, as one line; empty: it can.
std::string why_prefix_cache_does_not_fit(const Value& manifest, const PrefixCacheIdentity& identity,
                                          const CacheLayout& layout, std::string_view index);

}  // namespace easydel::esurge
