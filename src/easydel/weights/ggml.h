// The types of tensors in GGUF files, most of them quantized blocks: conversion to fp32 and back. Knows bytes, no
// files. Layouts: ggml-org/ggml src/ggml-common.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "easydel/weights/dtype.h"

namespace easydel::weights {

// Values as in files.
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
  int64_t elements;       // per block
  size_t bytes;           // per block
  DType dtype;            // of the values; f32 for quantized blocks
  bool plain() const { return elements == 1; }
};

const GgmlForm* find_ggml_form(uint32_t type);  // null: a type that is not supported
const GgmlForm& form_of(GgmlType type);

// Decodes `count` values of whole blocks. Bug for integer types. Source: ggml's dequantize_row_*.
void decode(GgmlType type, const std::byte* blocks, float* out, int64_t count);
// Encodes fp32 as f32, f16, bf16 (round to nearest, ties to even) or q8_0 (ties away from zero, as gguf-py). Bug for
// other types.
void encode(GgmlType type, const float* values, std::byte* out, int64_t count);

}  // namespace easydel::weights
