// Number formats of weights and adapters on them: the sections `quantization` and `lora`.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <tuple>

#include "easydel/config/fields.h"
#include "easydel/elarge/sharding_config.h"
#include "easydel/quant/format_config.h"

namespace easydel::elarge {

enum class QuantizationMethod {
  nf4,
  int8,
  a8bit,
  a8q,
  a4q,
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
  return std::array{Choice{nf4, "nf4"},
                    Choice{int8, "8bit"}.also("int8"),
                    Choice{a8bit, "a8bit"},
                    Choice{a8q, "a8q"},
                    Choice{a4q, "a4q"},
                    Choice{affine, "affine"},
                    Choice{ternary, "ternary"},
                    Choice{binary, "binary"},
                    Choice{mxfp4, "mxfp4"},
                    Choice{mxfp8, "mxfp8"},
                    Choice{nvfp4, "nvfp4"},
                    Choice{nvfp8, "nvfp8"},
                    Choice{turboquant, "turboquant"}};
}

struct QuantizedPart {
  std::optional<QuantizationMethod> quantization_method;
  std::optional<QuantizationMethod> runtime_dtype;
  std::optional<int64_t> group_size;
  std::optional<int64_t> bits;
  bool simulate = false;
  bool jax_native = false;
  bool use_kernel = true;
  std::optional<std::string> pattern;

  static constexpr auto doc = "One number format.";
  static constexpr auto fields() {
    using namespace config;
    return std::tuple{
        field<&QuantizedPart::quantization_method>("The format.", alias("dtype"), alias("method")),
        field<&QuantizedPart::runtime_dtype>("The format while computing; null: the same."),
        field<&QuantizedPart::group_size>("Values that share a scale; null: the format's own.", at_least(1),
                                          alias("block_size")),
        field<&QuantizedPart::bits>("Bits of one value, for formats that leave it open.", between(1, 8)),
        field<&QuantizedPart::simulate>("Round the values, but keep them in the plain type."),
        field<&QuantizedPart::jax_native>("Formats of JAX itself.", no_effect("there is no JAX")),
        field<&QuantizedPart::use_kernel>("Special kernels.", no_effect("kernels are chosen for the machine")),
        field<&QuantizedPart::pattern>("Regex on the paths of the parameters that are quantized."),
    };
  }
};

// What becomes of a model's weights when it is loaded; see nn/quantization.h.
struct WeightFormat {
  quant::Format format;
  std::string pattern, linear_pattern;
  bool simulate = false;
  std::string where;  // "quantization.model"
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

  static constexpr auto doc = "Number formats of weights and of the KV cache.";
  static constexpr auto fields() {
    using namespace config;
    return std::tuple{
        field<&QuantizationConfig::platform>("Whose kernels.", no_effect("kernels are chosen for the machine")),
        field<&QuantizationConfig::kv_cache>("Of keys and values."),
        field<&QuantizationConfig::model>("Of the weights."),
        field<&QuantizationConfig::apply_quantization>("Quantize the weights; null: where `model` is given.",
                                                       alias("quantize_tensors")),
        field<&QuantizationConfig::method>("The weights' format in short, in groups of group_size."),
        field<&QuantizationConfig::group_size>("Values that share a scale.", at_least(1), alias("block_size")),
        field<&QuantizationConfig::linear_pattern>("Regex on the paths of linear layers."),
        field<&QuantizationConfig::linear_group_size>("Values that share a scale in linear layers.", at_least(1),
                                                      alias("linear_block_size"), no_effect("group_size says it")),
        field<&QuantizationConfig::use_qmm_best_config>("Tuned TPU kernels.",
                                                        no_effect("kernels are chosen for the machine")),
        field<&QuantizationConfig::qmm_platform_override>("Whose kernels.",
                                                          no_effect("kernels are chosen for the machine")),
        field<&QuantizationConfig::qmm_tpu_path_override>("Which TPU kernels.",
                                                          no_effect("kernels are chosen for the machine")),
    };
  }
  // Nothing: the weights stay as they are. UserError, at its key, for what is wrong or not built.
  std::optional<WeightFormat> weight_format(bool training) const;
};

struct LoraConfig {
  int64_t r = 16;
  double alpha = 32;
  double dropout = 0;
  config::Many<std::string> target_modules;
  bool use_rslora = false;
  config::Many<std::string> modules_to_save;

  static constexpr auto doc = "Low-rank adapters; the section's presence turns them on.";
  static constexpr auto fields() {
    using namespace config;
    return std::tuple{
        field<&LoraConfig::r>("Rank.", at_least(1), alias("rank")),
        field<&LoraConfig::alpha>("Scale: alpha / r.", above(0), alias("lora_alpha")),
        field<&LoraConfig::dropout>("Dropout before the adapter.", between(0, 1), alias("lora_dropout")),
        field<&LoraConfig::target_modules>("Layers that get adapters: names or a regex; empty: all linear layers."),
        field<&LoraConfig::use_rslora>("Scale: alpha / sqrt(r)."),
        field<&LoraConfig::modules_to_save>("Layers trained whole."),
    };
  }
};

}  // namespace easydel::elarge
