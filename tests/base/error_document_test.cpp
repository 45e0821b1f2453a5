#include "easydel/base/error_document.h"

#include <gtest/gtest.h>

namespace easydel {
namespace {

TEST(ErrorDocument, CarriesAnErrorFromOneProcessToAnother) {
  const UserError error("rows.jsonl:3", "the row is \"broken\"", "repair it\nor drop it");
  const std::string sent = to_json(error_document(error));
  try {
    rethrow(parse_json(sent, "another process"));
  } catch (const UserError& again) {
    EXPECT_EQ(again.where, error.where);
    EXPECT_EQ(again.problem, error.problem);
    EXPECT_EQ(again.remedy, error.remedy);
    EXPECT_STREQ(again.what(), error.what());
  }
}

}  // namespace
}  // namespace easydel
