#include "easydel/elarge/compare_results.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>

#include "easydel/base/error.h"
#include "easydel/base/text_table.h"

namespace easydel::elarge {
namespace {

const Value& results_of(const Value& document, const std::string& name) {
  const Value* const results = document.is_map() ? document.find("results") : nullptr;
  if (!results || !results->is_map())
    refuse(name, "has no results of an evaluation", "give the JSON file that eval's output_path named");
  return *results;
}

// "acc,none" -> "acc_stderr,none"
std::string error_name(const std::string& metric) {
  const size_t comma = metric.find(',');
  return metric.substr(0, comma) + "_stderr" + (comma == std::string::npos ? "" : metric.substr(comma));
}

std::optional<double> number_at(const Value& task, const std::string& metric) {
  const Value* const value = task.find(metric);
  return value ? value->as_double() : std::nullopt;
}

// The samples of a task by document and filter.
std::map<std::string, const Value*> samples_of(const Value& document, const std::string& task) {
  std::map<std::string, const Value*> out;
  const Value* const samples = document.find("samples");
  const Value* const own = samples ? samples->find(task) : nullptr;
  if (!own || !own->is_list()) return out;
  for (const Value& sample : own->items) {
    const Value *const number = sample.find("doc_id"), *const filter = sample.find("filter");
    if (number) out[number->scalar + (filter && filter->scalar != "none" ? " " + filter->scalar : "")] = &sample;
  }
  return out;
}

void compare_samples(const Value& before, const Value& after, const std::string& task, ResultsComparison& out) {
  const auto others = samples_of(after, task);
  for (const auto& [document, sample] : samples_of(before, task)) {
    const auto other = others.find(document);
    const Value* const metrics = sample->find("metrics");
    if (other == others.end() || !metrics) continue;
    for (const Value& metric : metrics->items) {
      const auto one = number_at(*sample, metric.scalar), two = number_at(*other->second, metric.scalar);
      const auto is_side = [](const std::optional<double>& value) { return value && (*value == 0 || *value == 1); };
      if (is_side(one) && is_side(two) && *one != *two)
        out.documents.push_back({task, document, metric.scalar, *one, *two});
    }
  }
}

std::string fixed(double value, const char* format = "%.4f") {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return std::isnan(value) ? "" : text;
}

}  // namespace

double ResultsComparison::largest() const {
  double out = 0;
  for (const MetricDifference& one : metrics) out = std::max(out, std::abs(one.after - one.before));
  return out;
}

std::string ResultsComparison::text() const {
  std::vector<std::vector<std::string>> rows{{"task", "metric", "before", "after", "difference", "standard error"}};
  for (const MetricDifference& one : metrics)
    rows.push_back({one.task, one.metric, fixed(one.before), fixed(one.after), fixed(one.after - one.before, "%+.4f"),
                    fixed(one.error)});
  std::string out = text_table(rows);
  for (const std::string& task : missing) out += "only one of them has " + task + "\n";
  if (!documents.empty()) out += str("\n", documents.size(), " values of documents changed sides:\n");
  std::map<std::pair<std::string, std::string>, std::pair<std::string, std::string>> sides;
  for (const ChangedDocument& one : documents) {
    auto& [better, worse] = sides[{one.task, one.metric}];
    std::string& list = one.after > one.before ? better : worse;
    list += (list.empty() ? "" : ", ") + one.document;
  }
  for (const auto& [name, lists] : sides) {
    if (!lists.first.empty()) out += str("  ", name.first, " ", name.second, ", 0 to 1: ", lists.first, "\n");
    if (!lists.second.empty()) out += str("  ", name.first, " ", name.second, ", 1 to 0: ", lists.second, "\n");
  }
  return out;
}

ResultsComparison compare_results(const Value& before, const std::string& before_name, const Value& after,
                                  const std::string& after_name) {
  const Value &ours = results_of(before, before_name), &others = results_of(after, after_name);
  ResultsComparison out;
  for (const auto& [task, metrics] : ours.entries) {
    const Value* const other = others.find(task);
    if (!other) {
      out.missing.push_back(task);
      continue;
    }
    for (const auto& [metric, value] : metrics.entries) {
      const auto one = value.as_double(), two = number_at(*other, metric);
      if (!one || !two || metric.find("_stderr") != std::string::npos || metric.find(',') == std::string::npos)
        continue;
      const double nothing = std::numeric_limits<double>::quiet_NaN();
      const double first = number_at(metrics, error_name(metric)).value_or(nothing),
                   second = number_at(*other, error_name(metric)).value_or(nothing);
      out.metrics.push_back({task, metric, *one, *two, std::sqrt(first * first + second * second)});
    }
    compare_samples(before, after, task, out);
  }
  for (const auto& [task, metrics] : others.entries)
    if (!ours.find(task)) out.missing.push_back(task);
  return out;
}

}  // namespace easydel::elarge
