// trainer.benchmarks of a session: tasks that are built once, and asked after steps (train::Benchmarks).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "easydel/elarge/benchmarks.h"

namespace easydel::elarge {

class TrainingBenchmarks final : public train::Benchmarks {
 public:
  // Builds the tasks, on the first rank. UserError as Evaluation's constructor. The session must outlive it.
  TrainingBenchmarks(const Config& config, Session& session, bool first_rank);

  std::optional<train::BenchmarkMetrics> run(const std::atomic<bool>& stop, const OnWork& on_work) override;

 private:
  Session& session_;
  std::vector<std::pair<std::string, std::unique_ptr<Evaluation>>> evaluations_;
};

}  // namespace easydel::elarge
