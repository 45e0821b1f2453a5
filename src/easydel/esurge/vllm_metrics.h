// The engine's metrics under the names that vLLM gives them, so that its dashboards show this server.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "easydel/esurge/metrics.h"

namespace easydel::esurge {

// Prometheus' text format, version 0.0.4, of engines with the names of their models, which are the label model_name.
std::string vllm_metrics_text(const std::vector<std::pair<std::string, EngineMetrics>>& engines);

}  // namespace easydel::esurge
