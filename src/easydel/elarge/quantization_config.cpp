#include "easydel/elarge/quantization_config.h"

#include "easydel/base/error.h"

namespace easydel::elarge {

std::optional<WeightFormat> QuantizationConfig::weight_format() const {
  if (kv_cache) refuse("quantization.kv_cache", "quantizing the KV cache is not built yet", "leave it out");
  const bool asked = model || method || apply_quantization == true;
  if (!asked || apply_quantization == false) return std::nullopt;
  WeightFormat out;
  out.where = model ? "quantization.model" : "quantization";
  const QuantizedPart part = model.value_or(QuantizedPart{});
  // The documents' defaults: nf4 for a section, 8-bit integers for the flag alone.
  const auto usual = model ? QuantizationMethod::nf4 : QuantizationMethod::int8;
  const QuantizationMethod stored = part.quantization_method.value_or(method.value_or(usual));
  if (part.runtime_dtype && *part.runtime_dtype != stored)
    refuse(out.where + ".runtime_dtype", "computing in a format other than the weights' is not built yet",
           "leave it out");
  quant::FormatConfig format;
  format.method = config::Codec<QuantizationMethod>::write(stored).scalar;
  format.group_size = part.group_size;
  format.bits = part.bits;
  if (!model && method) format.group_size = group_size;
  out.format = quant::format_of(format, out.where);
  out.pattern = part.pattern.value_or("");
  out.linear_pattern = linear_pattern;
  out.simulate = part.simulate;
  return out;
}

}  // namespace easydel::elarge
