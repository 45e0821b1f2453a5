// What is to stand behind a stack: a language head, as its family has it, a head of classes, or nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "easydel/ops/activation.h"

namespace easydel::nn {

// Which tokens of a sequence speak for it.
enum class Pooling : uint8_t {
  none,  // each for itself
  first,
  last,  // the last that is no padding
  mean
};

// Scores of classes: pool, then dropout and a dense layer with its activation and its norm, then dropout and the
// output. What has no name is left out. Names begin at the model's root.
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
  std::optional<int64_t> padding = {};  // Pooling::last: the id of tokens that are passed over
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
