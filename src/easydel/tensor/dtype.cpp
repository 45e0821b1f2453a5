#include "easydel/tensor/dtype.h"

#include <array>
#include <utility>

#include "easydel/base/error.h"

namespace easydel::tensor {
namespace {

using weights::DType;

constexpr std::array<std::pair<DType, at::ScalarType>, 16> pairs = {{
    {DType::boolean, at::kBool},
    {DType::u8, at::kByte},
    {DType::i8, at::kChar},
    {DType::i16, at::kShort},
    {DType::u16, at::kUInt16},
    {DType::i32, at::kInt},
    {DType::u32, at::kUInt32},
    {DType::i64, at::kLong},
    {DType::u64, at::kUInt64},
    {DType::f16, at::kHalf},
    {DType::bf16, at::kBFloat16},
    {DType::f32, at::kFloat},
    {DType::f64, at::kDouble},
    {DType::f8_e4m3, at::kFloat8_e4m3fn},
    {DType::f8_e5m2, at::kFloat8_e5m2},
    {DType::f8_e8m0, at::kFloat8_e8m0fnu},
}};

}  // namespace

at::ScalarType scalar_type(DType type) {
  for (const auto& [file, torch] : pairs)
    if (file == type) return torch;
  throw Bug(str("no tensor type for file type ", int(type)));
}

DType dtype_of(at::ScalarType type) {
  for (const auto& [file, torch] : pairs)
    if (torch == type) return file;
  throw Bug(str("no file type for tensor type ", c10::toString(type)));
}

}  // namespace easydel::tensor
