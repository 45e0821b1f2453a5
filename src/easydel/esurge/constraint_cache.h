// Compiled constraints by their content: requests with the same schema compile it once.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "easydel/esurge/learning_thread.h"
#include "easydel/text/constrain/constraint.h"

namespace easydel::esurge {

// Thread-safe. Over `max_bytes` of automata and of what was learned about their states, the least recently used
// constraints go; requests that have one keep it.
class ConstraintCache {
 public:
  // `vocabulary`: tokens of a mask.
  ConstraintCache(std::shared_ptr<const text::Tokenizer> tokenizer, int64_t vocabulary, size_t max_bytes = 64 << 20);

  // `ends`: tokens that may end the answer. UserError as text::constrain::compile.
  std::shared_ptr<const text::constrain::Constraint> get(const text::constrain::Language& language,
                                                         const std::vector<text::TokenId>& ends);
  size_t bytes() const;  // as they are now
  size_t size() const;

 private:
  using Constraint = std::shared_ptr<const text::constrain::Constraint>;
  struct Entry {
    std::string key;
    Constraint constraint;
    size_t bytes;
  };
  using TokenBytes = text::constrain::TokenBytes;
  std::shared_ptr<const TokenBytes> token_bytes(const std::vector<text::TokenId>& ends);
  // With the mutex.
  void count(Entry& entry);
  void shrink();

  const std::shared_ptr<const text::Tokenizer> tokenizer_;
  const int64_t vocabulary_;
  const size_t max_bytes_;
  // The vocabulary as bytes, which the constraints share. Null: none was needed so far.
  std::mutex vocabulary_mutex_;
  std::shared_ptr<const TokenBytes> token_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the most recently used first
  std::map<std::string, std::list<Entry>::iterator> by_key_;
  size_t bytes_ = 0;         // when each of them was last counted
  LearningThread learning_;  // of each new constraint
};

}  // namespace easydel::esurge
