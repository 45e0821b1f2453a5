// The frame of `probe vectors`: reads files of recorded cases, lets each kind answer its cases, compares and reports. A
// kind is one function, in vectors_<kind>.cpp (vectors_<kind>_core.cpp if it needs torch), and a line in
// vector_kinds.cpp (vector_kinds_core.cpp).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/probe/vector_kind.h"

namespace easydel::probe {

// The kinds that need no torch, and those that do (in libeasydel_core.so).
const std::vector<VectorKind>& vector_kinds();
const std::vector<VectorKind>& core_vector_kinds();
// Of both lists; the second is loaded only if the first has no such name. nullptr: not built yet.
const VectorKind* find_vector_kind(std::string_view name);

// Ours is another on purpose. docs/differences.md lists the same patterns.
struct VectorDifference {
  std::string_view kind;
  std::string_view version;  // "0.2.0.1": only recordings of this version (the end of "upstream"); empty: all
  std::string_view id;       // a regular expression for the whole id
  std::string_view reason;
  std::string_view says =
      {};  // only where the difference, or our refusal, has these words; empty: whatever is not equal
};
const std::vector<VectorDifference>& vector_differences();

// A file's kind, by its document or else by its folder and name. A file whose kind begins with "table_" holds no cases.
VectorFile read_vectors(const std::filesystem::path& path);
std::string kind_of(const VectorFile& file);
std::vector<VectorCase> cases_of(const VectorFile& file, const VectorKind* kind);

enum class Outcome : uint8_t { passed, failed, differs, not_built, unknown };  // unknown: nothing was expected
struct Answered {
  std::string id;
  Outcome outcome = Outcome::unknown;
  Value line;       // the printed line: {"id", "ok" | "error", "message" | "differs"}
  std::string why;  // where a failed case differs
};
Answered answer(const VectorCase& vector, const VectorFile& file, const VectorKind* kind);

// The first place where two results are not equal, as 'query.P[1]: "tp" is expected, not "sp"'; empty: none. Numbers
// by tolerance; NaN equals NaN, also as the word "NaN" that files use.
std::string difference_of(const Value& expected, const Value& got, double relative, double absolute);

// A required key of a case. Throws UserError if it is missing.
const Value& needed(const VectorCase& vector, const char* key);

// The usual shape of a list of numbers or words in these files.
Value list_of(const std::vector<int64_t>& numbers);
Value list_of(const std::vector<std::string>& words);
std::vector<int64_t> integers_of(const Value& list);
std::vector<std::string> words_of(const Value& list);

}  // namespace easydel::probe
