// Texts that become one vector each: an embedding, or scores of classes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "easydel/esurge/request.h"
#include "easydel/models/embedding.h"
#include "easydel/models/model.h"
#include "easydel/nn/adapter_slots.h"

namespace easydel::esurge {

// One of them, and its hidden states until all are there. Used on the thread of steps alone.
class PooledText {
 public:
  PooledText(std::vector<TokenId> ids, PooledPrompt asked);

  uint64_t number() const { return number_; }  // no two texts of a process have the same one
  const std::vector<TokenId>& ids() const { return ids_; }
  const PooledPrompt& asked() const { return asked_; }
  // hidden [n, size] of its tokens from `begin` on. Those that are there already, because a preempted text is computed
  // again, are passed over.
  void add(int64_t begin, const Tensor& hidden);
  bool complete() const { return tokens_ == int64_t(ids_.size()); }
  // Empty: it is not pooled yet.
  const std::vector<float>& vector() const { return vector_; }
  // Another rank has pooled it.
  void take_vector(std::span<const float> vector) { vector_.assign(vector.begin(), vector.end()); }

 private:
  friend class Pooler;
  uint64_t number_;
  std::vector<TokenId> ids_;
  PooledPrompt asked_;
  std::vector<Tensor> hidden_;  // in order, of the first tokens_
  int64_t tokens_ = 0;
  std::vector<float> vector_;
};

// How a model pools: scores of its classes if it is a sequence classifier, else the embedding that its folder describes
// (models/embedding.h).
class Pooler {
 public:
  explicit Pooler(const models::Model& model);

  // Why its texts cannot be pooled; empty: they can.
  const std::string& refusal() const { return refusal_; }
  // Makes the vectors of complete texts, which do not depend on each other. `adapters`: of each text, as
  // nn::Stream::sequence_adapters.
  void pool(std::span<PooledText* const> texts, std::vector<std::shared_ptr<const nn::LoadedAdapter>> adapters) const;

 private:
  const models::Model* model_;
  bool classifies_ = false;
  models::EmbeddingSpec spec_;
  std::string refusal_;
};

}  // namespace easydel::esurge
