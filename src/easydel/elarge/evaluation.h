// Benchmark tasks by lm-evaluation-harness on the model of a session: the action eval, `easydel eval`, Builder::eval.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "easydel/elarge/core.h"
#include "easydel/elarge/elarge.h"
#include "easydel/elarge/harness_process.h"

namespace easydel::elarge {

// What is evaluated, and how: the action's parameters over the section eval.
struct EvaluationPlan {
  std::string where;  // what errors name: "actions[1].eval"
  EvalConfig settings;
  EvalActionConfig action;
  std::string model_name;  // as the user gave it
};

// Tasks that are built and checked; they can be run several times. The process with the harness lives as long.
class Evaluation {
 public:
  // Needs no model. UserError: no harness, a task that is not there, data that are missing (all are named), code
  // without consent, more examples than there are.
  explicit Evaluation(EvaluationPlan plan);

  // The harness' document of results, with the key `easydel`. UserError: a request failed, or the process ended.
  Value run(Session& session);
  // run(), then what the plan asks for: files are written, the table goes to `out`.
  Value report(Session& session, const Output& out);

  const EvaluationPlan& plan() const { return plan_; }

 private:
  EvaluationPlan plan_;
  HarnessPython python_;
  std::unique_ptr<HarnessProcess> process_;
  Value ready_;        // what the process says of its tasks
  std::string table_;  // of the last run
};

// `results[task].get("acc")` of the documents' guide: the value of a metric by its name, with or without the filter
// after the comma ("acc,none"); null: there is none.
const Value* metric_of(const Value& document, const std::string& task, const std::string& metric);

}  // namespace easydel::elarge
