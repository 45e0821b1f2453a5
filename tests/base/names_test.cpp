#include "easydel/base/names.h"

#include <gtest/gtest.h>

namespace easydel {
namespace {

TEST(Names, ASlipOfTheFingerIsRecognised) {
  const std::vector<std::string> known = {"page_size", "memory_fraction", "attention"};
  EXPECT_EQ(nearest("page_sise", known), "page_size");
  EXPECT_EQ(nearest("pgae_size", known), "page_size");
  EXPECT_EQ(nearest("Attention", known), "attention");
  EXPECT_EQ(nearest("page-size", known), "page_size");
  EXPECT_EQ(nearest("tokens", known), "");
}

TEST(Names, ShortWordsAreNotNearToEverything) {
  const std::vector<std::string> known = {"r", "sp", "tp"};
  EXPECT_EQ(nearest("x", known), "");
  EXPECT_EQ(nearest("ab", known), "");
}

TEST(Names, AreAnsweredWithAHint) {
  const std::vector<std::string> known = {"train", "print"};
  EXPECT_EQ(did_you_mean("trian", known), "did you mean 'train'?");
  EXPECT_EQ(did_you_mean("serve", known), "known: train, print");
}

}  // namespace
}  // namespace easydel
