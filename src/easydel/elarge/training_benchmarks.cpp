#include "easydel/elarge/training_benchmarks.h"

#include "easydel/base/error.h"

namespace easydel::elarge {

TrainingBenchmarks::TrainingBenchmarks(const Config& config, Session& session, bool first_rank) : session_(session) {
  config::Problems problems;
  std::vector<BenchmarkPlan> plans = benchmark_plans(config, problems);
  problems.throw_if_any();
  std::shared_ptr<Harness> harness;
  if (first_rank) harness = std::make_shared<Harness>("trainer.benchmarks", /*bars=*/false);
  for (BenchmarkPlan& each : plans)
    evaluations_.emplace_back(each.name, std::make_unique<Evaluation>(std::move(each.plan), harness, first_rank));
}

std::optional<train::BenchmarkMetrics> TrainingBenchmarks::run(const std::atomic<bool>& stop, const OnWork& on_work) {
  train::BenchmarkMetrics out;
  EvaluationRun how;
  how.digests = false, how.engine = false;
  how.stop = &stop;
  int64_t asked = 0;
  how.on_asked = [&](int64_t count) { asked += count; };
  int64_t answered = 0;
  how.on_answer = [&] { on_work(++answered, asked); };
  for (const auto& [name, evaluation] : evaluations_) {
    Value document;
    try {
      document = evaluation->run(session_, how);
    } catch (const Evaluation::Stopped&) {
      return std::nullopt;
    }
    for (auto& metric : benchmark_metrics(name, document)) out.push_back(std::move(metric));
  }
  return out;
}

}  // namespace easydel::elarge
