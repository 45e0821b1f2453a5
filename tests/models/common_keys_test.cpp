#include "easydel/models/common_keys.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::models {
namespace {

std::string refused(const std::string& json) {
  return test::refusal([&] { check_common_keys(parse_json(json), FilePlace{"config.json"}); });
}

TEST(CommonKeys, OfAWrongKindAreRefused) {
  EXPECT_EQ(refused(R"({"torch_dtype": "float5"})"),
            "config.json: torch_dtype: float5 is not a dtype\n    for example float32, bfloat16 or float16");
  EXPECT_EQ(refused(R"({"dtype": "int8"})"),
            "config.json: dtype: int8 is not a dtype\n    for example float32, bfloat16 or float16");
  EXPECT_NE(refused(R"({"dtype": 16})").find("config.json: dtype: 16 is not a dtype"), std::string::npos);
  EXPECT_EQ(refused(R"({"eos_token_id": ["a"]})"),
            "config.json: eos_token_id: [a] is not a token id, nor a list of token ids\n    give a number such as 2, a "
            "list such as [2, 32000], or null");
  for (const char* const bad : {R"({"pad_token_id": "0"})", R"({"bos_token_id": 1.5})", R"({"eos_token_id": -7})"})
    EXPECT_NE(refused(bad).find("is not a token id"), std::string::npos) << bad;
}

TEST(CommonKeys, OfTheRightKindPass) {
  for (const char* const good :
       {R"({})", R"({"torch_dtype": "torch.bfloat16", "dtype": null})", R"({"torch_dtype": "auto"})",
        R"({"eos_token_id": [1, 2], "bos_token_id": null, "pad_token_id": -1})", R"({"dtype": "float8_e4m3fn"})"})
    EXPECT_EQ(refused(good), "(nothing was refused)") << good;
}

}  // namespace
}  // namespace easydel::models
