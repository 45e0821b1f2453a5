// Tests with lm-evaluation-harness itself; they are skipped where it is not installed (./easydel.sh test --eval).
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/elarge/evaluation.h"
#include "support/data.h"

namespace easydel::test {

inline bool has_harness() {
  try {
    elarge::find_harness("test");
  } catch (const UserError&) {
    return false;
  }
  return true;
}

class Harness : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_harness()) GTEST_SKIP() << "no lm_eval";
  }

  Ran evaluate(const std::string& tasks, std::vector<std::string> settings,
               std::vector<std::pair<std::string, std::string>> environment = {}) {
    std::vector<std::string> arguments{
        "eval", test_data("models/stories260K-hf").string(), "--tasks", tasks, "-o", (folder_ / "r.json").string()};
    settings.insert(settings.end(), {"eval.include_path=examples/tasks", "eval.include_defaults=false"});
    for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
    environment.insert(environment.end(), {{"HF_HUB_OFFLINE", "1"}, {"HF_HOME", (folder_ / "hf").string()}});
    return run_program(arguments, {.environment = environment, .folder = source_root()});
  }
  Value results() const { return parse_file(folder_ / "r.json"); }
  static double metric(const Value& document, const char* task, const char* name) {
    const Value* const value = elarge::metric_of(document, task, name);
    return value ? value->as_double().value() : NAN;
  }

  TemporaryFolder folder_;
};

}  // namespace easydel::test
