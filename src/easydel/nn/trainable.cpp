#include "easydel/nn/trainable.h"

#include <algorithm>
#include <utility>

namespace easydel::nn {

Trainable Trainable::nothing() {
  Trainable out;
  out.all_ = false;
  return out;
}

Trainable Trainable::without_layers(std::vector<int64_t> layers) const {
  Trainable out = *this;
  out.frozen_layers_ = std::move(layers);
  return out;
}

bool Trainable::contains(std::string_view path, int64_t layer) const {
  if (std::ranges::count(frozen_layers_, layer) > 0) return false;
  if (!pattern_) return all_;
  return pattern_->found_in(path) == found_;
}

}  // namespace easydel::nn
