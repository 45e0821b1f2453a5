// The number types of GGUF files: blocks of numbers in few bytes, to fp32 and back. Knows bytes, no file.
// Layouts: ggml-org/ggml src/ggml-common.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "easydel/weights/dtype.h"

namespace easydel::weights {

// With the numbers that files hold.
enum class GgmlType : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  bf16 = 30
};

struct GgmlForm {
  GgmlType type;
  std::string_view name;  // "Q4_K"
  int64_t elements;       // of a block
  size_t bytes;           // of a block
  DType dtype;            // of the values; of blocks f32
  bool plain() const { return elements == 1; }
};

const GgmlForm* find_ggml_form(uint32_t number);  // null: a type that is not read
const GgmlForm& form_of(GgmlType type);

// `count` values of whole blocks; types that are no floating numbers are a Bug. Source: ggml's dequantize_row_*.
void decode(GgmlType type, const std::byte* blocks, float* out, int64_t count);
// fp32 into f32, f16, bf16 (to the nearest, ties to even) or q8_0 (ties away from zero, as gguf-py); others are a Bug.
void encode(GgmlType type, const float* values, std::byte* out, int64_t count);

}  // namespace easydel::weights
