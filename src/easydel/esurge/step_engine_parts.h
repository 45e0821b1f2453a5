// What StepEngine is made of; for step_engine_core.cpp and engine_steps_core.cpp alone.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "easydel/base/clock.h"
#include "easydel/esurge/draft_model.h"
#include "easydel/esurge/live_request.h"
#include "easydel/esurge/saved_prefix_index.h"
#include "easydel/esurge/step_engine.h"
#include "easydel/models/adapters.h"

namespace easydel::esurge {

// A sequence that draws in a step: its answer, its rows, and what came of them.
struct Draw {
  LiveRequest* request = nullptr;
  Answer* answer = nullptr;
  std::span<const ScoredRow> rows;
  StepResult result;
  std::string error;
};

struct StepEngine::Parts {
  explicit Parts(EngineSetup given);

  double now() const { return seconds_since(began); }

  PrefixCacheIdentity identity() const {
    return {setup.fingerprint, runner.facts().order, runner.facts().cache_format};
  }
  void load_prefix_cache(const std::filesystem::path& folder);

  // Without the lock.
  void propose_drafts();
  void look_drafts_up();
  void release_draft_pages();  // if those of the engine are given up
  void draft_by_model();
  void plan_sequences(const StepPlan& plan);
  void run(const StepPlan& plan);
  void run_entries(const StepPlan& plan, size_t first, size_t count, std::span<const PageOp> before,
                   std::span<const PageOp> after);
  void on_prompt_rows(size_t first, std::span<const ScoredRow> rows);
  void on_draw_rows(size_t first, std::span<const StepEntry> entries, std::span<const ScoredRow> rows);
  void fail(LiveRequest& request, const std::string& error) {
    if (request.error.empty()) request.error = error;
  }
  struct BeamsToContinue {
    LiveRequest* request = nullptr;
    std::vector<BeamStep> steps;  // none: they are done
  };
  std::vector<BeamsToContinue> advance_beams();  // without the lock
  void continue_beams(const std::vector<BeamsToContinue>& all);
  void count_tokens(LiveRequest& request, int64_t count);
  std::vector<StepResult> results(const StepPlan& plan);
  // The index may have pages that a failed pass has not written.
  void forget_pages() {
    scheduler.pause(true);
    if (!paused) scheduler.resume();
  }
  void abort_all();
  void take_ended();
  void deliver();

  // Made when they are first asked for. UserError: the model cannot have any.
  models::Adapters& adapters_of_model();
  // UserError: its adapter is not loaded.
  void refuse_adapters() const;  // UserError: some are loaded, or are still used
  void choose_adapter(LiveRequest& request, SchedulerRequest& scheduled) const;

  EngineSetup setup;
  ModelRunner runner;
  std::unique_ptr<DraftModel> draft;  // null: there is none, or it failed
  CacheBudget draft_budget;
  EngineOptions options;
  RequestPreparer preparer;
  EngineInfo info;
  DraftOptions drafts;
  const Clock::time_point began = Clock::now();

  mutable std::mutex mutex;  // of the scheduler, the list of requests and the metrics
  Scheduler scheduler;
  std::map<RequestId, std::shared_ptr<LiveRequest>> live;
  EngineMetrics metrics;
  Rate rate;
  StepCounts counts;
  std::unique_ptr<models::Adapters> adapters;       // null: none was ever loaded
  std::map<uint64_t, std::string> adapter_digests;  // of folders, by version
  bool aborted = false;                             // outputs are due
  bool paused = false;
  bool draft_pages_due = false;  // to be given up
  int64_t idle_resets = 0;       // after which they were

  // Of the step that runs; for its thread alone.
  std::vector<RunSequence> sequences;
  std::vector<std::shared_ptr<LiveRequest>> requests;  // of each sequence
  std::vector<Draw> draws;
  std::vector<std::shared_ptr<LiveRequest>> touched;
  bool failed = false;  // the pass
};

}  // namespace easydel::esurge
