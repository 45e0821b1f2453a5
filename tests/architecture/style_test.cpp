// One style of casts and constants. Numbers are converted by int64_t(x), not by static_cast<int64_t>(x), which is for
// pointers, references and enumerations; constants are snake_case like other variables.
#include <gtest/gtest.h>

#include "architecture/source.h"

namespace easydel::test {
namespace {

const std::regex number_cast(
    R"((static_cast<(?:std::)?(?:u?int(?:8|16|32|64)_t|size_t|int|unsigned|bool|char|float|double)>))");
const std::regex prefixed_constant(R"(constexpr [^=;(]*\b(k[A-Z]\w*))");

TEST(Style, ConvertsNumbersAndNamesConstantsInOneWay) {
  for (const SourceFile& file : source_files("src/easydel", {".h", ".cpp"})) {
    for (const std::string& cast : all_matches(file.text, number_cast))
      ADD_FAILURE() << file.path << ": " << cast << "(x): write the type alone, as in int64_t(x)";
    for (const std::string& name : all_matches(file.text, prefixed_constant))
      ADD_FAILURE() << file.path << ": " << name << ": constants are snake_case";
  }
}

// Kernels run on the calling thread's executor: naming the process's pool would bypass UseExecutor.
TEST(Style, AsksForTheThreadsExecutor) {
  for (const SourceFile& file : source_files("src/easydel", {".h", ".cpp"})) {
    if (file.layer() == "kernels" || file.path == "src/easydel/tensor/executor.cpp" ||
        file.path == "src/easydel/tensor/executor.h" || file.path == "src/easydel/cli/doctor.cpp")
      continue;
    EXPECT_EQ(file.text.find("openmp_executor"), std::string::npos) << file.path << ": use tensor::executor()";
  }
}

}  // namespace
}  // namespace easydel::test
