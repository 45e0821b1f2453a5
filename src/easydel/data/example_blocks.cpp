#include "easydel/data/example_blocks.h"

#include <algorithm>
#include <utility>

#include "easydel/base/error.h"

namespace easydel::data {

void ExampleBlocks::add(const Example& example) {
  if (!open_) open_ = std::make_shared<ExampleBlock>();
  open_->add(example);
  digest_.add(example);
  if (open_->is_full()) finish();
}

void ExampleBlocks::add(BlockView block, std::shared_ptr<const void> owner) {
  check(!open_, "a block after an unfinished one");
  const int64_t count = block.size();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t tokens = block.tokens_of(i);
    tokens_ += tokens;
    labels_ += block.labels_of(i, 0, tokens);
    longest_ = std::max(longest_, tokens);
  }
  weighted_ |= std::ranges::find(block.columns, loss_weights, &BlockColumn::name) != block.columns.end();
  blocks_.push_back({size_, std::move(block), std::move(owner)});
  size_ += count;
}

void ExampleBlocks::finish() {
  if (!open_) return;
  const std::shared_ptr<ExampleBlock> block = std::exchange(open_, nullptr);
  block->seal();
  add(block->view(), block);
}

void ExampleBlocks::set_digest(const std::string& text) { digest_.value = std::stoull(text, nullptr, 16); }

const ExampleBlocks::Block& ExampleBlocks::block_of(int64_t index) const {
  check(index >= 0 && index < size_, "example ", index, " of ", size_);
  return *std::prev(std::ranges::upper_bound(blocks_, index, {}, &Block::first));
}

void ExampleBlocks::complete(Example& example) const {
  if (weighted_ && !example.find(loss_weights))
    example.set({loss_weights, Column::Per::token, std::vector<float>(example.tokens.size(), 1)});
}

int64_t ExampleBlocks::tokens_of(int64_t index) const {
  const Block& block = block_of(index);
  return block.view.tokens_of(index - block.first);
}

int64_t ExampleBlocks::labels_of(int64_t index, int64_t begin, int64_t end) const {
  const Block& block = block_of(index);
  return block.view.labels_of(index - block.first, begin, end);
}

Example ExampleBlocks::at(int64_t index) const {
  const Block& block = block_of(index);
  Example out = block.view.at(index - block.first);
  complete(out);
  return out;
}

Example ExampleBlocks::slice(int64_t index, int64_t begin, int64_t end) const {
  const Block& block = block_of(index);
  Example out = block.view.slice(index - block.first, begin, end);
  complete(out);
  return out;
}

}  // namespace easydel::data
