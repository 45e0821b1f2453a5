// A kind of recorded cases that `probe vectors` can answer. What reads files, compares and reports is probe/vectors.h.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::probe {

struct VectorFile {
  std::filesystem::path path;
  Value document;
};

// One case. `body` may be anything that the file holds: a map of a list, an entry of a table, the whole document.
struct VectorCase {
  std::string id;
  Value body;
};

struct VectorKind {
  // The document's "kind"; a file without one: its folder and name, "losses/cross_entropy".
  std::string name;
  // Our answer in the file's format. Throws UserError if ours refuses, VectorNotBuilt if it is not built yet.
  std::function<Value(const VectorCase& vector, const VectorFile& file)> answer;
  // Numbers are equal within absolute + relative * |expected|.
  double relative = 1e-5, absolute = 1e-6;

  // The rest has a usual form; a kind says only what differs from it.
  // The recorded result, as {"ok": value} or {"error": ...}. Usually "expect", else "result", else "value".
  std::function<Value(const VectorCase& vector, const VectorFile& file)> expected = {};
  // Other tolerances for some cases; nullopt: those above.
  std::function<std::optional<double>(const VectorCase& vector)> tolerance = {};
  // Where `got` is not `expected`, in words; empty: nowhere. Usually difference_of with the tolerances above.
  std::function<std::string(const Value& expected, const Value& got)> compare = {};
  // Usually the entries of "cases" (a list), or of "table" (a map); a file with neither is one case.
  std::function<std::vector<VectorCase>(const VectorFile& file)> cases = {};
};

// The case needs something that is not built; the text says what ("the family 'mixtral'").
struct VectorNotBuilt : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace easydel::probe
