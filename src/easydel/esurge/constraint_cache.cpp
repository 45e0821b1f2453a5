#include "easydel/esurge/constraint_cache.h"

#include <utility>

namespace easydel::esurge {
namespace {

using text::constrain::Language;

std::string key_of(const Language& language, const std::vector<text::TokenId>& ends) {
  std::string key;
  for (const text::TokenId end : ends) key += std::to_string(end) + ",";
  return key + ":" + language.key();
}

}  // namespace

ConstraintCache::ConstraintCache(std::shared_ptr<const text::Tokenizer> tokenizer, int64_t vocabulary, size_t max_bytes)
    : tokenizer_(std::move(tokenizer)), vocabulary_(vocabulary), max_bytes_(max_bytes) {}

std::shared_ptr<const text::constrain::TokenBytes> ConstraintCache::token_bytes(
    const std::vector<text::TokenId>& ends) {
  const std::lock_guard lock(vocabulary_mutex_);
  if (!token_bytes_) token_bytes_ = std::make_shared<const TokenBytes>(tokenizer_, ends, vocabulary_);
  return std::make_shared<const TokenBytes>(*token_bytes_, ends);
}

void ConstraintCache::count(Entry& entry) {
  const size_t now = 2 * entry.key.size() + entry.constraint->memory_bytes();
  bytes_ += now - entry.bytes;
  entry.bytes = now;
}

void ConstraintCache::shrink() {
  while (bytes_ > max_bytes_ && entries_.size() > 1) {
    bytes_ -= entries_.back().bytes;
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

ConstraintCache::Constraint ConstraintCache::get(const Language& language, const std::vector<text::TokenId>& ends) {
  std::string key = key_of(language, ends);
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = by_key_.find(key); found != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      count(entries_.front());
      shrink();
      return entries_.front().constraint;
    }
  }
  // Without the lock: compiling may take seconds. If two threads compile the same one, the first one's stays.
  const auto automaton = text::constrain::compile(language);
  const auto constraint = std::make_shared<const text::constrain::Constraint>(automaton, token_bytes(ends));
  const std::lock_guard lock(mutex_);
  if (const auto found = by_key_.find(key); found != by_key_.end()) return found->second->constraint;
  entries_.push_front({key, constraint, 0});
  by_key_.emplace(std::move(key), entries_.begin());
  // All of them: they learn while requests use them. It takes less time than compiling the new one.
  for (Entry& entry : entries_) count(entry);
  shrink();
  learning_.add(constraint);
  return constraint;
}

size_t ConstraintCache::bytes() const {
  const std::lock_guard lock(mutex_);
  size_t out = 0;
  for (const Entry& entry : entries_) out += 2 * entry.key.size() + entry.constraint->memory_bytes();
  return out;
}

size_t ConstraintCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace easydel::esurge
