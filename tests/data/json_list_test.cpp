#include "easydel/data/json_list.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "easydel/data/rows.h"
#include "support/data.h"

namespace easydel::data {
namespace {

// Bytes that come in pieces of one size.
class Pieces final : public ByteStream {
 public:
  Pieces(std::string text, size_t size) : text_(std::move(text)), size_(size) {}
  size_t read(char* to, size_t bytes) override {
    const size_t count = std::min({bytes, size_, text_.size() - at_});
    text_.copy(to, count, at_);
    at_ += count;
    return count;
  }

 private:
  std::string text_;
  size_t size_, at_ = 0;
};

std::string elements_of(const std::string& text, size_t piece = 1 << 20) {
  Pieces pieces(text, piece);
  std::string out;
  try {
    for_each_element(pieces, [&](std::string_view element, int64_t line, int64_t) {
      out += str(out.empty() ? "" : " ", line, "=", element);
      return true;
    });
  } catch (const ListError& error) {
    out += str(" ! ", error.line, ": ", error.problem);
  }
  return out;
}

TEST(JsonList, IsCutIntoItsElements) {
  const std::string text = "\n[ {\"a\": \"x,]}\\\"[\"},\n  [1, {\"b\": []}] ,\n3.5,\"q\" , null\n]\n";
  const char* const expected = "2={\"a\": \"x,]}\\\"[\"} 3=[1, {\"b\": []}] 4=3.5 4=\"q\" 4=null";
  for (const size_t piece : {1, 2, 3, 7, 1 << 20}) EXPECT_EQ(elements_of(text, piece), expected) << piece;
  EXPECT_EQ(elements_of("[]"), "");
  EXPECT_EQ(elements_of(" [\n] "), "");
}

TEST(JsonList, MistakesBetweenElementsSayTheirLine) {
  EXPECT_EQ(elements_of("[1,\n2"), "1=1 ! 2: the list does not end: a ']' is missing");
  EXPECT_EQ(elements_of("[1,\n]"), "1=1 ! 2: a comma is followed by the end of the list");
  EXPECT_EQ(elements_of("[,1]"), " ! 1: a comma without an element before it");
  EXPECT_EQ(elements_of("[{} {}]"), "1={} {}") << "the element's own parser refuses it";
  EXPECT_EQ(elements_of("[1]\n2"), "1=1 ! 2: the list is followed by something else");
}

TEST(JsonList, ABadElementIsABadRowAndTheNextIsRead) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "a.json", "[{\"text\": \"a\"},\n {\"text\":\n  nonsense},\n 5,\n {\"text\": \"b\"}]");
  std::string rows, bad;
  ReadOptions options;
  options.on_bad_row = [&](const UserError& error) { bad += Where(error.place, error.where).text() + " "; };
  find_source("json")->read(folder / "a.json", options, [&](const Row& row) {
    rows += row.fields.find("text")->scalar;
    return true;
  });
  EXPECT_EQ(rows, "ab");
  EXPECT_EQ(test::replaced(bad, folder.path().string() + "/", ""), "a.json:3:3 a.json:4 ");
}

}  // namespace
}  // namespace easydel::data
