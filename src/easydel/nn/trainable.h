// Which parameters of a model are trained. It is decided before a parameter is created, so that frozen parameters never
// have a gradient or optimizer state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/regular_expression.h"

namespace easydel::nn {

class Trainable {
 public:
  Trainable() = default;  // everything
  static Trainable everything() { return {}; }
  static Trainable nothing();
  // The parameters in whose path ("model.layers.0.self_attn.q_proj.weight") the regular expression is found, and all
  // others.
  static Trainable matching(const std::string& pattern) { return {pattern, true}; }
  static Trainable except(const std::string& pattern) { return {pattern, false}; }
  // The same without the parameters of these layers, by number.
  Trainable without_layers(std::vector<int64_t> layers) const;

  // `layer`: number of the parameter's layer; -1: it is outside the stack.
  bool contains(std::string_view path, int64_t layer = -1) const;

 private:
  Trainable(const std::string& pattern, bool found) : pattern_(pattern), found_(found) {}

  std::optional<RegularExpression> pattern_;
  bool found_ = false;  // with a pattern: whether the parameters that match are trained, or the others
  bool all_ = true;     // without one
  std::vector<int64_t> frozen_layers_;
};

}  // namespace easydel::nn
