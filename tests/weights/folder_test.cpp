#include "easydel/weights/folder.h"

#include <gtest/gtest.h>

namespace easydel::weights {
namespace {

DType said_by(const char* json) { return dtype_of_weights(parse_json(json)); }

TEST(WeightsFolder, ReadsTheDtypeThatItsConfigSays) {
  EXPECT_EQ(said_by(R"({"dtype": "bfloat16"})"), DType::bf16);
  EXPECT_EQ(said_by(R"({"torch_dtype": "torch.float16"})"), DType::f16);
  EXPECT_EQ(said_by(R"({"torch_dtype": "float16", "dtype": "bfloat16"})"), DType::bf16) << "dtype is the newer name";
  EXPECT_EQ(said_by(R"({"torch_dtype": "float16", "dtype": "auto"})"), DType::f16);
  EXPECT_EQ(said_by(R"({"dtype": null})"), DType::f32);
  EXPECT_EQ(said_by("{}"), DType::f32);
}

TEST(WeightsFolder, KnowsWhichDtypesAreFloating) {
  for (const DType type : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::f8_e4m3, DType::f8_e5m2})
    EXPECT_TRUE(is_floating(type)) << name_of(type);
  for (const DType type : {DType::boolean, DType::u8, DType::i8, DType::i16, DType::u16, DType::i32, DType::i64})
    EXPECT_FALSE(is_floating(type)) << name_of(type);
}

}  // namespace
}  // namespace easydel::weights
