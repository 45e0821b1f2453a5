// The limits of an engine: from the section `esurge`, the model and the free memory. No torch.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "easydel/base/free_memory.h"
#include "easydel/esurge/cache_layout.h"
#include "easydel/esurge/esurge_config.h"
#include "easydel/esurge/scheduler.h"

namespace easydel::esurge {

// What limits depend on of a model.
struct ModelLimits {
  CacheLayout layout = {};                    // with the section's page_size
  std::optional<int64_t> max_positions = {};  // nullopt: as many as wanted
  bool whole_texts = false;                   // nothing is generated: each text is computed whole, and keeps no pages
};

struct EngineOptions {
  int64_t max_model_len = 0;  // tokens of a sequence, prompt and answer together
  CacheLayout layout = {};
  CacheBudget budget = {};
  SchedulerConfig scheduler = {};
  bool step_tokens_measured = false;  // by measure_step_tokens()
  FreeMemory memory = {};             // when they were made

  // Tokens of the longest sequence that fits into the budget alone, at most max_model_len.
  int64_t longest_sequence() const;
  // One line for the log: context, sequences, tokens of a step, pages, tokens, bytes.
  std::string describe() const;
  // The same for `easydel describe engine`, a line for each limit, and what a page of each group of layers takes.
  std::string report() const;

 private:
  std::vector<std::string> facts() const;
};

// UserError: limits that contradict each other or the model, or too little memory. Without max_num_batched_tokens a
// step has up to 2048 tokens, or the context if that is less. Whole texts may be as long as the model's positions (8192
// without a limit) and as a step, which several share up to 4096 tokens.
EngineOptions engine_options(const EsurgeConfig& config, const ModelLimits& model, const FreeMemory& memory);

// Sets the tokens of a step to what this machine computes well: the smallest power of two from 64 to 4096 whose tokens
// per second are at least 0.9 of the best that was measured, but two for each sequence, so that prompts have their part
// when all run. `seconds_of` computes a prompt of so many tokens, of which the pages fit into the budget. Sizes are
// doubled until they gain less than a tenth twice, or a step takes half a second: whoever generates waits for it.
void measure_step_tokens(EngineOptions& options, const std::function<double(int64_t tokens)>& seconds_of);

}  // namespace easydel::esurge
