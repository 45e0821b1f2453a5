#include "easydel/config/problems.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::config {
namespace {

TEST(Problems, ArePlacedAtTheKeyOrTheNearestSectionThatWasWritten) {
  Problems problems("run.yaml");
  problems.saw("trainer", {2, 1});
  problems.saw("trainer.sizes[0]", {4, 5});
  problems.add("trainer.sizes[0].low", "is wrong");
  problems.add("trainer.rate", "is wrong", "give 1");
  problems.add("model", "is missing");
  EXPECT_EQ(problems.text(),
            "run.yaml:2:1: trainer.rate: is wrong\n    give 1\n"
            "run.yaml:4:5: trainer.sizes[0].low: is wrong\n"
            "run.yaml: model: is missing\n"
            "3 problems in run.yaml; nothing was run.");
}

TEST(Problems, SayWhichOptionGaveTheValue) {
  Problems problems("run.yaml");
  problems.saw("trainer.seed", {3, 1});
  problems.comes_from("trainer", "--set trainer={}");
  problems.add("trainer.seed", "is wrong");
  problems.note("trainer.seed", "is odd");
  EXPECT_EQ(problems.text(), "--set trainer={}: trainer.seed: is wrong\n1 problem in run.yaml; nothing was run.");
  EXPECT_EQ(problems.notes(), std::vector<std::string>{"--set trainer={}: trainer.seed: is odd"});
}

TEST(Problems, AreKeptOnce) {
  Problems problems;
  problems.add("a", Place{1, 1}, "is wrong");
  problems.add("a", Place{2, 1}, "is wrong");
  problems.add("a", Place{1, 1}, "is odd");
  EXPECT_EQ(problems.size(), 2u);
}

TEST(Problems, AreFoundAtAKeyAndBelowItButNotNextToIt) {
  Problems problems;
  problems.add("mixture.informs[0].type", "is wrong");
  EXPECT_TRUE(problems.any_at("mixture"));
  EXPECT_TRUE(problems.any_at("mixture.informs"));
  EXPECT_TRUE(problems.any_at("mixture.informs[0].type"));
  EXPECT_FALSE(problems.any_at("mix"));
  EXPECT_FALSE(problems.any_at("mixture.informs[0].type.x"));
}

TEST(Problems, TakeErrorsOfOtherLayersAtTheKeyThatTheyName) {
  Problems problems("run.yaml");
  problems.saw("sharding.rules", {1, 1});
  problems.saw("sharding.rules[1]", {3, 3});
  problems.collect("sharding.rules", [] { refuse("sharding.rules[1]", "has no axis", "give one"); });
  problems.collect("sharding.rules", [] { refuse("sharding.rules_of_thumb", "are wrong"); });
  problems.collect("sharding.rules", [] { refuse({FilePlace{"other.yaml", 7}, "sharding.rules"}, "are old"); });
  problems.collect("sharding.rules", [] {});
  EXPECT_EQ(problems.text(),
            "run.yaml:1:1: sharding.rules: sharding.rules_of_thumb: are wrong\n"
            "run.yaml:1:1: sharding.rules: other.yaml:7: sharding.rules: are old\n"
            "run.yaml:3:3: sharding.rules[1]: has no axis\n    give one\n"
            "3 problems in run.yaml; nothing was run.");
}

TEST(Problems, TakeEveryProblemOfAnotherDocument) {
  Problems problems("run.yaml");
  problems.collect("generate", [] {
    Problems inner("generation_config.json");
    inner.add("top_k", Place{2, 3}, "is wrong", "give 1");
    inner.add("top_p", Place{1, 3}, "is odd");
    inner.throw_if_any();
  });
  EXPECT_EQ(problems.text(),
            "run.yaml: generate: generation_config.json:1:3: top_p: is odd\n"
            "run.yaml: generate: generation_config.json:2:3: top_k: is wrong\n    give 1\n"
            "2 problems in run.yaml; nothing was run.");
}

TEST(ConfigError, ListsAllProblemsAndHasTheFieldsOfTheFirst) {
  Problems problems("run.yaml");
  EXPECT_NO_THROW(problems.throw_if_any());
  problems.add("b", Place{2, 1}, "is odd");
  problems.add("a", Place{1, 4}, "is wrong", "give 1");
  try {
    problems.throw_if_any();
  } catch (const UserError& error) {
    EXPECT_EQ(error.where, "a");
    EXPECT_EQ(error.problem, "is wrong");
    EXPECT_EQ(error.remedy, "give 1");
    EXPECT_EQ(error.place.file, "run.yaml");
    EXPECT_EQ(error.place.line, 1);
    EXPECT_EQ(error.place.column, 4);
    EXPECT_EQ(error.what(), problems.text());
    const auto& all = dynamic_cast<const ConfigError&>(error).problems;
    ASSERT_EQ(all.size(), 2u);
    EXPECT_STREQ(all[0].what(), "run.yaml:1:4: a: is wrong\n    give 1");
    EXPECT_STREQ(all[1].what(), "run.yaml:2:1: b: is odd");
    return;
  }
  FAIL() << "nothing was thrown";
}

TEST(Problems, BelongToAKeyOrToOneBelowIt) {
  Problems problems("run.yaml");
  problems.add("a.b-c", "is wrong");
  problems.add("a.bc", "is wrong");
  EXPECT_FALSE(problems.any_at("a.b"));
  problems.add("a.b.d", "is wrong");
  EXPECT_TRUE(problems.any_at("a.b"));
  EXPECT_TRUE(problems.any_at("a"));
  EXPECT_TRUE(problems.any_at(""));
  EXPECT_FALSE(problems.any_at("a.b.d.e"));
  EXPECT_FALSE(problems.any_at("list"));
  problems.add("list[3]", "is wrong");
  problems.add("list[3]", "is wrong");
  problems.add("list[3]", "is worse");
  EXPECT_TRUE(problems.any_at("list"));
  EXPECT_EQ(problems.size(), 5u);
}

TEST(Problems, GroupKeysWithoutEffectByReason) {
  Problems problems("run.yaml");
  problems.no_effect("a", "no compiler");
  problems.no_effect("b", "one device");
  problems.no_effect("c", "no compiler");
  problems.no_effect("a", "no compiler");
  EXPECT_EQ(problems.notes(), std::vector<std::string>{"has no effect here: a, c (no compiler); b (one device)"});
}

TEST(Keys, SpeakOfTheirSection) {
  Problems problems("run.yaml");
  problems.saw("trainer.rate", {5, 2});
  Keys keys(problems, "trainer");
  EXPECT_TRUE(keys.given("rate"));
  EXPECT_FALSE(keys.given("steps"));
  keys.refuse("rate", "is wrong", "give 1");
  keys.below("inner").refuse("steps", "is wrong");
  keys.note("rate", "is odd");
  EXPECT_EQ(problems.text(),
            "run.yaml:5:2: trainer.rate: is wrong\n    give 1\nrun.yaml: trainer.inner.steps: is wrong\n"
            "2 problems in run.yaml; nothing was run.");
  EXPECT_EQ(problems.notes(), std::vector<std::string>{"run.yaml:5:2: trainer.rate: is odd"});
}

}  // namespace
}  // namespace easydel::config
