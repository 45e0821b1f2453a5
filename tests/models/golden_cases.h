// The stored goldens of causal models, each in fp32 and bf16, as parameters of tests that cover every family.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel::models {

struct GoldenCase {
  std::string golden, dtype;
};

inline std::vector<GoldenCase> causal_goldens() {
  std::vector<GoldenCase> out;
  for (const auto& entry : std::filesystem::directory_iterator(test::test_data("hf_goldens"))) {
    const Value info = parse_file(entry.path() / "expected.json");
    const Value* const kind = info.find("kind");
    if (kind && kind->scalar != "causal") continue;
    for (const char* dtype : {"fp32", "bf16"}) out.push_back({entry.path().filename().string(), dtype});
  }
  std::ranges::sort(out, {}, [](const GoldenCase& one) { return one.golden + one.dtype; });
  return out;
}

// Names a test after its golden and dtype.
inline std::string name_of_case(const testing::TestParamInfo<GoldenCase>& info) {
  std::string name = info.param.golden + "_" + info.param.dtype;
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace easydel::models
