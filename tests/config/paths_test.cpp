#include "easydel/config/paths.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace easydel::config {
namespace {

struct Expanded {
  std::string path, problem;
};

Expanded expanded(std::string path) {
  Problems problems("run.yaml");
  Keys keys(problems, "trainer");
  expand_path(path, keys, "save_directory");
  Expanded out{path, ""};
  try {
    problems.throw_if_any();
  } catch (const UserError& error) {
    out.problem = error.what();
  }
  return out;
}

TEST(Paths, HomeAndVariablesAreReplaced) {
  setenv("HOME", "/home/ann", 1);
  setenv("EASYDEL_TEST_DISK", "/disk", 1);
  EXPECT_EQ(expanded("~").path, "/home/ann");
  EXPECT_EQ(expanded("~/x").path, "/home/ann/x");
  EXPECT_EQ(expanded("$EASYDEL_TEST_DISK/x").path, "/disk/x");
  EXPECT_EQ(expanded("a/${EASYDEL_TEST_DISK}b").path, "a//diskb");
  EXPECT_EQ(expanded("a~/b$/c$1/${").path, "a~/b$/c$1/${");
  EXPECT_EQ(expanded("plain/path").problem, "");
}

TEST(Paths, WhatIsNotKnownIsRefused) {
  unsetenv("EASYDEL_TEST_DISK");
  EXPECT_NE(
      expanded("$EASYDEL_TEST_DISK/x")
          .problem.find(
              "trainer.save_directory: '$EASYDEL_TEST_DISK/x': the environment variable EASYDEL_TEST_DISK is not set"),
      std::string::npos);
  EXPECT_NE(expanded("~ann/x").problem.find("the home folders of other users are not known"), std::string::npos);
  EXPECT_NE(expanded("").problem.find("trainer.save_directory: is empty"), std::string::npos);
}

}  // namespace
}  // namespace easydel::config
