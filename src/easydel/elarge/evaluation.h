// Benchmark tasks by lm-evaluation-harness on the model of a session: the action eval, `easydel eval`, Builder::eval.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
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

// How an evaluation is run.
struct EvaluationRun {
  bool digests = true;                         // of the weights, in the document; with use_cache always
  const std::atomic<bool>* stop = nullptr;     // set by another thread or a signal handler: run() throws Stopped
  std::function<void(int64_t)> on_asked = {};  // the number of requests that the harness asks for now
  // The results so far, after each task but the last; `easydel.unfinished` names the others.
  std::function<void(const Value& document)> on_finished = {};
  bool engine = true;                    // may generate; it must not while the model is trained
  std::function<void()> on_answer = {};  // after each answer
};

// Tasks that are built and checked; they can be run several times. The process with the harness lives as long.
class Evaluation {
 public:
  // Needs no model. UserError: no harness, a task that is not there, data that are missing (all are named), code
  // without consent, more examples than there are. `harness`: that of other evaluations; null: its own.
  // `first_rank` false: tasks are built on another rank, whose run() this one joins.
  explicit Evaluation(EvaluationPlan plan, std::shared_ptr<Harness> harness = nullptr, bool first_rank = true);

  struct Stopped {};

  // The harness' document of results, with the key `easydel`. UserError: a request failed, or the process ended; the
  // next run starts it anew. Collective, with the same result on every rank.
  Value run(Session& session, const EvaluationRun& how = {});
  // run(), then what the plan asks for: files are written, the table goes to `out`.
  Value report(Session& session, const Output& out);

  const EvaluationPlan& plan() const { return plan_; }

 private:
  void prepare();
  Value run_here(Session& session, const EvaluationRun& how);

  EvaluationPlan plan_;
  std::shared_ptr<Harness> harness_;  // null: the first rank has it
  int64_t number_ = 0;                // what the process calls it
  std::vector<std::string> names_;    // of its tasks and groups, as the process has found them
  int64_t prepared_ = 0;              // the start of the process that has its tasks
  std::string table_;                 // of the last run
};

// `results[task].get("acc")` of the documents' guide: the value of a metric by its name, with or without the filter
// after the comma ("acc,none"); null: there is none.
const Value* metric_of(const Value& document, const std::string& task, const std::string& metric);

}  // namespace easydel::elarge
