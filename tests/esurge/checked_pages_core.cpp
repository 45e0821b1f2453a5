// Every engine of these tests walks its pages after each step.
#include <gtest/gtest.h>

#include <cstdlib>

namespace easydel::esurge {
namespace {

class CheckedPages final : public testing::Environment {
 public:
  void SetUp() override { setenv("EASYDEL_ESURGE_CHECK", "1", 0); }
};
[[maybe_unused]] const testing::Environment* const checked_pages = testing::AddGlobalTestEnvironment(new CheckedPages);

}  // namespace
}  // namespace easydel::esurge
