#include "easydel/elarge/benchmarks.h"

#include <algorithm>
#include <set>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/config/section.h"

namespace easydel::elarge {
namespace {

// The names of tasks in a benchmark's map, which are no keys of the section eval.
constexpr const char *tasks_key = "tasks", *name_key = "name";

bool read_tasks(const Value& given, std::vector<std::string>& tasks) {
  const std::vector<Value> list = given.is_list() ? given.items : std::vector<Value>{given};
  for (const Value& task : list) {
    const auto name = task.as_string();
    if (!name || name->empty()) return false;
    tasks.push_back(*name);
  }
  return !tasks.empty();
}

bool read_benchmark(const Value& item, const std::string& path, BenchmarkPlan& out, config::Problems& problems) {
  constexpr const char* remedy = "give the name of a task, or a map such as {tasks: [hellaswag], limit: 100}";
  std::vector<std::string>& tasks = out.plan.action.tasks;
  if (!item.is_map()) {
    if (!item.is_list() && read_tasks(item, tasks)) return true;
    problems.add(path, item.place, config::shown(item) + " is not a benchmark", remedy);
    return false;
  }
  const Value* const named = item.find(tasks_key);
  if (!named || !read_tasks(*named, tasks)) {
    problems.add(path, item.place, "names no task", remedy);
    return false;
  }
  Value settings{.kind = Value::Kind::map, .place = item.place};
  for (size_t i = 0; i < item.entries.size(); ++i) {
    const auto& [key, value] = item.entries[i];
    if (key == tasks_key) continue;
    if (key == name_key) {
      out.name = value.as_string().value_or("");
      if (out.name.empty()) problems.add(path + ".name", value.place, config::shown(value) + " is not a name");
      continue;
    }
    settings.entries.push_back(item.entries[i]);
    if (i < item.key_places.size()) settings.key_places.push_back(item.key_places[i]);
  }
  const size_t before = problems.size();
  config::read_section(config::section_of<EvalConfig>(), settings, &out.plan.settings, path, problems);
  return problems.size() == before;
}

}  // namespace

std::vector<BenchmarkPlan> benchmark_plans(const Config& config, config::Problems& problems) {
  const train::TrainerConfig& trainer = config.trainer.common;
  std::vector<BenchmarkPlan> out;
  if (!trainer.benchmarks.empty() && config.trainer.facts().task != models::Task::causal_lm) {
    problems.add("trainer.benchmarks", "trainer_type " + trainer.trainer_type + " trains no language model",
                 "leave them out");
    return out;
  }
  std::set<std::string> names;
  for (size_t i = 0; i < trainer.benchmarks.size(); ++i) {
    const std::string path = str("trainer.benchmarks[", i, "]");
    BenchmarkPlan benchmark;
    benchmark.plan.where = path;
    benchmark.plan.settings = config.eval;
    benchmark.plan.settings.use_tqdm = false;  // the run has a bar
    benchmark.plan.model_name = config.model.name_or_path;
    if (!read_benchmark(trainer.benchmarks[i], path, benchmark, problems)) continue;
    const auto add_name = [&](const std::string& name) {
      if (!names.insert(name).second)
        problems.add(path, trainer.benchmarks[i].place, "another benchmark is called '" + name + "', too",
                     "give one of them a name");
    };
    if (!benchmark.name.empty())
      add_name(benchmark.name);
    else
      for (const std::string& task : benchmark.plan.action.tasks) add_name(task);
    out.push_back(std::move(benchmark));
  }
  return out;
}

train::BenchmarkMetrics benchmark_metrics(const std::string& name, const Value& document) {
  train::BenchmarkMetrics out;
  const Value* const results = document.find("results");
  if (!results) return out;
  for (const auto& [task, metrics] : results->entries) {
    const bool whole = !name.empty() && results->entries.size() == 1;
    const std::string prefix = name.empty() ? task : whole ? name : name + "/" + task;
    for (const auto& [metric, value] : metrics.entries) {
      const size_t comma = metric.find(',');
      const auto number = value.is_text() ? std::nullopt : value.as_double();
      if (comma == std::string::npos || !number) continue;
      const bool plain = metric.substr(comma + 1) == "none";
      out.emplace_back(prefix + "/" + (plain ? metric.substr(0, comma) : metric), *number);
    }
  }
  return out;
}

}  // namespace easydel::elarge
