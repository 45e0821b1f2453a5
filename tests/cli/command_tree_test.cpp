// Shell completion and the man page, made from the commands themselves.
#include "easydel/cli/command_tree.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/data.h"

namespace easydel::cli {
namespace {

// What bash offers at the end of a line.
std::string completed(const std::string& words) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "script", test::run_program({"completion", "bash"}).out);
  const auto ran = test::run({"bash", "-c",
                              "source ./script && COMP_WORDS=(" + words +
                                  ") && COMP_CWORD=$((${#COMP_WORDS[@]}-1)) && _easydel && echo \"${COMPREPLY[*]}\""},
                             {.folder = folder.path()});
  EXPECT_EQ(ran.err, "");
  return ran.out;
}

TEST(Completion, OfBashKnowsCommandsAndOptions) {
  EXPECT_EQ(completed("easydel descr"), "describe\n");
  EXPECT_EQ(completed("easydel describe m"), "model mesh\n");
  EXPECT_EQ(completed("easydel -q generate model --prompts-f"), "--prompts-file\n");
  EXPECT_EQ(completed("easydel describe keys --mark"), "--markdown\n");
  EXPECT_EQ(completed("easydel run scr"), "script\n");  // a file
}

TEST(Completion, OfOtherShellsNamesEveryCommand) {
  const std::string zsh = test::run_program({"completion", "zsh"}).out,
                    fish = test::run_program({"completion", "fish"}).out;
  EXPECT_TRUE(zsh.starts_with("#compdef easydel\n"));
  for (const char* command : {"elarge", "generate", "chat", "export", "doctor"}) {
    EXPECT_NE(zsh.find(std::string("\"easydel ") + command + "\""), std::string::npos) << command;
    EXPECT_NE(fish.find(std::string(" -a ") + command + " -d '"), std::string::npos) << command;
  }
  EXPECT_NE(fish.find("complete -c easydel -n '__easydel_at easydel generate' -s n -l max-new-tokens -r -d '"),
            std::string::npos);
  EXPECT_EQ(test::run_program({"completion", "tcsh"}).err,
            "easydel completion: 'tcsh' is not a shell that can be completed\n    known: bash, zsh, fish\n");
}

TEST(Completion, QuotesTextsForTheShell) {
  const CommandEntry program{"easydel", "", {}, {{"go", "It's here", {}, {}}}};
  EXPECT_NE(completion_script(program, "fish").find("-d 'It'\\''s here'"), std::string::npos);
}

TEST(ManPage, NamesEveryCommandAndEscapesItsTexts) {
  const std::string page = test::run_program({"man"}).out;
  EXPECT_TRUE(page.starts_with(".TH EASYDEL 1 "));
  for (const char* line :
       {"\n.SS easydel generate\n", "\n.SS easydel describe keys\n", "\n.B \\-n, \\-\\-max\\-new\\-tokens\n"})
    EXPECT_NE(page.find(line), std::string::npos) << line;
  const CommandEntry program{"easydel", ".x \\ -", {}, {{"go", "'quoted", {}, {}}}};
  const std::string escaped = man_page(program, "1");
  EXPECT_NE(escaped.find("easydel \\- \\&.x \\e \\-\n"), std::string::npos) << escaped;
  EXPECT_NE(escaped.find("\n\\&'quoted\n"), std::string::npos);
}

}  // namespace
}  // namespace easydel::cli
