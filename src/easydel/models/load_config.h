// The words of the section `loader` for dtypes and devices. What they mean for tensors is in models/load_types.h. A
// face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "easydel/config/choice.h"

namespace easydel::models {

// Of what is computed or stored; automatic: the checkpoint's.
enum class DTypeSetting : uint8_t { automatic, bf16, fp16, fp32, fp64, fp8, mxfp4, mxfp8, nvfp8 };
constexpr auto choices(DTypeSetting) {
  using enum DTypeSetting;
  using config::Choice;
  return std::array{
      Choice{automatic, "auto"},
      Choice{bf16, "bf16"}.also("bfloat16").also("torch.bfloat16"),
      Choice{fp16, "fp16"}.also("float16").also("f16").also("half").also("torch.float16"),
      Choice{fp32, "fp32"}.also("float32").also("f32").also("float").also("torch.float32"),
      Choice{fp64, "fp64"}.also("float64").also("f64").not_built(),
      Choice{fp8, "fp8"}.also("float8").not_built(),
      Choice{mxfp4, "mxfp4"}.not_built(),
      Choice{mxfp8, "mxfp8"}.not_built(),
      Choice{nvfp8, "nvfp8"}.not_built(),
  };
}
// automatic: the GPU if there is one.
enum class DeviceSetting : uint8_t { automatic, cpu, gpu };
constexpr auto choices(DeviceSetting) {
  using config::Choice;
  return std::array{Choice{DeviceSetting::automatic, "auto"}, Choice{DeviceSetting::cpu, "cpu"},
                    Choice{DeviceSetting::gpu, "gpu"}.also("cuda")};
}

// As a flag of the command line says them. UserError "where: ..." for another word.
DTypeSetting dtype_setting(std::string_view word, const std::string& where);
DeviceSetting device_setting(std::string_view word, const std::string& where);

}  // namespace easydel::models
