// Dtypes and their names in files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace easydel::weights {

// The floating ones are the last. f8_e8m0 is a power of two, 2^(byte - 127): the scale of a group.
enum class DType : uint8_t {
  boolean,
  u8,
  i8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f16,
  bf16,
  f32,
  f64,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0
};

size_t size_of(DType);  // bytes of one element
bool is_floating(DType);
std::string_view name_of(DType);  // as safetensors writes it: "BF16"
std::optional<DType> dtype_of_safetensors(std::string_view name);
// "bf16", "bfloat16", "torch.float32", "fp32", ... as configurations write them; nullopt: unknown.
std::optional<DType> dtype_of_config(std::string_view name);

}  // namespace easydel::weights
