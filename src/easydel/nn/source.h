// Where a parameter's values come from in a checkpoint: file tensors plus one invertible step. Loading, saving back
// and the EasyDeL path use the same declaration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace easydel::nn {

enum class SourceStep : uint8_t {
  rename,     // the file's tensor as it is
  transpose,  // the file holds [in, out] (gpt2's Conv1D)
  stack,      // one file tensor for each index of dimension 0 (experts)
  slice       // rows [begin, end) of a fused file tensor
};

struct Source {
  SourceStep step = SourceStep::rename;
  std::vector<std::string> tensors;  // names in the file
  int64_t begin = 0, end = 0;        // slice, along `dimension` of the file's tensor
  int64_t dimension = 0;
};

}  // namespace easydel::nn
