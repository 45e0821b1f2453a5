// The forms of a parameter that products read: a copy in the compute dtype, and packed panels. They are created when
// they are first needed, and dropped after the shard was written.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "easydel/nn/parameter.h"
#include "easydel/nn/pass.h"
#include "easydel/ops/moe.h"
#include "easydel/ops/product.h"

namespace easydel::nn {

class WeightForms {
 public:
  // `part`: computes the weight from the parameter's values, with a gradient path to the shard; null: the values.
  explicit WeightForms(Parameter parameter, std::function<Tensor()> part = nullptr);

  const Parameter& parameter() const { return parameter_; }

  // A weight [out, in]. The first use does not pack it, to shorten the time to the first token.
  ops::Matrix matrix(const Pass& pass);
  // A stack [n, out, in]: weight e multiplies the rows [begin[e], begin[e + 1]), and is packed if it has rows.
  ops::ExpertMatrices stack(const std::vector<int64_t>& begin, const Pass& pass);

  // `rows` of the values were read one by one. What lies twice, packed and in the file's own bytes, is released again
  // after some rows, because each brings its neighbours into memory.
  void looked_up(int64_t rows);

  // The optimizer's hook. The cached copy in the computation's dtype; undefined if there is none or it is stale. An
  // optimizer that writes the shard may write this copy in the same sweep, and then calls copied() after
  // Entry::written(). A copy that nobody wrote is computed again.
  Tensor copy() const;
  void copied();

 private:
  // The weight of one call.
  struct Values {
    Tensor master, compute;
    bool packs;  // a packed form may be kept
  };
  Values current(const Pass& pass);
  void drop();

  Parameter parameter_;
  std::function<Tensor()> part_;
  Tensor part_values_;                                                // the result of part_
  Tensor compute_;                                                    // undefined if the values have the compute dtype
  std::vector<std::shared_ptr<const kernels::PackedWeight>> packed_;  // one for each weight of the stack
  uint64_t version_ = 0;
  bool used_ = false;
  int64_t rows_in_memory_ = 0;  // looked up since they were last released
};

}  // namespace easydel::nn
