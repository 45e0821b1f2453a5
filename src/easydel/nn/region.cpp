#include "easydel/nn/region.h"

#include <algorithm>

#include "easydel/collective/autograd.h"

namespace easydel::nn {

Region::Region(const collective::Team& team, std::initializer_list<int64_t> pieces) {
  int64_t parts = team.mesh().size("tp");
  if (std::all_of(pieces.begin(), pieces.end(), [&](int64_t n) { return n % parts == 0; })) group_ = team.group({"tp"});
}

Tensor Region::enter(const Tensor& x) const { return collective::enter(group_, x); }
Tensor Region::leave(const Tensor& x) const { return collective::leave(group_, x); }

}  // namespace easydel::nn
