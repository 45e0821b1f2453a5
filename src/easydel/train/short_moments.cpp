#include "easydel/train/short_moments.h"

#include <utility>

namespace easydel::train {
namespace {

bool is_first_moment(std::string_view state) { return state == "mean" || state == "momentum"; }

class ShortMoments final : public UpdateRule {
 public:
  explicit ShortMoments(std::shared_ptr<const UpdateRule> rule) : rule_(std::move(rule)) {}

  bool whole() const override { return rule_->whole(); }
  bool copies() const override { return rule_->copies(); }
  bool scales() const override { return rule_->scales(); }
  Tensor averaged(const Tensor& value, const OptimizerStates& states) const override {
    return rule_->averaged(value, states);
  }

  OptimizerStates start(const Tensor& value) const override {
    OptimizerStates out = rule_->start(value);
    for (auto& [name, state] : out)
      if (is_first_moment(name)) state = state.to(at::kBFloat16);
    return out;
  }

  void update(const Update& u) const override {
    OptimizerStates states = u.states;
    for (auto& [name, state] : states)
      if (is_first_moment(name)) state = state.to(at::kFloat);
    rule_->update({u.value, u.gradient, states, u.step, u.rate, u.decay, u.copy, u.scale});
    for (const auto& [name, state] : states) {
      Tensor& kept = u.state(name);
      is_first_moment(name) ? void(kept.copy_(state)) : void(kept = state);
    }
  }

 private:
  std::shared_ptr<const UpdateRule> rule_;
};

}  // namespace

std::unique_ptr<UpdateRule> short_moments(std::shared_ptr<const UpdateRule> rule) {
  return std::make_unique<ShortMoments>(std::move(rule));
}

}  // namespace easydel::train
