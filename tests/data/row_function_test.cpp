#include "easydel/data/row_function.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::data {
namespace {

TEST(RowFunctions, AreFoundByTheirNamesWhichAreGivenOnce) {
  const RowFunction same = [](const Value& row) { return row; };
  register_row_function("row_function_test", same);
  ASSERT_NE(find_row_function("row_function_test"), nullptr);
  EXPECT_EQ(find_row_function("row_function_tes"), nullptr);
  EXPECT_NE(row_function_remedy().find("there are: "), std::string::npos);
  EXPECT_EQ(test::refusal([&] { register_row_function("row_function_test", same); }),
            "plug-in: the row function 'row_function_test' is there already\n    give it another name");
  EXPECT_EQ(test::refusal([&] { register_row_function("rows.jinja", same); }),
            "plug-in: the row function 'rows.jinja' has the name of a template's file");
}

TEST(RowFunctions, TheDigestIsThatOfTheFileOrTheLibrary) {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "rows.jinja").string();
  test::write_file(file, "{{ a }}");
  const std::string before = code_digest(file);
  test::write_file(file, "{{ b }}");
  EXPECT_NE(code_digest(file), before);
  test::write_file(folder / "one.so", "{{ a }}");
  register_row_function(
      "of_a_library", [](const Value& row) { return row; }, folder / "one.so");
  EXPECT_EQ(code_digest("of_a_library"), "of_a_library " + before);
}

}  // namespace
}  // namespace easydel::data
