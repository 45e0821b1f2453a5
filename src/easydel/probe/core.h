// The door to the part of this layer that needs torch; the library behind it is that of elarge/core.h.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "easydel/elarge/core.h"
#include "easydel/models/load_config.h"
#include "easydel/ops/attention_config.h"
#include "easydel/ops/moe_config.h"
#include "easydel/probe/vector_kind.h"

namespace easydel::probe {

struct LogitsRequest {
  std::filesystem::path model, inputs, output;
  std::optional<std::filesystem::path> trace;
  models::DeviceSetting device = models::DeviceSetting::automatic;
  models::DTypeSetting dtype = models::DTypeSetting::fp32;  // of the computation
  elarge::QuantizationConfig quantization = {};
  nn::CacheSetting cache_format = {};  // while generating
  ops::AttentionMechanism attention = ops::AttentionMechanism::automatic;
  ops::MoeMethod moe_method = ops::MoeMethod::fused_moe;
  std::vector<std::filesystem::path> adapters = {};
  bool merged = false;  // the adapters are merged into the weights first
};
struct EngineRequest {
  elarge::Config config;
  std::vector<std::string> lines;  // of JSON
  std::optional<int64_t> pages;    // of each kind; nothing: what memory allows
  std::vector<std::pair<std::string, std::filesystem::path>> adapters = {};  // by the names that lines give
};
struct RolloutRequest {
  std::filesystem::path model;
  std::vector<std::string> lines;  // of JSON: prompts
  double temperature = 1, top_p = 1;
  int64_t top_k = 0, max_new_tokens = 64, group = 1, batch = 16;
  uint64_t seed = 0;
  models::DTypeSetting dtype = models::DTypeSetting::fp32;  // of the computation
};
struct ReplayRequest {
  std::filesystem::path test_case, root, output;
  std::optional<std::filesystem::path> parameters, generations;
};

class Core {
 public:
  virtual ~Core() = default;
  virtual void logits(const LogitsRequest& request) = 0;
  virtual void engine(const EngineRequest& request, const elarge::Output& out) = 0;
  virtual void rollout(const RolloutRequest& request, const elarge::Output& out) = 0;
  virtual void replay(const ReplayRequest& request) = 0;
  // The kinds of recorded cases whose answers need torch.
  virtual const std::vector<VectorKind>& vector_kinds() = 0;
};

// Loads libeasydel_core.so at the first call; UserError as elarge::core().
Core& core();

}  // namespace easydel::probe
