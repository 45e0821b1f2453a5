// Codes of a weight, of which a rank keeps a part of the rows where the mesh has an axis fsdp. They never change, so
// they have no gradient and no optimizer state; products read all rows, as those of plain weights under FSDP do.
#pragma once

#include <memory>

#include "easydel/collective/team.h"
#include "easydel/ops/product.h"

namespace easydel::nn {

class CutCodes {
 public:
  // `whole`: codes of all rows, equal on every rank. Codes that the kernels read in panels are cut if the ranks' parts
  // are whole panels; the others (those that stay in their file, too) are kept whole.
  CutCodes(ops::Matrix whole, const collective::Team& team);

  // All rows, as they were given. Collective if they are cut: the result should not be kept.
  ops::Matrix whole() const;
  bool is_cut() const { return !group_.alone(); }

 private:
  ops::Matrix mine_;
  int64_t rows_ = 0;         // of the whole
  collective::Group group_;  // alone: not cut
};

}  // namespace easydel::nn
