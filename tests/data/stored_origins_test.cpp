#include "easydel/data/stored_origins.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::data {
namespace {

TEST(StoredOrigins, AreThePlacesOfRowsByTheirNumbers) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "a.jsonl", "{\"text\": \"a\"}\nnonsense\n{\"text\": \"left out\"}\n{\"text\": \"b\"}\n");
  test::write_file(folder / "b.txt", "c\n\nd\n");
  test::write_file(folder / "c.txt", "e\n");
  DatasetOptions options;
  for (const char* name : {"a.jsonl", "b.txt", "c.txt"})
    options.informs.emplace_back().data_files = {(folder / name).string()};
  options.informs[0].filter = "{{ text != 'left out' }}";
  // The row of the filter has no number, the bad one has: a, nonsense, b.
  const StoredOrigins origins(options, {3, 0, 3}, {0, 1, 2, 0, 0, 0});
  const auto of = [&](const std::vector<int64_t>& examples) {
    std::string out;
    for (const RowOrigin& origin : origins.of(examples))
      out += str(out.empty() ? "" : " ", origin.inform, ":",
                 test::replaced(origin.where, folder.path().string() + "/", ""));
    return out;
  };
  EXPECT_EQ(of({0, 1, 2}), "0:a.jsonl:1 0:a.jsonl:2:1 0:a.jsonl:4");
  EXPECT_EQ(of({5, 2, 3, 2, 0}), "2:c.txt:1 0:a.jsonl:4 2:c.txt:1 0:a.jsonl:4 0:a.jsonl:1") << "in any order";
  EXPECT_EQ(of({}), "");
  const StoredOrigins second(options, {0, 2, 0}, {1, 1});
  const std::vector<int64_t> both{1, 0};
  EXPECT_EQ(second.of(both)[0].where, (folder / "b.txt").string() + ":3");
  EXPECT_ANY_THROW(StoredOrigins(options, {1, 1}, {0, 0})) << "another number of informs";
}

}  // namespace
}  // namespace easydel::data
