// Benchmark tasks while a model is trained: what trainer.benchmarks asks for, and the names of its metrics.
#pragma once

#include <string>
#include <vector>

#include "easydel/elarge/evaluation.h"
#include "easydel/train/benchmarks_config.h"

namespace easydel::elarge {

struct BenchmarkPlan {
  std::string name;  // empty: its tasks' own names
  EvaluationPlan plan;
};

// Each of trainer.benchmarks, with the keys of the section eval where it gives none itself. Adds to `problems` what is
// wrong with them.
std::vector<BenchmarkPlan> benchmark_plans(const Config& config, config::Problems& problems);

// The numbers in a document of results: "TASK/acc", "TASK/exact_match,strict-match" where a filter has a name, and for
// a benchmark with a name "NAME/acc", or "NAME/TASK/acc" if there are several tasks.
train::BenchmarkMetrics benchmark_metrics(const std::string& name, const Value& document);

}  // namespace easydel::elarge
