// Which head a stack gets: the family's language head, a classification head, or none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "easydel/ops/activation.h"

namespace easydel::nn {

// Which hidden states of a sequence a head reads.
enum class Pooling : uint8_t {
  none,  // each token's
  first,
  last,  // of the last token that is not padding
  mean,
  weighted_mean,  // the n-th token counts n times
  max             // of each number
};

// Scores of classes: pool, then dropout and a dense layer with its activation and its norm, then dropout and the
// output layer. A layer without a name is left out. Names begin at the model's root.
struct ClassHeadSpec {
  Pooling pooling = Pooling::none;
  std::string dense = {}, norm = {}, output = {};
  ops::Activation activation = ops::Activation::tanh;
  bool dense_bias = true, norm_bias = true, output_bias = true;
  bool dropout_before_dense = false;
  double norm_epsilon = 1e-5;
  double dropout = 0.0;
  double dense_deviation = 0.02, output_deviation = 0.02;  // of initial values
  int64_t labels = 2;
  std::optional<int64_t> padding = {};  // Pooling::last: the id of tokens that are skipped
};

struct HeadPlan {
  bool language = true;
  std::optional<ClassHeadSpec> classes =
      {};  // without a language head: the classes of most decoders; empty: the bare stack
  // Checkpoints with this head call the stack `stack` where the family says `family_stack`; empty: nothing at all.
  std::string family_stack = {}, stack = {};

  // A name of the family's stack as it is with this head.
  std::string stack_name(const std::string& name) const {
    if (family_stack == stack || (name != family_stack && !name.starts_with(family_stack + "."))) return name;
    std::string rest = name.substr(family_stack.size());
    if (stack.empty() && !rest.empty()) rest.erase(0, 1);
    return stack + rest;
  }
};

}  // namespace easydel::nn
