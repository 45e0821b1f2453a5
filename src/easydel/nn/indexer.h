// The lightning indexer: which tokens a token's attention sees. It is not trained by the language loss.
#pragma once

#include <memory>

#include "easydel/nn/mla.h"

namespace easydel::nn {

class Indexer {
 public:
  Indexer(const Scope& scope, const MlaSpec& spec);

  // The index keys of tokens: x [tokens, size] -> [tokens, index_dim].
  Tensor keys(const Tensor& x, Pass& pass) const;
  // x [tokens, size], low [tokens, q_rank] -> index queries [tokens, heads, index_dim] and the heads' weights fp32
  // [tokens, heads].
  struct Query {
    Tensor q, weights;
  };
  Query query(const Tensor& x, const Tensor& low, Pass& pass) const;

  // For the tokens of one sequence; `keys` [n, index_dim] are those of all its tokens up to the last of them. masked
  // bool [n] or undefined: keys that are not attended (a token of padding before a text has no other key).
  std::vector<KeyChoice> choose(const Query& query, const Tensor& keys, const Tensor& masked) const;

 private:
  int64_t heads_, dim_, top_;
  std::shared_ptr<const ops::RopeSpec> rope_;
  Linear q_, k_, weights_;
  Norm k_norm_;
};

}  // namespace easydel::nn
