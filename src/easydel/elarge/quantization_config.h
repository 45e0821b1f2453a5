// Quantized weights: the section `quantization`.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "easydel/config/fields.h"
#include "easydel/elarge/sharding_config.h"
#include "easydel/models/load_config.h"
#include "easydel/nn/cache_config.h"
#include "easydel/quant/format_config.h"

namespace easydel::elarge {

enum class QuantizationMethod {
  nf4,
  int8,
  a8bit,
  a8q,
  a4q,
  fp4,
  affine,
  ternary,
  binary,
  mxfp4,
  mxfp8,
  nvfp4,
  nvfp8,
  turboquant
};
constexpr auto choices(QuantizationMethod) {
  using enum QuantizationMethod;
  using config::Choice;
  return std::array{Choice{nf4, "nf4"},       Choice{int8, "8bit"}.also("int8"),
                    Choice{a8bit, "a8bit"},   Choice{a8q, "a8q"},
                    Choice{a4q, "a4q"},       Choice{fp4, "fp4"},
                    Choice{affine, "affine"}, Choice{ternary, "ternary"},
                    Choice{binary, "binary"}, Choice{mxfp4, "mxfp4"},
                    Choice{mxfp8, "mxfp8"},   Choice{nvfp4, "nvfp4"},
                    Choice{nvfp8, "nvfp8"},   Choice{turboquant, "turboquant"}};
}

struct QuantizedPart {
  std::optional<QuantizationMethod> quantization_method;
  std::optional<QuantizationMethod> runtime_dtype;
  std::optional<int64_t> group_size;
  std::optional<int64_t> bits;
  bool double_quant = false;
  bool simulate = false;
  bool jax_native = false;
  bool use_kernel = true;
  std::optional<std::string> pattern;

  static constexpr auto doc = "A quantization format.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::quantization_method>("Quantization format.", alias("dtype"), alias("method")),
        field<&C::runtime_dtype>(
            "Format that products read the weights in; null: that of quantization_method. The values of the codes are "
            "rounded to it while the model is loaded. Give it without quantization_method to convert a checkpoint that "
            "is in codes."),
        field<&C::group_size>("Number of values that share a scale; null: the format's default. Smaller "
                              "groups are more precise and take more memory.",
                              at_least(1), alias("block_size")),
        field<&C::bits>("Number of bits of a value, for formats that support several.", between(1, 8)),
        field<&C::double_quant>("nf4 and fp4: round the scales to 8-bit codes, as bitsandbytes' double "
                                "quantization for QLoRA does. Gives its numbers; the scales take as much memory as "
                                "without it, because products read them in fp32.",
                                alias("bnb_4bit_use_double_quant"), alias("use_double_quant")),
        field<&C::simulate>("Round the values to the format but store them in the plain dtype. Shows the "
                            "loss of quality without saving memory."),
        field<&C::jax_native>("Use JAX's own formats.", no_effect("JAX is not used")),
        field<&C::use_kernel>("Use special kernels.", no_effect("kernels are chosen for the machine")),
        field<&C::pattern>("Regular expression that the paths of quantized layers match; embeddings and experts only "
                           "where it names them."),
    };
  }
};

// How the weights of a model are quantized when it is loaded; see nn/quantization.h.
struct WeightFormat {
  quant::Format format;
  std::string pattern, linear_pattern;
  bool simulate = false;
  std::string where;  // "quantization.model"
  // As in nn::Quantization.
  std::optional<quant::Format> stored = {};
  bool of_codes = false;
};

struct QuantizationConfig {
  std::optional<KernelPlatform> platform;
  std::optional<QuantizedPart> kv_cache;
  std::optional<QuantizedPart> model;
  std::optional<bool> apply_quantization;
  std::optional<QuantizationMethod> method;
  int64_t group_size = 128;
  std::string linear_pattern = ".*";
  int64_t linear_group_size = 64;
  bool use_qmm_best_config = false;
  std::optional<std::string> qmm_platform_override;
  std::optional<std::string> qmm_tpu_path_override;

  static constexpr auto doc = "Quantization of the weights and of the KV cache.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::platform>("Kernel implementation.", no_effect("kernels are chosen for the machine")),
        field<&C::kv_cache>(
            "Format of the KV cache: 8bit, a8bit and a8q keep int8 codes, a4q int8 keys and int4 values, mxfp8 and "
            "nvfp8 fp8 codes (e4m3), each with one scale per token and head, or per group_size values of a head. Takes "
            "about half the memory of bf16, a4q about 0.4 of it, and long texts generate faster with int8 and a4q "
            "without group_size; costs a little precision. Null: kvdtype."),
        field<&C::model>("Format of the weights."),
        field<&C::apply_quantization>("Quantize the weights; null: if `model` is given.", alias("quantize_tensors")),
        field<&C::method>("Shorthand for the format of the weights."),
        field<&C::group_size>("Number of values that share a scale.", at_least(1), alias("block_size")),
        field<&C::linear_pattern>("Regular expression that the paths of quantized linear layers match."),
        field<&C::linear_group_size>("Number of values that share a scale in linear layers.", at_least(1),
                                     alias("linear_block_size"), no_effect("group_size applies to linear layers, too")),
        field<&C::use_qmm_best_config>("Use tuned TPU kernels for quantized products.",
                                       no_effect("kernels are chosen for the machine")),
        field<&C::qmm_platform_override>("Kernel implementation of quantized products.",
                                         no_effect("kernels are chosen for the machine")),
        field<&C::qmm_tpu_path_override>("TPU kernel of quantized products.",
                                         no_effect("kernels are chosen for the machine")),
    };
  }
  // nullopt: the weights are not quantized. Throws UserError for a setting that is wrong or not built.
  std::optional<WeightFormat> weight_format() const;
  // Of keys and values: that of kv_cache, else `plain` (base_config.values.kvdtype). The same errors.
  nn::CacheSetting cache_format(std::optional<models::DTypeSetting> plain) const;
};

}  // namespace easydel::elarge
