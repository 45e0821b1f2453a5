// Which parameters of a model learn. It is decided before a parameter is made, so that what does not learn never has a
// gradient or an optimizer's state.
#pragma once

#include <optional>
#include <regex>
#include <string>
#include <string_view>

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

  bool contains(std::string_view path) const;

 private:
  Trainable(const std::string& pattern, bool found) : pattern_(pattern), found_(found) {}

  std::optional<std::regex> pattern_;
  bool found_ = false;  // with a pattern: whether those that it finds learn, or the others
  bool all_ = true;     // without one
};

}  // namespace easydel::nn
