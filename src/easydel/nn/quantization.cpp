#include "easydel/nn/quantization.h"

#include <cstdio>

#include "easydel/base/error.h"
#include "easydel/base/regular_expression.h"
#include "easydel/nn/made_codes.h"
#include "easydel/quant/quantize.h"
#include "easydel/tensor/mapped.h"

namespace easydel::nn {
namespace {

RegularExpression compiled(const std::string& pattern, const std::string& where) {
  try {
    return RegularExpression(pattern);
  } catch (const InvalidRegularExpression&) {
    refuse(where, "'" + pattern + "' is not a regular expression", R"(for example: "self_attn|mlp")");
  }
}

std::string megabytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", double(bytes) * 1e-6);
  return text;
}

}  // namespace

Quantizer::Quantizer(const Quantization& quantization)
    : quantization_(quantization),
      pattern_(compiled(quantization.pattern, quantization.where + ".pattern")),
      linear_pattern_(compiled(quantization.linear_pattern, "quantization.linear_pattern")) {}

std::shared_ptr<Weight> Quantizer::linear(const Scope& scope, Entry& entry, std::shared_ptr<Weight> weight,
                                          bool shared) {
  if (!takes(entry, scope.path(), shared) || !entry.shard.defined()) return weight;
  return coded(entry, std::move(weight), shared);
}

bool Quantizer::takes(const Entry& entry, const std::string& layer, bool shared) {
  const bool by_default = !entry.head && !shared;
  const bool taken =
      (quantization_.pattern.empty() ? by_default : pattern_.found_in(layer)) && linear_pattern_.found_in(layer);
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
  const ops::Matrix codes = quant::coded(values, quantization_.format, entry.compute);
  bytes_ += quant::bytes_of(codes);
  if (!shared) entry.shard = Tensor();
  tensor::forget(values);  // the mapped bytes of the file are not needed any more
  return quantized_weight(Parameter(&entry), codes, entry.compute, quantization_.format);
}

void Quantizer::refuse_none() const {
  if (weights_ == 0)
    refuse(quantization_.where + ".pattern", str("no linear layer is called as '", quantization_.pattern, "' asks"),
           seen_.empty() ? "leave it out" : "one is called " + seen_);
}

std::string Quantizer::told() const {
  return str(weights_, " weights in ", quantization_.format.name, ": ", megabytes(bytes_), " of ",
             megabytes(bytes_before_), " MB");
}

}  // namespace easydel::nn
