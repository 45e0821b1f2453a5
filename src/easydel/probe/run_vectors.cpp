// `easydel probe vectors FILE.json... [--check]`.
#include <map>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/probe/commands.h"
#include "easydel/probe/vectors.h"

namespace easydel::probe {
namespace {

struct Tally {
  int64_t passed = 0, failed = 0, differ = 0;
  std::map<std::string, int64_t> not_built;  // by kind
  std::string failures;

  void add(const std::string& kind, const Answered& answered) {
    switch (answered.outcome) {
      case Outcome::passed:
        ++passed;
        break;
      case Outcome::differs:
        ++differ;
        break;
      case Outcome::not_built:
        ++not_built[kind];
        break;
      case Outcome::unknown:
      case Outcome::failed:
        ++failed;
        failures +=
            "  " + answered.id + ": " + (answered.why.empty() ? "the file expects nothing" : answered.why) + "\n";
    }
  }
  std::string text() const {
    std::string out = str(passed, " passed, ", failed, " failed");
    if (differ) out += str(", ", differ, " differ on purpose");
    for (const auto& [kind, count] : not_built) out += str(", ", count, " of kind ", kind, " not built yet");
    return out + "\n" + failures;
  }
};

}  // namespace

int run_vectors(const std::vector<std::string>& files, bool check, const Output& print) {
  Tally tally;
  for (const std::string& name : files) {
    const VectorFile file = read_vectors(name);
    const std::string kind_name = kind_of(file);
    if (kind_name.starts_with("table_")) {
      log::info(name, " is a table, not cases: passed over");
      continue;
    }
    const VectorKind* const kind = find_vector_kind(kind_name);
    std::string out;
    for (const VectorCase& vector : cases_of(file, kind)) {
      const Answered answered = answer(vector, file, kind);
      tally.add(kind_name, answered);
      out += to_json(answered.line) + "\n";
      if (out.size() > size_t{1} << 16) {
        print(out);
        out.clear();
      }
    }
    print(out);
  }
  if (!check) return 0;
  print(tally.text());
  const bool nothing_was_tried = !tally.passed && !tally.differ && !tally.not_built.empty();
  return tally.failed || nothing_was_tried ? 1 : 0;
}

}  // namespace easydel::probe
