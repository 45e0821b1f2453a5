// A part of a layer that the ranks of the tensor axis divide among themselves: each computes some of the heads, or
// some of the inner units, and the sum over ranks leaves the region. Source: Megatron-LM, arXiv:1909.08053.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "easydel/collective/team.h"

namespace easydel::nn {

class Region {
 public:
  Region() = default;  // every rank computes all of it
  // Divided where the tensor axis has several ranks and their number divides each of `pieces` (heads, units).
  Region(const collective::Team& team, std::initializer_list<int64_t> pieces);

  bool divided() const { return !group_.alone(); }
  int64_t parts() const { return group_.size(); }
  // x enters whole; its gradient is the sum of what the ranks' parts give.
  Tensor enter(const Tensor& x) const;
  // Each rank has a term of the sum that leaves.
  Tensor leave(const Tensor& x) const;

 private:
  collective::Group group_;
};

}  // namespace easydel::nn
