// How the values of a tensor are distributed, for TensorBoard.
#pragma once

#include "easydel/tensor/torch.h"
#include "easydel/train/event_file.h"

namespace easydel::train {

// Of an fp32 tensor on the CPU: 64 intervals of equal width between its smallest and its largest value. Values that are
// not finite are left out.
Histogram histogram_of(const Tensor& values);

}  // namespace easydel::train
