#include "easydel/nn/trainable.h"

namespace easydel::nn {

Trainable Trainable::nothing() {
  Trainable out;
  out.all_ = false;
  return out;
}

bool Trainable::contains(std::string_view path) const {
  if (!pattern_) return all_;
  return pattern_->found_in(path) == found_;
}

}  // namespace easydel::nn
