// The YAML of docs/configuration.md: whole runs are run, sections are read in the place of a run's.
#include "docs/page.h"
#include "easydel/elarge/elarge.h"
#include "easydel/elarge/merge.h"

namespace easydel {
namespace {

TEST_F(Page, ItsYamlIsRight) {
  int runs = 0, sections = 0;
  const std::string page = test::read_file(test::source_root() / "docs/configuration.md");
  for (const std::string& text : code_blocks(page, "yaml")) {
    const Value document = parse_yaml(text, "the page");
    if (document.find("model")) {
      test::write_file("page.yaml", text);
      const test::Ran ran = test::run_program({"elarge", "page.yaml"}, {.folder = folder_.path()});
      EXPECT_EQ(ran.status, 0) << text << ran.err;
      ++runs;
      continue;
    }
    Value run = elarge::deep_merge(parse_yaml("{model: {name_or_path: ./my-model}, actions: [validate]}"), document);
    config::Problems problems("the page");
    elarge::read_document(run, {}, problems);
    EXPECT_TRUE(problems.empty()) << text << problems.text();
    ++sections;
  }
  EXPECT_GE(runs, 2);
  EXPECT_GE(sections, 3);
}

}  // namespace
}  // namespace easydel
