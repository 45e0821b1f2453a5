#include "easydel/kernels/isa.h"

#include <gtest/gtest.h>

#include <string>

#include "easydel/base/error.h"

namespace easydel::kernels {
namespace {

std::string have() {
  std::string names;
  for (const Isa isa : available_isas()) names += (names.empty() ? "" : ", ") + std::string(name(isa));
  return names;
}

std::string refusal(std::string_view text) {
  try {
    choose_isa(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Isa, StartsWithTheReferenceAndRises) {
  ASSERT_FALSE(available_isas().empty());
  EXPECT_EQ(available_isas().front(), Isa::reference);
  for (size_t i = 1; i < available_isas().size(); ++i) EXPECT_LT(available_isas()[i - 1], available_isas()[i]);
}

TEST(Isa, IsTheBestThereIsUnlessForced) {
  EXPECT_EQ(choose_isa(""), available_isas().back());
  for (const Isa isa : available_isas()) EXPECT_EQ(choose_isa(name(isa)), isa);
}

TEST(Isa, RefusesAWordThatNamesNoSet) {
  EXPECT_EQ(refusal("sse9"), "EASYDEL_ISA: 'sse9' is no instruction set\n    it has " + have());
}

TEST(Isa, RefusesASetThatTheMachineLacks) {
  if (available_isas().back() == Isa::amx) GTEST_SKIP() << "this machine has every set";
  EXPECT_EQ(refusal("amx"), "EASYDEL_ISA: this machine cannot run 'amx'\n    it has " + have());
}

TEST(Isa, IsPutBackWhenAForcedOneEnds) {
  const Isa before = isa();
  {
    const UseIsa use(Isa::reference);
    EXPECT_EQ(isa(), Isa::reference);
  }
  EXPECT_EQ(isa(), before);
}

}  // namespace
}  // namespace easydel::kernels
