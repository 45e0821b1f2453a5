#include "easydel/nn/activations.h"

namespace easydel::nn {

Tensor Activations::name(std::string_view name, Tensor x) const {
  if (capture) capture(path_.empty() ? std::string(name) : path_ + "." + std::string(name), x);
  return x;
}

void Activations::keep(std::string_view name, const Tensor& x) { (*saving_)[std::string(name)].push_back(x.detach()); }

Tensor Activations::given(std::string_view name) {
  if (!giving_) return {};
  const auto found = giving_->find(name);
  if (found == giving_->end()) return {};
  return found->second.at(given_[found->first]++);
}

}  // namespace easydel::nn
