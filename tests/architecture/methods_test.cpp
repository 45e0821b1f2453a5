// A training method states its needs in the method table: no other code compares a method's name.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "architecture/source.h"
#include "easydel/train/method_configs.h"

namespace easydel::test {
namespace {

// The methods' own files, the two lists of methods, and the default of trainer_type. Recorded cases of other programs
// (replay_*, vectors_*) say which method they are of.
bool may_name_methods(const SourceFile& file) {
  static const std::set<std::string> lists{"methods.cpp", "method_configs.cpp", "trainer_config.h"};
  const fs::path path = file.path;
  const std::string name = path.filename().string();
  if (name.starts_with("replay_") || name.starts_with("vectors_")) return true;
  if (name == "format_kto.cpp") return true;  // LLaMA-Factory's rows of that name
  if (file.layer() != "train") return false;
  if (lists.contains(name)) return true;
  return std::ranges::any_of(train::method_configs(), [&](const train::MethodConfig& method) {
    const std::string stem(method.name);
    return name == stem + ".cpp" || name == stem + ".h" || name == stem + "_config.h" || name == stem + "_config.cpp";
  });
}

std::string without_comment(const std::string& line) { return line.substr(0, line.find("//")); }

TEST(Methods, AreNotComparedByNameElsewhere) {
  std::vector<std::string> names;
  for (const train::MethodConfig& method : train::method_configs())
    // Words of model tasks as well.
    if (method.name != "embedding" && method.name != "base") names.emplace_back(method.name);
  const std::regex compared(R"((trainer_type\s*[=!]=)|([=!]=\s*[a-z_.>()-]*trainer_type))");
  for (const SourceFile& file : source_files("src/easydel", {".h", ".cpp"})) {
    if (may_name_methods(file)) continue;
    const std::vector<std::string> lines = file.lines();
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string line = without_comment(lines[i]);
      EXPECT_FALSE(std::regex_search(line, compared)) << file.path << ":" << i + 1 << " compares trainer_type";
      for (const std::string& name : names)
        EXPECT_EQ(line.find('"' + name + '"'), std::string::npos)
            << file.path << ":" << i + 1 << " names the method " << name;
      for (const std::string& name : names)
        EXPECT_EQ(line.find("trainer_type: " + name), std::string::npos)
            << file.path << ":" << i + 1 << " names the method " << name;
    }
  }
}

}  // namespace
}  // namespace easydel::test
