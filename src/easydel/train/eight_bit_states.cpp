#include "easydel/train/eight_bit_states.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
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

  // In pieces that stay in a cache, because a rule goes by elements: states in fp32 are never whole.
  void update(const Update& u) const override {
    if (u.value.numel() < min_coded_elements) return rule_->update(u);
    const Tensor value = u.value.view({-1}), gradient = u.gradient.reshape({-1}),
                 copy = u.copy.defined() ? u.copy.view({-1}) : u.copy;
    for (int64_t first = 0; first < value.numel(); first += piece) {
      const int64_t count = std::min(piece, value.numel() - first);
      OptimizerStates plain;
      for (const auto& [name, codes] : u.states)
        if (const size_t end = name.rfind("_codes"); end != std::string::npos && end + 6 == name.size())
          plain[name.substr(0, end)] = decoded(name.substr(0, end), u.states, first, count);
      Tensor part = value.narrow(0, first, count);
      const Tensor own = gradient.narrow(0, first, count);
      rule_->update(
          {part, own, plain, u.step, u.rate, u.decay, copy.defined() ? copy.narrow(0, first, count) : copy, u.scale});
      for (const auto& [name, state] : plain) encode(name, state, u.states, first);
    }
  }

 private:
  static constexpr int64_t piece = 1 << 20;  // whole blocks

  static Tensor decoded(const std::string& name, const OptimizerStates& states, int64_t first, int64_t count) {
    const Tensor &codes = states.at(name + "_codes"), &scales = states.at(name + "_scales");
    Tensor out = at::empty({count}, codes.options().dtype(at::kFloat));
    quant::dequantize_dynamic(tensor::executor(), has_sign(name), codes.const_data_ptr<uint8_t>() + first,
                              scales.const_data_ptr<float>() + first / block, count, block,
                              out.mutable_data_ptr<float>());
    return out;
  }
  // `state`: the elements from `first` on.
  static void encode(const std::string& name, const Tensor& state, const OptimizerStates& states, int64_t first = 0) {
    const Tensor values = state.contiguous();
    quant::quantize_dynamic(tensor::executor(), has_sign(name), values.const_data_ptr<float>(), values.numel(), block,
                            states.at(name + "_codes").mutable_data_ptr<uint8_t>() + first,
                            states.at(name + "_scales").mutable_data_ptr<float>() + first / block);
  }

  std::unique_ptr<UpdateRule> rule_;
};

}  // namespace

std::unique_ptr<UpdateRule> eight_bit(std::unique_ptr<UpdateRule> rule) {
  return std::make_unique<EightBitStates>(std::move(rule));
}

}  // namespace easydel::train
