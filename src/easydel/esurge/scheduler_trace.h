// The calls of a scheduler written to a file, one line of JSON each, so that its steps can be planned again without a
// model: EASYDEL_ESURGE_TRACE=FILE. The file has the ids of all tokens. No torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "easydel/base/document.h"
#include "easydel/base/files.h"
#include "easydel/esurge/scheduler.h"

namespace easydel::esurge {

class SchedulerTrace {
 public:
  // The trace that the environment asks for; null: none. The second scheduler of a process writes FILE.2, and so on.
  // UserError: the file cannot be written.
  static std::unique_ptr<SchedulerTrace> from_environment();
  // Replaces the file.
  explicit SchedulerTrace(const std::filesystem::path& path);

  void begin(const SchedulerConfig& config, const CacheLayout& layout, int64_t budget_bytes);
  void add(const SchedulerRequest& request, RequestId id);
  void propose(SequenceId id, int64_t drafts);
  void abort(RequestId id);
  void stop(RequestId id);
  void continue_beams(RequestId id, std::span<const BeamStep> steps);
  void pause(bool destroy_pages);
  // Of a call without arguments.
  void call(std::string_view name);
  void take_new_weights(bool same);
  void schedule(double now, const StepPlan& plan);
  // `scores`: requests, and the number of rows of their prompts' scores that are there.
  void finish(std::span<const StepResult> results, std::span<const std::pair<RequestId, int64_t>> scores);

 private:
  void line(const Value& call) { file_.line(to_json(call)); }

  files::Appender file_;
};

// Calls visit(name, limit) for the limits of a scheduler that are integers.
void each_limit(auto& config, const auto& visit) {
  visit("max_num_seqs", config.max_num_seqs);
  visit("max_num_batched_tokens", config.max_num_batched_tokens);
  visit("long_prefill_token_threshold", config.long_prefill_token_threshold);
  visit("max_requests", config.max_requests);
  visit("steps_in_flight", config.steps_in_flight);
  visit("restart_length", config.restart_length);
  visit("turning_length", config.turning_length);
}

}  // namespace easydel::esurge
