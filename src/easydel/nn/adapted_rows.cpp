// Single rows of an embedding or an output layer that an adapter replaces.
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "easydel/base/error.h"
#include "easydel/nn/adapted_weight.h"

namespace easydel::nn {
namespace {

class RowsAdapter final : public WeightAdapter {
 public:
  RowsAdapter(Parameter base, std::vector<int64_t> ids, Parameter rows)
      : base_(base), rows_(rows), count_(int64_t(ids.size())), ids_(at::tensor(ids, at::kLong)) {
    const int64_t all = base.entry().shape[0];
    place_ = at::full({all}, -1, at::kLong);
    for (int64_t i = 0; i < count_; ++i) place_[ids[size_t(i)]] = i;
    // One column for each of the rows, with a one where it is.
    columns_ = at::zeros({all, count_}, at::TensorOptions().dtype(base.entry().compute));
    for (int64_t i = 0; i < count_; ++i) columns_.select(0, ids[size_t(i)]).select(0, i).fill_(1);
  }

  Tensor product(Tensor y, const Tensor& x, const Tensor& bias, Pass& pass) override {
    Tensor own = rows_.entry().weight->product(x, {}, {}, pass);
    if (bias.defined()) own = own + bias.index_select(0, ids_).to(own.scalar_type());
    return y.index_copy(1, ids_, own);
  }
  Tensor lookup(const Tensor& y, const Tensor& indices, int64_t, Pass& pass) override {
    const Tensor place = place_.index_select(0, indices);
    const Tensor own = rows_.entry().weight->lookup(place.clamp_min(0), -1, pass);
    return at::where((place >= 0).unsqueeze(1), own, y);
  }
  // W x + C (R - W_ids) x, where C puts each difference into its column of the result: no bit changes while R is W_ids.
  std::vector<ops::Factors> factors(const Tensor& x, Pass&) override {
    const Tensor held = base_.value().detach().index_select(0, ids_).to(at::kFloat);
    const Tensor change = rows_.value().to(at::kFloat) - held;
    const at::ScalarType type = base_.entry().compute;
    const Tensor low = ops::product(x, {change, change.detach().to(type).contiguous(), nullptr});
    return {{low, {columns_, columns_, nullptr}}};
  }
  std::shared_ptr<HeadAdapter> by_head(const HeadRows&) override { throw Bug("rows of an embedding, by head"); }

 private:
  Parameter base_, rows_;
  int64_t count_;
  Tensor ids_, place_, columns_;
};

}  // namespace

std::shared_ptr<WeightAdapter> rows_adapter(Parameter base, std::vector<int64_t> ids, Parameter rows) {
  return std::make_shared<RowsAdapter>(base, std::move(ids), rows);
}

}  // namespace easydel::nn
