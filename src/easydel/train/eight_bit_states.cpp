#include "easydel/train/eight_bit_states.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "easydel/quant/dynamic_map.h"
#include "easydel/tensor/executor.h"

namespace easydel::train {
namespace {

constexpr int64_t block = 256;

bool has_sign(std::string_view state) { return state != "square"; }

class EightBitStates final : public UpdateRule {
 public:
  explicit EightBitStates(std::unique_ptr<UpdateRule> rule) : rule_(std::move(rule)) {}

  bool whole() const override { return true; }
  bool copies() const override { return rule_->copies(); }
  bool scales() const override { return rule_->scales(); }

  OptimizerStates start(const Tensor& value) const override {
    OptimizerStates plain = rule_->start(value);
    if (value.numel() < min_coded_elements) return plain;
    OptimizerStates out;
    for (const auto& [name, state] : plain) {
      out[name + "_codes"] = at::zeros(value.sizes(), value.options().dtype(at::kByte));
      out[name + "_scales"] = at::zeros({(value.numel() + block - 1) / block}, value.options().dtype(at::kFloat));
      encode(name, state, out);
    }
    return out;
  }

  void update(const Update& u) const override {
    if (u.value.numel() < min_coded_elements) return rule_->update(u);
    OptimizerStates plain;
    for (const auto& [name, codes] : u.states)
      if (const size_t end = name.rfind("_codes"); end != std::string::npos && end + 6 == name.size())
        plain[name.substr(0, end)] = decoded(name.substr(0, end), u.states, u.value.sizes());
    rule_->update({u.value, u.gradient, plain, u.step, u.rate, u.decay, u.copy, u.scale});
    for (const auto& [name, state] : plain) encode(name, state, u.states);
  }

 private:
  static Tensor decoded(const std::string& name, const OptimizerStates& states, at::IntArrayRef shape) {
    const Tensor &codes = states.at(name + "_codes"), &scales = states.at(name + "_scales");
    Tensor out = at::empty(shape, codes.options().dtype(at::kFloat));
    quant::dequantize_dynamic(tensor::executor(), has_sign(name), codes.const_data_ptr<uint8_t>(),
                              scales.const_data_ptr<float>(), out.numel(), block, out.mutable_data_ptr<float>());
    return out;
  }
  static void encode(const std::string& name, const Tensor& state, const OptimizerStates& states) {
    const Tensor values = state.contiguous();
    quant::quantize_dynamic(tensor::executor(), has_sign(name), values.const_data_ptr<float>(), values.numel(), block,
                            states.at(name + "_codes").mutable_data_ptr<uint8_t>(),
                            states.at(name + "_scales").mutable_data_ptr<float>());
  }

  std::unique_ptr<UpdateRule> rule_;
};

}  // namespace

std::unique_ptr<UpdateRule> eight_bit(std::unique_ptr<UpdateRule> rule) {
  return std::make_unique<EightBitStates>(std::move(rule));
}

}  // namespace easydel::train
