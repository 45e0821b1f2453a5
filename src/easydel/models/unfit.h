// What does not fit between a checkpoint and its model, so that it can be mended: names that are nearly right, and the
// keys of config.json that decide a size.
#pragma once

#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/nn/tensor_source.h"

namespace easydel::models {

// A tensor of another shape than config.json asks for.
struct Misshapen {
  std::string name, path;  // of the tensor in the file, of the parameter
  nn::TensorSource source;
  std::vector<int64_t> found, wanted;
};

// "[128, 32]"
std::string shape_text(const std::vector<int64_t>& shape);

// The one of `known` that is most like a tensor's name: other in a single one of its dotted parts, no number and nearly
// the same, or the same after a prefix. Empty: none.
std::string nearest_tensor(const std::string& name, const std::vector<std::string>& known);

// For each tensor, the integers of config.json ("num_key_value_heads", "attn_config.kv_n_heads") that determine a
// dimension in which file and model differ: each is changed by itself, and the model is planned again.
std::vector<std::vector<std::string>> deciding_keys(const Value& config, const std::string& where,
                                                    const std::vector<Misshapen>& tensors);

}  // namespace easydel::models
