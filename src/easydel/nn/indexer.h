// The lightning indexer: which tokens a token's attention sees. It is not trained by the language loss.
#pragma once

#include <memory>

#include "easydel/nn/mla.h"

namespace easydel::nn {

class Indexer {
 public:
  Indexer(const Scope& scope, const MlaSpec& spec);

  // What a token is found by: x [tokens, size] -> [tokens, index_dim].
  Tensor keys(const Tensor& x, Pass& pass) const;
  // What it looks for: x [tokens, size], low [tokens, q_rank] -> queries [tokens, heads, index_dim] and the heads'
  // weights fp32 [tokens, heads].
  struct Query {
    Tensor q, weights;
  };
  Query query(const Tensor& x, const Tensor& low, Pass& pass) const;

  // For the rows of one sequence, which stand at the end of its keys [n, index_dim]. hidden bool [n] or undefined: keys
  // that nobody sees (padding before a text makes tokens blind).
  std::vector<KeyChoice> choose(const Query& query, const Tensor& keys, const Tensor& hidden) const;

 private:
  int64_t heads_, dim_, top_;
  std::shared_ptr<const ops::RopeSpec> rope_;
  Linear q_, k_, weights_;
  Norm k_norm_;
};

}  // namespace easydel::nn
