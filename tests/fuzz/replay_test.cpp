// Runs every stored corpus file through the fuzz target that it is linked with; libFuzzer is not needed for that.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/data.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

TEST(Fuzz, SurvivesEveryStoredInput) {
  // The target's name stands in that of the program: test_fuzz_<name>.
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").filename();
  const auto corpus =
      easydel::test::source_root() / "tests/fuzz/corpus" / program.substr(std::string("test_fuzz_").size());
  std::vector<std::filesystem::path> inputs;
  if (std::filesystem::is_directory(corpus)) {
    for (const auto& entry : std::filesystem::directory_iterator(corpus)) inputs.push_back(entry.path());
  }
  std::sort(inputs.begin(), inputs.end());
  ASSERT_FALSE(inputs.empty()) << "no corpus in " << corpus;
  for (const auto& input : inputs) {
    SCOPED_TRACE(input.string());
    std::ifstream file(input, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()), 0);
  }
}

}  // namespace
