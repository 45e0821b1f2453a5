// A table of metrics: how each is called and what of the engine's numbers it is; written in Prometheus' text format.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/esurge/metrics.h"

namespace easydel::esurge {

enum class MetricKind : uint8_t { gauge, counter, histogram };

struct Metric {
  std::string_view name, help;
  MetricKind kind;
  double (*number)(const EngineMetrics&);               // null: a histogram
  const Histogram* (*histogram)(const EngineMetrics&);  // null: a number
};

template <auto member>
constexpr Metric gauge(std::string_view name, std::string_view help) {
  return {name, help, MetricKind::gauge, [](const EngineMetrics& m) { return double(m.*member); }, nullptr};
}
template <auto member>
constexpr Metric counter(std::string_view name, std::string_view help) {
  return {name, help, MetricKind::counter, [](const EngineMetrics& m) { return double(m.*member); }, nullptr};
}
template <auto member>
constexpr Metric histogram(std::string_view name, std::string_view help) {
  return {name, help, MetricKind::histogram, nullptr, [](const EngineMetrics& m) { return &(m.*member); }};
}

// A metric is named once, with the lines of all engines.
std::string metrics_text(std::span<const Metric> table,
                         const std::vector<std::pair<std::string, EngineMetrics>>& engines);

}  // namespace easydel::esurge
