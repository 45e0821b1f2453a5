#include "easydel/train/eight_bit_states.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "easydel/kernels/memory.h"
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
    }
    for (const Coded& state : coded(out))
      state.encode(tensor::executor(), 0, value.numel(), plain[state.name].contiguous().const_data_ptr<float>());
    return out;
  }

  // A piece at a time, because a rule goes by elements: states in fp32 are never whole.
  void update(const Update& u) const override {
    if (u.value.numel() < min_coded_elements) return rule_->update(u);
    const std::vector<Coded> states = coded(u.states);
    const Tensor value = u.value.view({-1}), gradient = u.gradient.reshape({-1}),
                 copy = u.copy.defined() ? u.copy.view({-1}) : u.copy;
    Tensor whole = value;
    OptimizerStates none;
    const Update of_all{whole, gradient, none, u.step, u.rate, u.decay, copy, u.scale};
    if (const Part part = rule_->part_of(of_all)) return by_threads(part, states, value.numel());
    for (int64_t first = 0; first < value.numel(); first += piece) {
      const int64_t count = std::min(piece, value.numel() - first);
      OptimizerStates plain;
      for (const Coded& state : states) {
        const Tensor& numbers = plain[state.name] = at::empty({count}, value.options());
        state.decode(tensor::executor(), first, count, numbers.mutable_data_ptr<float>());
      }
      Tensor part = value.narrow(0, first, count);
      const Tensor own = gradient.narrow(0, first, count);
      rule_->update(
          {part, own, plain, u.step, u.rate, u.decay, copy.defined() ? copy.narrow(0, first, count) : copy, u.scale});
      for (const Coded& state : states)
        state.encode(tensor::executor(), first, count, plain[state.name].const_data_ptr<float>());
    }
  }

 private:
  static constexpr int64_t piece = 1 << 20;           // whole blocks
  static constexpr int64_t part_of_task = 4 * block;  // its numbers and those of two states fit into L1

  // One state of a parameter.
  struct Coded {
    std::string name;
    bool has_sign;
    uint8_t* codes;
    float* scales;  // of each block

    void decode(kernels::Executor& executor, int64_t first, int64_t count, float* to) const {
      quant::dequantize_dynamic(executor, has_sign, codes + first, scales + first / block, count, block, to);
    }
    void encode(kernels::Executor& executor, int64_t first, int64_t count, const float* from) const {
      quant::quantize_dynamic(executor, has_sign, from, count, block, codes + first, scales + first / block);
    }
  };

  // In the order of their names.
  static std::vector<Coded> coded(const OptimizerStates& states) {
    std::vector<Coded> out;
    for (const auto& [name, codes] : states) {
      if (!name.ends_with("_codes")) continue;
      const std::string plain = name.substr(0, name.size() - 6);
      out.push_back({plain, has_sign(plain), codes.mutable_data_ptr<uint8_t>(),
                     states.at(plain + "_scales").mutable_data_ptr<float>()});
    }
    return out;
  }

  // Each thread decodes, updates and encodes a part while it is in its cache.
  static void by_threads(const Part& part, const std::vector<Coded>& states, int64_t count) {
    constexpr int64_t of_task = 16 * part_of_task;
    tensor::executor().run((count + of_task - 1) / of_task, [&](int64_t task) {
      thread_local kernels::Scratch<float> memory;
      float* const numbers = memory.at_least(int64_t(states.size()) * part_of_task);
      std::vector<float*> of_states;
      for (size_t i = 0; i < states.size(); ++i) of_states.push_back(numbers + int64_t(i) * part_of_task);
      for (int64_t first = task * of_task; first < std::min((task + 1) * of_task, count); first += part_of_task) {
        const int64_t own = std::min(part_of_task, count - first);
        for (size_t i = 0; i < states.size(); ++i)
          states[i].decode(kernels::serial_executor(), first, own, of_states[i]);
        part(first, own, of_states);
        for (size_t i = 0; i < states.size(); ++i)
          states[i].encode(kernels::serial_executor(), first, own, of_states[i]);
      }
    });
  }

  std::unique_ptr<UpdateRule> rule_;
};

}  // namespace

std::unique_ptr<UpdateRule> eight_bit(std::unique_ptr<UpdateRule> rule) {
  return std::make_unique<EightBitStates>(std::move(rule));
}

}  // namespace easydel::train
