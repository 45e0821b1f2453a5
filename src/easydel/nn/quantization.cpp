#include "easydel/nn/quantization.h"

#include <ATen/ops/stack.h>

#include <algorithm>
#include <cstdio>

#include "easydel/base/error.h"
#include "easydel/base/regular_expression.h"
#include "easydel/nn/made_codes.h"
#include "easydel/ops/quantized_product.h"
#include "easydel/quant/quantize.h"
#include "easydel/tensor/mapped.h"

namespace easydel::nn {
namespace {

std::string megabytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", double(bytes) * 1e-6);
  return text;
}

}  // namespace

Quantizer::Quantizer(const Quantization& quantization)
    : quantization_(quantization),
      pattern_(quantization.pattern, quantization.where + ".pattern"),
      linear_pattern_(pattern_expression(quantization.linear_pattern, "quantization.linear_pattern")) {}

std::shared_ptr<Weight> Quantizer::linear(const Scope& scope, Entry& entry, std::shared_ptr<Weight> weight,
                                          bool shared) {
  if (quantization_.of_codes) return converted_.contains(&entry) ? coded(entry, std::move(weight), shared) : weight;
  const bool taken = takes(entry, scope.path(), shared);
  if (const auto table = tables_.find(&entry); table != tables_.end()) return table->second;
  if (!taken || !entry.shard.defined()) return weight;
  return coded(entry, std::move(weight), shared);
}

std::shared_ptr<Weight> Quantizer::embedding(const Scope&, Entry& entry, std::shared_ptr<Weight> weight) {
  if (quantization_.of_codes || !pattern_.names(entry)) return weight;
  ++weights_;
  if (!entry.shard.defined()) return weight;
  weight = coded(entry, std::move(weight), /*shared=*/false);
  if (!quantization_.simulate) tables_[&entry] = weight;
  return weight;
}

std::shared_ptr<WeightStack> Quantizer::experts(const Scope&, Entry& entry, std::shared_ptr<WeightStack> weight) {
  if (quantization_.of_codes ? !converted_.contains(&entry) : !pattern_.names(entry)) return weight;
  if (!quantization_.of_codes) ++weights_;
  if (entry.team->size() > 1)
    refuse(quantization_.where, str(entry.path, ": experts in codes on several ranks are not built yet"),
           "run one rank, or leave them out of the pattern");
  if (!entry.shard.defined()) return weight;
  const Tensor values = entry.shard;
  bytes_before_ += int64_t(values.nbytes());
  std::vector<ops::Matrix> codes;
  std::vector<Tensor> rounded;
  for (int64_t e = 0; e < values.size(0); ++e) {
    if (quantization_.simulate) {
      rounded.push_back(quant::rounded(values[e], quantization_.format));
      continue;
    }
    codes.push_back(codes_of(values[e], entry.compute));
  }
  if (quantization_.simulate) {
    entry.shard = at::stack(rounded);
    bytes_ += int64_t(values.nbytes());
    return weight;
  }
  entry.shard = Tensor();
  tensor::forget(values);
  return quantized_stack(std::move(codes), entry.compute, quantization_.format);
}

bool Quantizer::takes(const Entry& entry, const std::string& layer, bool shared) {
  const bool by_default = !entry.head && !shared;
  const bool taken = pattern_.takes(entry, layer, shared) && linear_pattern_.found_in(layer);
  if (taken) ++weights_;
  if (!taken && by_default) seen_ = layer;
  return taken;
}

std::shared_ptr<Weight> Quantizer::coded(Entry& entry, std::shared_ptr<Weight> weight, bool shared) {
  const at::NoGradGuard no_gradient;
  // Groups go along rows, which ranks may have parts of.
  const Tensor values = entry.team->whole(entry.shard.detach(), entry.layout);
  bytes_before_ += int64_t(values.nbytes());
  if (quantization_.simulate && !shared) {
    entry.shard = entry.team->cut(quant::rounded(values, quantization_.format), entry.layout).contiguous();
    bytes_ += int64_t(values.nbytes());
    return weight;
  }
  const ops::Matrix codes = codes_of(values, entry.compute);
  if (!shared) entry.shard = Tensor();
  tensor::forget(values);  // the mapped bytes of the file are not needed any more
  return quantized_weight(Parameter(&entry), codes, entry.compute, quantization_.format);
}

ops::Matrix Quantizer::codes_of(const Tensor& values, at::ScalarType compute) {
  const auto stored = [&] { return ops::decoded(quant::coded(values, *quantization_.stored, at::kFloat), at::kFloat); };
  ops::Matrix codes = quant::coded(quantization_.stored ? stored() : values, quantization_.format, compute);
  bytes_ += quant::bytes_of(codes);
  return codes;
}

bool Quantizer::converts(const Entry& entry) {
  const std::string layer = layer_name(entry);
  if (!quantization_.of_codes || !pattern_.found_in(layer) || !linear_pattern_.found_in(layer)) return false;
  converted_.insert(&entry);
  return true;
}

void Quantizer::refuse_none() const {
  if (weights_ == 0 && !quantization_.of_codes)
    refuse(quantization_.where + ".pattern", str("no linear layer is called as '", quantization_.pattern, "' asks"),
           seen_.empty() ? "leave it out" : "one is called " + seen_);
}

std::string Quantizer::told() const {
  if (quantization_.of_codes)
    return str(counted(int64_t(converted_.size()), "weight"), " in codes read in ", quantization_.format.name, ": ",
               megabytes(bytes_), " MB");
  if (quantization_.stored)
    return str(weights_, " weights in ", quantization_.stored->name, " read in ", quantization_.format.name, ": ",
               megabytes(bytes_), " of ", megabytes(bytes_before_), " MB");
  return str(weights_, " weights in ", quantization_.format.name, ": ", megabytes(bytes_), " of ",
             megabytes(bytes_before_), " MB");
}

}  // namespace easydel::nn
