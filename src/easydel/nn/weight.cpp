#include "easydel/nn/weight.h"

#include "easydel/base/error.h"
#include "easydel/nn/gather.h"
#include "easydel/ops/quantized_product.h"
#include "easydel/tensor/mapped.h"

namespace easydel::nn {
namespace {

class DenseWeight final : public Weight {
 public:
  explicit DenseWeight(Parameter parameter) : parameter_(parameter) {}

  Tensor product(const Tensor& x, const Tensor& bias, const Tensor& given) override {
    return ops::product(x, matrix(), bias, given);
  }

  Tensor gated_product(const Tensor& gate, const Tensor& up, ops::Activation kind, const Tensor& bias,
                       const Tensor& given) override {
    return ops::gated_product(gate, up, kind, matrix(), bias, given);
  }

  ops::Matrix matrix() override {
    const Entry& entry = parameter_.entry();
    const Tensor master = parameter_.value();
    if (is_gathered(entry)) {
      const Tensor compute = master.scalar_type() == entry.compute ? master : master.detach().to(entry.compute);
      return {master, compute, nullptr};
    }
    if (version_ != entry.version) {
      compute_ = Tensor();
      packed_ = nullptr;
      used_ = false;
      version_ = entry.version;
    }
    ops::Matrix out{master, master, nullptr};
    if (master.scalar_type() != entry.compute) {
      if (!compute_.defined()) {
        const c10::InferenceMode kept_for_training(false);
        compute_ = master.detach().to(entry.compute);
      }
      out.compute = compute_;
    }
    // A weight that learns is packed where it is used: it changes every step, and the room is needed for activations.
    if (master.requires_grad() && at::GradMode::is_enabled()) {
      packed_ = nullptr;
    } else if (!used_) {
      used_ = true;  // what is used once need not be packed as a whole: a prompt's answer begins sooner
    } else if (!packed_) {
      packed_ = ops::pack(out.compute);
      // The file's own bytes are not needed beside the packed ones.
      if (packed_ && entry.version == 0) tensor::forget(master);
    }
    out.packed = packed_;
    return out;
  }

  Tensor copy() override { return version_ == parameter_.entry().version ? compute_ : Tensor(); }
  void copied() override {
    version_ = parameter_.entry().version;
    packed_ = nullptr;
  }

 private:
  Parameter parameter_;
  Tensor compute_;
  std::shared_ptr<const kernels::PackedWeight> packed_;
  uint64_t version_ = 0;
  bool used_ = false;
};

class QuantizedWeight final : public Weight {
 public:
  QuantizedWeight(std::shared_ptr<const kernels::QuantizedWeight> codes, at::ScalarType type)
      : codes_(std::move(codes)), type_(type) {}

  Tensor product(const Tensor& x, const Tensor& bias, const Tensor& given) override {
    return ops::product(x, matrix(), bias, given);
  }
  ops::Matrix matrix() override { return {Tensor(), Tensor(), nullptr, codes_}; }
  Tensor values() const override { return ops::dequantized(*codes_, type_); }

 private:
  std::shared_ptr<const kernels::QuantizedWeight> codes_;
  at::ScalarType type_;
};

}  // namespace

Tensor Weight::values() const { throw Bug("weight: its values are its parameter's"); }

std::shared_ptr<Weight> quantized_weight(std::shared_ptr<const kernels::QuantizedWeight> codes, at::ScalarType type) {
  return std::make_shared<QuantizedWeight>(std::move(codes), type);
}

std::shared_ptr<Weight> dense_weight(Parameter parameter) { return std::make_shared<DenseWeight>(parameter); }

}  // namespace easydel::nn
