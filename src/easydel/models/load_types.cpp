#include "easydel/models/load_types.h"

#include "easydel/base/error.h"
#include "easydel/tensor/device.h"

namespace easydel::models {

at::ScalarType scalar_type_of(DTypeSetting setting, at::ScalarType automatic, const std::string& where) {
  switch (setting) {
    case DTypeSetting::automatic:
      return automatic;
    case DTypeSetting::bf16:
      return at::kBFloat16;
    case DTypeSetting::fp16:
      return at::kHalf;
    case DTypeSetting::fp32:
      return at::kFloat;
    case DTypeSetting::fp64:
      return at::kDouble;
    case DTypeSetting::fp8:
      return at::kFloat8_e4m3fn;
    case DTypeSetting::mxfp4:
    case DTypeSetting::mxfp8:
    case DTypeSetting::nvfp8:
      break;
  }
  refuse(where, str("'", config::word_of(setting), "' is not a dtype"), "known: auto, fp32, bf16, fp16");
}

at::Device device_of(DeviceSetting setting, const std::string& where) {
  if (setting == DeviceSetting::cpu) return at::kCPU;
  const auto gpu = tensor::gpu();
  if (setting == DeviceSetting::gpu && !gpu)
    refuse(where, "'gpu' was requested, but torch finds no GPU", "use cpu or auto");
  return gpu.value_or(at::kCPU);
}

}  // namespace easydel::models
