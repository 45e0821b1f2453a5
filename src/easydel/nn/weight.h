// How a product reads a weight: the parameter's values (nn/weight_forms.h), codes, or what a policy replaced either by
// (nn/weight_policy.h). Replaceable after construction through Entry::weight and Entry::stack.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "easydel/nn/pass.h"
#include "easydel/nn/weight_forms.h"
#include "easydel/ops/low_rank.h"
#include "easydel/ops/product.h"

namespace easydel::nn {

// Rows of a weight [heads * rows of a head, in] that belong to a part of each head: [first, first + rows) of it.
// `transposed`: as a weight from these rows to `in`.
struct HeadRows {
  int64_t heads = 1, first = 0, rows = 0;
  bool transposed = false;
};

// A stack of equal weights [n, out, in]: experts, or the heads of one weight.
class WeightStack {
 public:
  virtual ~WeightStack() = default;
  // x [rows, in] -> [rows, out]; weight e multiplies the rows [begin[e], begin[e + 1]). bias [n, out] or undefined.
  // Rows of experts are sorted by expert: pass.stream().row_sequences(x.size(0)) says which sequence each belongs to,
  // and row_tokens which token it is of. Of heads each has all rows, in the order of sequences:
  // row_offsets(begin[1] - begin[0]) is right for each.
  virtual Tensor product(const Tensor& x, const std::vector<int64_t>& begin, const Tensor& bias, Pass& pass) = 0;
  // All values, [n, out, in], of a form whose parameter does not hold them; else Bug.
  virtual Tensor values() const;
  // The stack that this one wraps; null: none.
  virtual WeightStack* base() { return nullptr; }
};

// The weight [out, in] of a linear layer, a head or an embedding. Everything that reads it asks this interface, so that
// an adapter that wraps a weight is seen by all of them.
class Weight {
 public:
  virtual ~Weight() = default;
  // x [rows, in] -> [rows, out]; as ops::product. The product is made under `name` (pass.make), so a checkpoint policy
  // may keep it; empty: it is never kept. A weight that wraps another passes the name on, and has its own products
  // computed again: what is kept is always the result of one product, whatever is added to it afterwards.
  // pass.stream().row_offsets(x.size(0)) says which rows belong to which sequence.
  virtual Tensor product(const Tensor& x, const Tensor& bias, std::string_view name, Pass& pass) = 0;
  // product(gated(gate, up)), keeping as little as possible for the backward.
  virtual Tensor gated_product(const Tensor& gate, const Tensor& up, ops::Activation kind, const Tensor& bias,
                               std::string_view name, Pass& pass) {
    return product(ops::gated(gate, up, kind), bias, name, pass);
  }
  // What product() computes of x: its product with one matrix, and what adapters of low rank add to rows of that
  // (ops::add_low_ranks); nullopt: it is something else, or a backward of the adapters follows.
  struct AdaptedMatrix {
    ops::Matrix matrix;
    std::vector<ops::AddedRows> added = {};
  };
  virtual std::optional<AdaptedMatrix> adapted_matrix(const Tensor& /*x*/, Pass&) { return std::nullopt; }
  // The product with x as a sum of plain products. Heads need it, because they compute chunks of tokens.
  virtual std::vector<ops::Factors> factors(const Tensor& x, Pass& pass) = 0;
  // Rows of an embedding: indices int64 [tokens] -> [tokens, in]; `padding` as in ops::embedding.
  virtual Tensor lookup(const Tensor& indices, int64_t padding, Pass& pass) = 0;
  // A part of each head as a stack with one weight for each head.
  virtual std::shared_ptr<WeightStack> by_head(const HeadRows& rows) = 0;
  // All values, [out, in], of a form whose parameter does not hold them; else Bug.
  virtual Tensor values() const;
  // The weight that this one wraps; null: none.
  virtual Weight* base() { return nullptr; }
};

// The parameter's values, read through its forms.
std::shared_ptr<Weight> dense_weight(std::shared_ptr<WeightForms> forms);
// The same for a stack. `grouped`: all in one grouped product, else one product for each weight that has rows.
std::shared_ptr<WeightStack> dense_stack(std::shared_ptr<WeightForms> forms, bool grouped);

// A part of each head of a weight [heads * rows of a head, in], whose values come from `whole`, with a gradient path.
std::shared_ptr<WeightStack> stack_of_heads(Parameter parameter, const HeadRows& rows, std::function<Tensor()> whole);

// Codes that never change, quantized or as their file holds them. `parameter` is the one that they stand
// for; `type` is the dtype of values(). Gradients flow to x and to the bias only.
std::shared_ptr<Weight> quantized_weight(Parameter parameter, ops::Matrix codes, at::ScalarType type);
// The same for a stack, one matrix for each of its weights.
std::shared_ptr<WeightStack> quantized_stack(std::vector<ops::Matrix> codes, at::ScalarType type);
// What products read of an entry in codes: of a weight one matrix, of a stack one for each of its weights. Bug if the
// entry holds values. Collective where ranks keep parts of the rows.
std::vector<ops::Matrix> whole_codes(const Entry& entry);
// Makes products read `merged` instead of the entry's codes, which stay as they are; none: the codes again. Returns
// what they read instead until now.
std::vector<ops::Matrix> read_instead_of_codes(Entry& entry, std::vector<ops::Matrix> merged);
// The values of whole_codes(entry): [out, in], or [n, out, in].
Tensor values_of(const std::vector<ops::Matrix>& codes, const Entry& entry, at::ScalarType type);

}  // namespace easydel::nn
