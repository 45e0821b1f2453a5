// Weights with low-rank adapters: y = W x + scale * B A x (LoRA, arXiv:2106.09685), and with a trained length for each
// row (DoRA, arXiv:2402.09353). The base may be in any form. With B = 0 the results have the base's bits.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "easydel/nn/weight.h"
#include "easydel/ops/low_rank.h"

namespace easydel::nn {

// The parameters of one adapter on one weight.
struct LowRank {
  Parameter a, b;  // [r, in] and [out, r]; of an embedding, [rows, r] and [size, r]
  Parameter bias;  // of B, [out]; none: it has no bias
  // DoRA: the lengths of the rows, [out]; of an embedding, of the columns, [size]. None: plain LoRA.
  Parameter magnitude;
  double scale = 1;
  double dropout = 0;  // of x, while a model trains
  std::string path;    // of the layer: names the draws of the dropout
};

// An adapter's part of a stack that Weight::by_head returned.
class HeadAdapter {
 public:
  virtual ~HeadAdapter() = default;
  // y: the base's product of x -> with the adapter. x and begin as in WeightStack::product.
  virtual Tensor product(const Tensor& y, const Tensor& x, const std::vector<int64_t>& begin, Pass& pass) = 0;
  // The stack that replaces the base; null: it adds to the base's results.
  virtual WeightStack* replacement() { return nullptr; }
};

// What an adapter makes of the base's results of one weight. Rows do not depend on each other.
class WeightAdapter {
 public:
  virtual ~WeightAdapter() = default;
  // y [rows, out]: the base's product of x, with its bias -> with the adapter. What nobody else holds is overwritten.
  virtual Tensor product(Tensor y, const Tensor& x, const Tensor& bias, Pass& pass) = 0;
  // The same for an x that is made of two tensors which are kept for the backward anyway.
  virtual Tensor gated_product(Tensor y, const Tensor& x, const ops::GatedInput& /*made_of*/, const Tensor& bias,
                               Pass& pass) {
    return product(std::move(y), x, bias, pass);
  }
  // What product() adds to y if that is a product of low rank that ops::add_low_ranks() takes in this pass and no more,
  // and its scale; no forms: it is something else.
  struct OfLowRank {
    std::shared_ptr<const ops::LowRankForms> forms;
    double scale = 1;
  };
  virtual OfLowRank of_low_rank(const Tensor&, Pass&) { return {}; }
  // y [tokens, in]: the base's rows of an embedding -> with the adapter.
  virtual Tensor lookup(const Tensor& y, const Tensor& indices, int64_t padding, Pass& pass) = 0;
  // What it adds to Weight::factors; of a weight that replaces the base, its own.
  virtual std::vector<ops::Factors> factors(const Tensor& x, Pass& pass) = 0;
  virtual std::shared_ptr<HeadAdapter> by_head(const HeadRows& rows) = 0;
  // The weight that replaces the base; null: it adds to the base's results.
  virtual Weight* replacement() { return nullptr; }
};

// `base` and `parameter` as below; DoRA reads them. `embedding`: rows of A are looked up.
std::shared_ptr<WeightAdapter> low_rank_adapter(std::shared_ptr<Weight> base, Parameter parameter, LowRank adapter,
                                                bool embedding);
std::shared_ptr<WeightAdapter> replacing_adapter(std::shared_ptr<Weight> own);
// Rows `ids` of the base, an embedding or an output layer, are those of `rows` [ids, in] instead.
std::shared_ptr<WeightAdapter> rows_adapter(Parameter base, std::vector<int64_t> ids, Parameter rows);

// Shared by the weights of one adapter.
struct AdapterSwitch {
  bool merged = false;  // the base's values contain the adapter
};

// `base` with the adapter, of a linear layer, an output layer or an embedding. `parameter` is the base's.
std::shared_ptr<Weight> adapted_weight(std::shared_ptr<Weight> base, Parameter parameter, LowRank adapter,
                                       bool embedding, std::shared_ptr<const AdapterSwitch> state);
std::shared_ptr<Weight> adapted_weight(std::shared_ptr<Weight> base, std::shared_ptr<WeightAdapter> adapter,
                                       std::shared_ptr<const AdapterSwitch> state);

// The factors of a stack of `experts` weights [n, out, in] as PEFT holds them: A [n * r, in], and B [rows, r * n],
// where the columns of the experts alternate. Rows first, first + step, .. of B are those of the stack.
struct ExpertFactors {
  Parameter a, b;
  int64_t experts = 0, first = 0, step = 1, rows = 0;
  double scale = 1;

  Tensor a_of(const Tensor& whole) const;  // [n, r, in], a view
  Tensor b_of(const Tensor& whole) const;  // [n, rows, r], a view
};
std::shared_ptr<WeightStack> adapted_stack(std::shared_ptr<WeightStack> base, const ExpertFactors& factors,
                                           std::shared_ptr<const AdapterSwitch> state);
// fp32 [n, out, in]: base + scale * B A of each expert. a and b are the whole parameters.
Tensor merged_stack(const Tensor& base, const ExpertFactors& factors, const Tensor& a, const Tensor& b);

// Read instead of `base` by passes with adapters: a layer that is trained in full.
std::shared_ptr<Weight> replaced_weight(std::shared_ptr<Weight> base, std::shared_ptr<Weight> own,
                                        std::shared_ptr<const AdapterSwitch> state);

// y + scale * (x A^T) B^T for a product y of x (ops::add_low_rank). What it derives from both is kept until
// they change.
class LowRankSum {
 public:
  LowRankSum(Parameter a, Parameter b, double scale) : a_(a), b_(b), scale_(scale) {}
  Tensor operator()(Tensor y, const Tensor& x, Pass& pass, const ops::GatedInput* made_of = nullptr);
  // Null while they learn.
  std::shared_ptr<const ops::LowRankForms> forms(const Tensor& x, Pass& pass);

 private:
  struct Kept {
    ops::Matrix a, b;
    std::shared_ptr<const ops::LowRankForms> forms;  // null while they learn
    std::array<uint64_t, 2> versions = {};
  };
  Parameter a_, b_;
  double scale_;
  Kept kept_;
};

// The length of each row of base + scale * B A, fp32 [out], without a gradient. base [out, in], a [r, in], b [out, r]
// may have any floating dtype. An undefined b stands for zeros.
Tensor row_lengths(const Tensor& base, const Tensor& a, const Tensor& b, double scale);

// fp32 [out, in]: base + scale * B A, with DoRA's rows brought to `magnitude` (undefined: they are not).
Tensor merged_values(const Tensor& base, const Tensor& a, const Tensor& b, const Tensor& magnitude, double scale);

}  // namespace easydel::nn
