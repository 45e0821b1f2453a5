// Sizes and names of dtypes.
#include "easydel/weights/dtype.h"

#include <array>
#include <string>

namespace easydel::weights {
namespace {

struct Row {
  DType dtype;
  size_t bytes;
  std::string_view safetensors;
};
// In the order of the enum: a dtype is the index of its row.
constexpr std::array rows = {
    Row{DType::boolean, 1, "BOOL"},    Row{DType::u8, 1, "U8"},           Row{DType::i8, 1, "I8"},
    Row{DType::i16, 2, "I16"},         Row{DType::u16, 2, "U16"},         Row{DType::i32, 4, "I32"},
    Row{DType::u32, 4, "U32"},         Row{DType::i64, 8, "I64"},         Row{DType::u64, 8, "U64"},
    Row{DType::f16, 2, "F16"},         Row{DType::bf16, 2, "BF16"},       Row{DType::f32, 4, "F32"},
    Row{DType::f64, 8, "F64"},         Row{DType::f8_e4m3, 1, "F8_E4M3"}, Row{DType::f8_e5m2, 1, "F8_E5M2"},
    Row{DType::f8_e8m0, 1, "F8_E8M0"},
};

struct Alias {
  std::string_view name;
  DType dtype;
};
constexpr Alias aliases[] = {
    {"bool", DType::boolean},
    {"uint8", DType::u8},
    {"u8", DType::u8},
    {"int8", DType::i8},
    {"i8", DType::i8},
    {"int16", DType::i16},
    {"i16", DType::i16},
    {"short", DType::i16},
    {"uint16", DType::u16},
    {"u16", DType::u16},
    {"int32", DType::i32},
    {"i32", DType::i32},
    {"int", DType::i32},
    {"uint32", DType::u32},
    {"u32", DType::u32},
    {"int64", DType::i64},
    {"i64", DType::i64},
    {"long", DType::i64},
    {"uint64", DType::u64},
    {"u64", DType::u64},
    {"float16", DType::f16},
    {"fp16", DType::f16},
    {"f16", DType::f16},
    {"half", DType::f16},
    {"bfloat16", DType::bf16},
    {"bf16", DType::bf16},
    {"float32", DType::f32},
    {"fp32", DType::f32},
    {"f32", DType::f32},
    {"float", DType::f32},
    {"float64", DType::f64},
    {"fp64", DType::f64},
    {"f64", DType::f64},
    {"double", DType::f64},
    {"float8_e4m3fn", DType::f8_e4m3},
    {"float8_e4m3", DType::f8_e4m3},
    {"f8_e4m3", DType::f8_e4m3},
    {"fp8_e4m3", DType::f8_e4m3},
    {"fp8", DType::f8_e4m3},
    {"float8_e5m2", DType::f8_e5m2},
    {"f8_e5m2", DType::f8_e5m2},
    {"fp8_e5m2", DType::f8_e5m2},
};

}  // namespace

size_t size_of(DType dtype) { return rows[size_t(dtype)].bytes; }

bool is_floating(DType dtype) { return dtype >= DType::f16; }

std::string_view name_of(DType dtype) { return rows[size_t(dtype)].safetensors; }

std::optional<DType> dtype_of_safetensors(std::string_view name) {
  for (const Row& row : rows)
    if (row.safetensors == name) return row.dtype;
  return std::nullopt;
}

std::optional<DType> dtype_of_config(std::string_view name) {
  std::string word;
  for (char c : name) word += c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  for (std::string_view prefix : {"torch.", "jnp.", "jax.numpy."})
    if (word.starts_with(prefix)) word.erase(0, prefix.size());
  for (const Alias& alias : aliases)
    if (alias.name == word) return alias.dtype;
  return std::nullopt;
}

}  // namespace easydel::weights
