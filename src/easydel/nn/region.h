// Tensor parallelism within a layer (Megatron-LM, arXiv 1909.08053): each rank of the tensor axis computes some of the
// heads or of the inner units, and the results are summed over the ranks.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "easydel/collective/team.h"

namespace easydel::nn {

class Region {
 public:
  Region() = default;  // every rank computes all of it
  // Divided if the tensor axis has several ranks and their number divides each of `pieces` (heads, units).
  Region(const collective::Team& team, std::initializer_list<int64_t> pieces);

  bool divided() const { return !group_.alone(); }
  int64_t parts() const { return group_.size(); }
  // Every rank gets all of x; its gradient is the sum of the ranks' gradients.
  Tensor enter(const Tensor& x) const;
  // The sum of the ranks' x.
  Tensor leave(const Tensor& x) const;

 private:
  collective::Group group_;
};

}  // namespace easydel::nn
