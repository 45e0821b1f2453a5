#include "easydel/kernels/isa.h"

#include <gtest/gtest.h>

#include <string>

#include "easydel/base/error.h"
#include "support/data.h"

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
  EXPECT_EQ(refusal("sse9"), "EASYDEL_ISA: 'sse9' is not an instruction set\n    it has " + have());
}

// Asked of the program, because this one has an emulator of tiles.
TEST(Isa, RefusesASetThatTheMachineLacks) {
  const test::Ran ran = test::run_program({"doctor"}, {.environment = {{"EASYDEL_ISA", "amx"}}});
  if (ran.status == 0) GTEST_SKIP() << "this machine has every set";
  const std::string all = have(), own = all.substr(0, all.find(", amx"));
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.err, "EASYDEL_ISA: this machine cannot run 'amx'\n    it has " + own + "\n");
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
