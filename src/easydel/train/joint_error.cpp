#include "easydel/train/joint_error.h"

#include <ATen/ops/full.h>

#include <optional>

namespace easydel::train {

void together(const collective::Group& ranks, const std::function<void()>& work) {
  std::optional<JointError> failed;
  try {
    work();
  } catch (const UserError& error) {
    failed.emplace(error);
  }
  const Tensor any = at::full({1}, int64_t{failed ? 1 : 0}, at::kLong);
  if (!ranks.alone()) ranks.all_reduce(any, collective::Reduce::max);
  if (failed) throw *failed;
  if (any.item<int64_t>() != 0)
    throw JointError(UserError("run", "another rank could not go on", "its own message says why"));
}

}  // namespace easydel::train
