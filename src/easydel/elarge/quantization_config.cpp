#include "easydel/elarge/quantization_config.h"

#include <utility>

#include "easydel/base/error.h"
#include "easydel/quant/made_codes.h"

namespace easydel::elarge {

std::optional<WeightFormat> QuantizationConfig::weight_format() const {
  const bool asked = model || method || apply_quantization == true;
  if (!asked || apply_quantization == false) return std::nullopt;
  WeightFormat out;
  out.where = model ? "quantization.model" : "quantization";
  const QuantizedPart part = model.value_or(QuantizedPart{});
  // The documents' defaults: nf4 for a section, 8-bit integers for the flag alone.
  const auto usual = model ? QuantizationMethod::nf4 : QuantizationMethod::int8;
  const auto word = [](QuantizationMethod of) { return config::Codec<QuantizationMethod>::write(of).scalar; };
  // The format that the other keys are about: that of the codes which are made first.
  const bool named = part.quantization_method || method;
  out.of_codes = part.runtime_dtype && !named;
  const QuantizationMethod made =
      out.of_codes ? *part.runtime_dtype : part.quantization_method.value_or(method.value_or(usual));
  quant::FormatConfig format;
  format.method = word(made);
  format.group_size = part.group_size;
  format.bits = part.bits;
  // The documents' default is for formats whose groups can be chosen.
  const bool given = group_size != QuantizationConfig().group_size;
  if (!model && method && (given || !quant::has_fixed_groups(format.method))) format.group_size = group_size;
  out.format = quant::format_of(format, out.where);
  if (part.double_quant)
    out.format = quant::with_double_quantization(std::move(out.format), out.where + ".double_quant");
  if (part.runtime_dtype && part.simulate)
    refuse(out.where + ".simulate", "a simulated runtime_dtype is not built yet", "leave one of the two out");
  if (part.runtime_dtype && *part.runtime_dtype != made)
    out.stored = std::exchange(out.format, quant::format_of({word(*part.runtime_dtype)}, out.where + ".runtime_dtype"));
  out.pattern = part.pattern.value_or("");
  out.linear_pattern = linear_pattern;
  out.simulate = part.simulate;
  return out;
}

nn::CacheSetting QuantizationConfig::cache_format(std::optional<models::DTypeSetting> plain) const {
  using models::DTypeSetting;
  using enum QuantizationMethod;
  if (!kv_cache) {
    const DTypeSetting dtype = plain.value_or(DTypeSetting::automatic);
    if (dtype == DTypeSetting::automatic) return nn::CacheFormat::automatic;
    if (dtype == DTypeSetting::fp32) return nn::CacheFormat::fp32;
    if (dtype == DTypeSetting::bf16) return nn::CacheFormat::bf16;
    refuse("base_config.values.kvdtype", str("a KV cache in ", config::word_of(dtype), " is not built yet"),
           "built: auto, bf16, fp32");
  }
  const auto refuse_key = [](const char* key, const std::string& problem, const std::string& remedy) {
    refuse(str("quantization.kv_cache.", key), problem, remedy);
  };
  const std::string built =
      "built: 8bit, a8bit and a8q (int8 codes), a4q (int8 keys, int4 values), mxfp8 and nvfp8 (fp8 codes)";
  const QuantizedPart& part = *kv_cache;
  if (!part.quantization_method) refuse_key("quantization_method", "is missing", built);
  const QuantizationMethod method_of_cache = *part.quantization_method;
  const bool whole = method_of_cache == int8 || method_of_cache == a8bit || method_of_cache == a8q;
  const int64_t bits = method_of_cache == a4q ? 4 : 8;
  if (!whole && method_of_cache != a4q && method_of_cache != mxfp8 && method_of_cache != nvfp8)
    refuse_key("quantization_method", str("a KV cache in ", config::word_of(method_of_cache), " is not built yet"),
               built);
  if (part.runtime_dtype && *part.runtime_dtype != method_of_cache)
    refuse_key("runtime_dtype", "reading the cache in a format other than its own is not built yet", "leave it out");
  if (part.bits && *part.bits != bits)
    refuse_key("bits", str(config::word_of(method_of_cache), " has ", bits, " bits here, not ", *part.bits),
               "leave it out");
  if (part.double_quant) refuse_key("double_quant", "has no effect on the KV cache", "leave it out");
  if (part.simulate) refuse_key("simulate", "a simulated KV cache is not built yet", "leave it out");
  if (part.pattern) refuse_key("pattern", "has no effect on the KV cache: all layers share the format", "leave it out");
  return {method_of_cache == a4q ? nn::CacheFormat::int4_values
          : whole                ? nn::CacheFormat::int8
                                 : nn::CacheFormat::e4m3,
          part.group_size.value_or(0)};
}

}  // namespace easydel::elarge
