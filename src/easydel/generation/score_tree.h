// Which beginnings a list of token sequences shares, as a tree: each beginning is computed once. Knows no model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::generation {

// A label to be scored: the token that follows position `position` of a sequence.
struct ScoredRow {
  int64_t position = 0;
  text::TokenId label = 0;
  size_t request = 0;  // whose continuation it is
  size_t index = 0;    // of the label in the continuation
};

// The tokens [begin, end) of a sequence, after those of the parent.
struct ScoreNode {
  int64_t parent = -1;  // -1: begins at the sequence's first token
  size_t sequence = 0;  // one of those that go through this node
  int64_t begin = 0, end = 0;
  int64_t longest = 0;  // length of the longest sequence through this node
  int64_t height = 0;   // of the tree below it; 0: no children
  std::vector<size_t> children = {};
  std::vector<ScoredRow> rows = {};  // in order of position
};

struct ScoreTree {
  std::vector<ScoreNode> nodes;  // parents before their children
  std::vector<size_t> roots;     // the one with the longest sequence last
  std::vector<size_t> last;      // of each sequence the node that ends with it

  int64_t tokens() const;  // of all nodes
};

// `sequences`: each is not empty. Sequences that share fewer than `min_shared` tokens more than their parent has
// compute these by themselves. Rows are added by the caller.
ScoreTree make_score_tree(const std::vector<std::vector<text::TokenId>>& sequences, int64_t min_shared);

}  // namespace easydel::generation
