#include "easydel/nn/weight.h"

namespace easydel::nn {
namespace {

class DenseWeight final : public Weight {
 public:
  explicit DenseWeight(Parameter parameter) : parameter_(parameter) {}

  Tensor product(const Tensor& x, const Tensor& bias, const Tensor& given) override {
    return ops::product(x, matrix(), bias, given);
  }

  ops::Matrix matrix() override {
    const Entry& entry = parameter_.entry();
    const Tensor master = parameter_.value();
    if (master.scalar_type() == entry.compute) return {master, master};
    if (!compute_.defined() || version_ != entry.version) {
      compute_ = master.detach().to(entry.compute);
      version_ = entry.version;
    }
    return {master, compute_};
  }

 private:
  Parameter parameter_;
  Tensor compute_;
  uint64_t version_ = 0;
};

}  // namespace

std::shared_ptr<Weight> dense_weight(Parameter parameter) { return std::make_shared<DenseWeight>(parameter); }

}  // namespace easydel::nn
