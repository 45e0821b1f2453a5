#include "easydel/tensor/threads.h"

#include <ATen/Parallel.h>

namespace easydel::tensor {

int threads() { return at::get_num_threads(); }
void set_threads(int count) { at::set_num_threads(count); }

}  // namespace easydel::tensor
