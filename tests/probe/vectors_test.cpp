// `probe vectors`: the frame, and the recorded cases of every kind that needs no torch.
#include "easydel/probe/vectors.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::probe {
namespace {

VectorFile file_of(const char* json, const char* path = "losses/cross_entropy.json") {
  return {path, parse_json(json)};
}

Value sum(const VectorCase& vector, const VectorFile&) {
  int64_t total = 0;
  for (const int64_t number : integers_of(*vector.body.find("numbers"))) total += number;
  if (total < 0) refuse("sum", "is below 0", "give larger numbers");
  if (total == 99) throw VectorNotBuilt("the sum 99");
  if (total == 98) throw Bug("broken");
  return Value::integer(total);
}

TEST(Vectors, AFileNamesItsKindOrItsPlaceDoes) {
  EXPECT_EQ(kind_of(file_of(R"({"kind": "rope", "cases": []})")), "rope");
  EXPECT_EQ(kind_of(file_of(R"({"cases": []})")), "losses/cross_entropy");
  EXPECT_EQ(kind_of(file_of(R"({"cases": []})", "data/quant/int8.json.gz")), "quant/int8");
  EXPECT_EQ(kind_of(file_of(R"({"table": "errors", "data": {}})")), "table_errors");
  EXPECT_EQ(kind_of(file_of(R"({"table": {"adamw": {}}})", "optim/step_tables.json")), "optim/step_tables");
}

TEST(Vectors, CasesAreCalledByTheirIdTheirNameTheirKeyOrTheirPlace) {
  const auto ids = [](const char* json) {
    std::string out;
    for (const VectorCase& vector : cases_of(file_of(json, "f.json"), nullptr)) out += vector.id + " ";
    return out;
  };
  EXPECT_EQ(ids(R"({"cases": [{"id": "a", "name": "x"}, {"name": "b"}, {"c": 1}]})"), "a b f.json#2 ");
  EXPECT_EQ(ids(R"({"table": {"adamw": {}, "lion": {}}})"), "adamw lion ");
  EXPECT_EQ(ids(R"({"cases": [{"c": 1}]})"), "f.json ");
  EXPECT_EQ(ids(R"({"k1": [1]})"), "f.json ");
}

TEST(Vectors, ACasePassesFailsOrIsNotBuilt) {
  const VectorKind kind{.name = "sum", .answer = sum};
  const auto line = [&](const char* json, Outcome outcome) {
    const VectorFile file = file_of(json);
    const Answered answered = answer({"a", file.document}, file, &kind);
    EXPECT_EQ(answered.outcome, outcome) << json;
    return to_json(answered.line) + " " + answered.why;
  };
  EXPECT_EQ(line(R"({"numbers": [1, 2], "expect": {"ok": 3}})", Outcome::passed), R"({"id": "a", "ok": 3} )");
  EXPECT_EQ(line(R"({"numbers": [1, 2], "expect": 4})", Outcome::failed),
            R"({"id": "a", "ok": 3} the result: 4 is expected, not 3)");
  EXPECT_EQ(line(R"({"numbers": [-1], "expect": {"error": "ValueError"}})", Outcome::passed),
            R"({"id": "a", "error": "UserError", "message": "sum: is below 0\n    give larger numbers"} )");
  EXPECT_EQ(line(R"({"numbers": [1], "expect": {"error": "ValueError"}})", Outcome::failed),
            R"({"id": "a", "ok": 1} an error is expected: ValueError)");
  EXPECT_EQ(
      line(R"({"numbers": [-1], "expect": {"ok": 1}})", Outcome::failed),
      R"({"id": "a", "error": "UserError", "message": "sum: is below 0\n    give larger numbers"} refused: sum: is below 0
    give larger numbers)");
  EXPECT_EQ(line(R"({"numbers": [99], "expect": {"ok": 1}})", Outcome::not_built),
            R"({"id": "a", "error": "NotBuilt", "message": "the sum 99 is not built yet"} )");
  EXPECT_EQ(line(R"({"numbers": [98], "expect": {"error": "ValueError"}})", Outcome::failed),
            R"({"id": "a", "error": "Bug", "message": "broken"} broken)");
  EXPECT_EQ(line(R"({"numbers": [1]})", Outcome::unknown), R"({"id": "a", "ok": 1} )");
  const VectorKind unreadable{
      .name = "sum", .answer = sum, .expected = [](const VectorCase& vector, const VectorFile&) {
        return needed(vector, "sum");
      }};
  const VectorFile file = file_of(R"({"numbers": [1]})");
  const Answered answered = answer({"a", file.document}, file, &unreadable);
  EXPECT_EQ(answered.outcome, Outcome::failed);
  EXPECT_EQ(answered.why, "what it expects cannot be read: a: has no \"sum\"");
}

TEST(Vectors, TheFirstDifferenceIsNamedByItsPlace) {
  const auto difference = [](const char* expected, const char* got) {
    return difference_of(parse_json(expected), parse_json(got), 1e-5, 1e-6);
  };
  EXPECT_EQ(difference(R"({"a": [1, {"b": 2.0}]})", R"({"a": [1, {"b": 2.00001}]})"), "");
  EXPECT_EQ(difference(R"({"a": [1, {"b": 2.0}]})", R"({"a": [1, {"b": 2.0001}]})"),
            "a[1].b: 2.0 is expected, not 2.0001");
  EXPECT_EQ(difference(R"({"a": 1})", R"({})"), "a: 1 is expected, not nothing");
  EXPECT_EQ(difference(R"({})", R"({"a": 1})"), "a: nothing is expected, not 1");
  EXPECT_EQ(difference("[1, 2]", "[1]"), "the result: 2 entries is expected, not 1");
  EXPECT_EQ(difference(R"(["NaN", "-Infinity"])", "[NaN, -Infinity]"), "");
  EXPECT_EQ(difference(R"(["NaN"])", "[1.0]"), R"([0]: "NaN" is expected, not 1.0)");
  EXPECT_EQ(difference(R"("tp")", "null"), R"(the result: "tp" is expected, not null)");
}

TEST(Vectors, TheCommandCountsAndItsStatusSaysWhetherAllIsWell) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "good.json",
                   R"({"kind": "parse_mesh_string", "cases": [{"id": "p", "devices": 2, "string": "-1", "names": ["dp"],
                       "expect": {"ok": {"shape": {"dp": 2}, "axis_names": ["dp"], "device_ids": [0, 1]}}}]})");
  test::write_file(
      folder / "bad.json",
      R"({"kind": "parse_mesh_string", "cases": [{"id": "q", "devices": 2, "string": "3", "names": ["dp"], "expect": {"ok": 1}}]})");
  test::write_file(folder / "later.json", R"({"kind": "telepathy", "cases": [{"id": "t", "expect": {"ok": 1}}]})");
  test::write_file(folder / "table.json", R"({"table": "errors", "data": {}})");
  const auto good = test::run_program({"probe", "vectors", "good.json", "later.json", "table.json", "--check"},
                                      {.folder = folder.path()});
  EXPECT_EQ(good.status, 0);
  EXPECT_EQ(good.out, R"({"id": "p", "ok": {"shape": {"dp": 2}, "axis_names": ["dp"], "device_ids": [0, 1]}})"
                      "\n"
                      R"({"id": "t", "error": "NotBuilt", "message": "kind 'telepathy' is not built yet"})"
                      "\n1 passed, 0 failed, 1 of kind telepathy not built yet\n");
  EXPECT_NE(good.err.find("table.json is a table, not cases: passed over"), std::string::npos);
  const auto bad =
      test::run_program({"probe", "vectors", "good.json", "bad.json", "--check"}, {.folder = folder.path()});
  EXPECT_EQ(bad.status, 1);
  EXPECT_NE(bad.out.find("\n1 passed, 1 failed\n  q: refused: mesh '3': cannot reshape"), std::string::npos) << bad.out;
  EXPECT_EQ(test::run_program({"probe", "vectors", "bad.json"}, {.folder = folder.path()}).status, 0);
  EXPECT_EQ(test::run_program({"probe", "vectors", "later.json", "--check"}, {.folder = folder.path()}).status, 1);
}

}  // namespace
}  // namespace easydel::probe
