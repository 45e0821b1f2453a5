#include "easydel/esurge/prompt_lookup.h"

#include <algorithm>
#include <utility>

#include "easydel/base/error.h"

namespace easydel::esurge {
namespace {

uint64_t key_of(int32_t node, text::TokenId token) { return uint64_t(uint32_t(node)) << 32 | uint32_t(token); }

uint64_t mixed(uint64_t key) {  // the finalizer of splitmix64
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
  return key ^ (key >> 31);
}

}  // namespace

PromptLookup::PromptLookup(int64_t min_ngram, int64_t max_ngram) : min_ngram_(min_ngram), max_ngram_(max_ngram) {
  check(min_ngram >= 1 && min_ngram <= max_ngram, "prompt lookup: n-grams of ", min_ngram, " to ", max_ngram,
        " tokens");
  slots_.resize(64);
}

PromptLookup::Slot& PromptLookup::slot_of(int32_t node, text::TokenId token) {
  const uint64_t key = key_of(node, token), mask = slots_.size() - 1;
  uint64_t at = mixed(key) & mask;
  while (slots_[at].child != 0 && slots_[at].key != key) at = (at + 1) & mask;
  return slots_[at];
}

void PromptLookup::grow() {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
  const uint64_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.child == 0) continue;
    uint64_t at = mixed(slot.key) & mask;
    while (slots_[at].child != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

void PromptLookup::add(std::span<const text::TokenId> tokens) {
  for (const text::TokenId token : tokens) {
    tokens_.push_back(token);
    while (2 * (size_t(nodes_) + size_t(max_ngram_)) > slots_.size()) grow();
    // The n-gram that ends here is the one of n - 1 tokens that ended before this token, and the token. The first
    // n-gram begins at the root.
    open_.insert(open_.begin(), 0);
    if (int64_t(open_.size()) > max_ngram_) open_.pop_back();
    earlier_.assign(open_.size(), -1);
    for (size_t i = 0; i < open_.size(); ++i) {
      Slot& slot = slot_of(open_[i], token);
      if (slot.child == 0) slot = {key_of(open_[i], token), ++nodes_, -1};
      earlier_[i] = std::exchange(slot.end, int32_t(tokens_.size()));
      open_[i] = slot.child;
    }
  }
}

std::vector<text::TokenId> PromptLookup::propose(int64_t count) const {
  for (auto n = int64_t(earlier_.size()); n >= min_ngram_; --n) {
    if (earlier_[size_t(n - 1)] < 0) continue;
    std::vector<text::TokenId> out;
    for (int64_t at = earlier_[size_t(n - 1)]; int64_t(out.size()) < count; ++at)
      out.push_back(at < size() ? tokens_[size_t(at)] : out[size_t(at - size())]);
    return out;
  }
  return {};
}

int64_t DraftCount::next(int64_t rows) const {
  if (max_drafts_ == 0) return 0;
  // A step takes as long as reading the weights, and one time more for each `balance` rows. So a row takes the share
  // 1 / (balance + rows) of a step's time; without it the step would have yielded `rows` tokens.
  constexpr double balance = 16;
  const double cost = double(rows) / (balance + double(rows)) + price_;
  int64_t drafts = 0;
  for (double right = acceptance_; drafts < max_drafts_ && right > cost; right *= acceptance_) ++drafts;
  return drafts > 0 ? drafts : waited_ >= wait_ ? 1 : 0;
}

void DraftCount::record(int64_t tried, int64_t accepted) {
  check(accepted >= 0 && accepted <= tried, "drafts: ", accepted, " of ", tried, " are accepted");
  constexpr double weight = 0.125;
  constexpr int64_t first_wait = 8, longest_wait = 256;
  if (tried == 0) {
    ++waited_;
    return;
  }
  for (int64_t i = 0; i < accepted; ++i) acceptance_ += (1 - acceptance_) * weight;
  if (accepted < tried) acceptance_ -= acceptance_ * weight;
  wait_ = accepted > 0 ? first_wait : waited_ >= wait_ ? std::min(2 * wait_, longest_wait) : wait_;
  waited_ = 0;
}

}  // namespace easydel::esurge
