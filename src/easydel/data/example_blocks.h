// All examples of a dataset, or all documents before they are packed, as blocks that lie in memory or in mapped files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "easydel/data/example_block.h"

namespace easydel::data {

class ExampleBlocks {
 public:
  // Appends an example in memory; it can be read after finish(). Bug: see ExampleBlock::add.
  void add(const Example& example);
  // Appends a whole block. `owner` keeps its arrays alive.
  void add(BlockView block, std::shared_ptr<const void> owner);
  // Ends the last block in memory. Of some examples with weights all have them afterwards: 1 where none were given.
  void finish();

  int64_t size() const { return size_; }
  int64_t tokens() const { return tokens_; }    // of all
  int64_t labels() const { return labels_; }    // of all
  int64_t longest() const { return longest_; }  // tokens
  // Of everything in it. Examples of a store count by the digest that it keeps.
  const ExampleDigest& digest() const { return digest_; }
  void set_digest(const std::string& text);

  // As BlockView's. `index` is that of the example among all.
  int64_t tokens_of(int64_t index) const;
  int64_t labels_of(int64_t index, int64_t begin, int64_t end) const;
  int64_t labels_of(int64_t index) const { return labels_of(index, 0, tokens_of(index)); }
  Example at(int64_t index) const;
  Example slice(int64_t index, int64_t begin, int64_t end) const;

 private:
  struct Block {
    int64_t first = 0;  // index of its first example
    BlockView view;
    std::shared_ptr<const void> owner;
  };
  const Block& block_of(int64_t index) const;
  void complete(Example& example) const;

  std::vector<Block> blocks_;
  std::shared_ptr<ExampleBlock> open_;  // in memory; null: none was begun
  int64_t size_ = 0, tokens_ = 0, labels_ = 0, longest_ = 0;
  bool weighted_ = false;
  ExampleDigest digest_;
};

}  // namespace easydel::data
