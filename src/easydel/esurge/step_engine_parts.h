// What StepEngine is made of; for step_engine_core.cpp and engine_steps_core.cpp alone.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "easydel/base/clock.h"
#include "easydel/esurge/draft_model.h"
#include "easydel/esurge/live_request.h"
#include "easydel/esurge/prefix_cache_files.h"
#include "easydel/esurge/rank_leader.h"
#include "easydel/esurge/saved_prefix_index.h"
#include "easydel/esurge/side_thread.h"
#include "easydel/esurge/step_engine.h"
#include "easydel/models/adapters.h"

namespace easydel::esurge {

// What the result of a request says whose pass failed so.
std::string failure_text(const std::exception& error);

// A sequence that draws in a step: its answer, its rows, and what came of them.
struct Draw {
  LiveRequest* request = nullptr;
  Answer* answer = nullptr;
  std::span<const ScoredRow> rows;
  StepResult result;
  std::string error;
  // The answer had ended when its rows came; only if steps overlap.
  bool dropped = false;
  // Answer::accept() is due.
  bool open = false;
};

// A step from its plan to its results.
struct Step {
  StepPlan plan;
  std::vector<RunSequence> sequences;                  // of plan.entries
  std::vector<std::shared_ptr<LiveRequest>> requests;  // of plan.entries
  std::vector<Draw> draws;
  std::vector<std::shared_ptr<const void>> scores;  // keeps the rows of `draws`
  bool failed = false;                              // the pass
  double seconds = 0;                               // of the pass and its draws
};

struct StepEngine::Parts {
  explicit Parts(EngineSetup given);

  double now() const { return seconds_since(began); }

  PrefixCacheIdentity identity() const {
    return {setup.fingerprint, runner.facts().order, runner.facts().cache_format,
            setup.ranks ? setup.ranks->place() : RankPlace()};
  }
  void load_prefix_cache(const std::filesystem::path& folder);
  void restore(const StoredPrefixCache& stored);
  void add_negative(const std::shared_ptr<LiveRequest>& request, SchedulerRequest scheduled);  // under the lock

  // Without the lock.
  void propose_drafts();
  void look_drafts_up();
  void release_draft_pages();  // if those of the engine are given up
  void draft_by_model();
  // Plans a step. Takes the lock.
  Step plan();
  void plan_sequences(Step& step);
  // Enters the tokens that came after the step was planned.
  void complete(Step& step) const;
  void run(Step& step);
  void run_entries(Step& step, size_t first, size_t count, std::span<const PageOp> before,
                   std::span<const PageOp> after);
  // After a pass that failed: each sequence by itself. Only those that fail again lose their requests.
  void run_one_by_one(Step& step);
  void run_from_its_beginning(Step& step, size_t index);
  void on_prompt_rows(const Step& step, size_t first, std::span<const ScoredRow> rows);
  void on_draw_rows(Step& step, size_t first, size_t count, std::span<const ScoredRow> rows);
  // What follows from a step that is computed, up to outputs that deliver() has to send. Takes the lock.
  void handle(Step& step);
  void handle_computed();  // if it is not handled yet
  void fail(LiveRequest& request, const std::string& error) {
    if (request.error.empty()) request.error = error;
  }
  bool has_lost_ranks() const { return setup.ranks && !setup.ranks->lost().empty(); }
  // Ends everything with that error. Under the lock.
  void end_without_ranks();
  struct BeamsToContinue {
    LiveRequest* request = nullptr;
    std::vector<BeamStep> steps;  // none: they are done
    int64_t tokens = 0;           // that have come
  };
  std::vector<BeamsToContinue> advance_beams(const Step& step);  // without the lock
  const std::shared_ptr<LiveRequest>& request_of(RequestId id) const {
    const auto found = live.find(id);
    return found != live.end() ? found->second : negatives.at(id);
  }
  void continue_beams(const std::vector<BeamsToContinue>& all);
  void count_tokens(LiveRequest& request, int64_t count);
  std::vector<StepResult> results(Step& step);
  // The index may have pages that a failed pass has not written.
  void forget_pages() {
    scheduler.pause(true);
    if (!paused) scheduler.resume();
  }
  void abort_all();
  void take_ended();
  void deliver();

  // The engine's, or what the request asks for.
  DraftOptions drafts_of(const SamplingParams& sampling);
  // Made when they are first asked for. UserError: the model cannot have any.
  models::Adapters& adapters_of_model();
  void refuse_adapters() const;  // UserError: some are loaded, or are still used
  // Has the other ranks load it. UserError: one of them cannot; then none has it.
  void load_on_ranks(const models::Adapters::Loaded& loaded, const std::filesystem::path& folder,
                     const std::string& digest) const;
  // The same of weights, which they answer with if this rank can, too; from memory `weights` gets this rank's part of
  // them. UserError: they keep the present ones.
  void use_on_all_ranks(NewWeights& weights);
  void note_new_weights(std::string fingerprint);  // under the lock
  // Have the other ranks get weights. Return why one of them cannot have the same; empty: all have.
  std::string read_on_ranks(const NewWeights& weights) const;
  std::string send_to_ranks(NewWeights& weights) const;
  struct AdapterText {
    std::shared_ptr<const text::Tokenizer> tokenizer;
    std::shared_ptr<const RequestPreparer> preparer;
  };
  struct ChosenAdapter {
    std::shared_ptr<const nn::LoadedAdapter> adapter;  // null: none
    AdapterText text;                                  // of the engine or the adapter
  };
  // UserError: it is not loaded. Takes the lock.
  ChosenAdapter choose_adapter(const std::optional<std::string>& name) const;
  // Under the lock.
  void use_adapter(LiveRequest& request, SchedulerRequest& scheduled,
                   std::shared_ptr<const nn::LoadedAdapter> adapter) const;
  // Of several data parts that with the fewest sequences, then with the fewest tokens of prompts. Under the lock.
  void choose_part(LiveRequest& request, SchedulerRequest& scheduled) const;
  // Of the folder of an adapter; nothing: it has none, or the engine's. UserError: it cannot be read.
  std::optional<AdapterText> adapter_text(const std::string& name, const std::filesystem::path& folder) const;

  std::shared_ptr<const RequestPreparer> make_preparer(std::shared_ptr<const text::Tokenizer> tokenizer) const;

  EngineSetup setup;
  ModelRunner runner;
  std::unique_ptr<DraftModel> draft;  // null: there is none, or it failed
  CacheBudget draft_budget;
  EngineOptions options;
  std::shared_ptr<const RequestPreparer> preparer;
  EngineInfo info;
  DraftOptions drafts;
  std::atomic<bool> speculates = false;  // for the engine's requests, or one of them that asked for it
  const Clock::time_point began = Clock::now();

  mutable std::mutex mutex;  // of the scheduler, the list of requests and the metrics
  Scheduler scheduler;
  std::map<RequestId, std::shared_ptr<LiveRequest>> live;
  std::map<RequestId, std::shared_ptr<LiveRequest>> negatives;  // by LiveRequest::negative_id
  EngineMetrics metrics;
  Rate rate;
  StepCounts counts;
  std::unique_ptr<models::Adapters> adapters;       // null: none was ever loaded
  std::map<uint64_t, std::string> adapter_digests;  // of folders, by version
  std::map<uint64_t, AdapterText> adapter_texts;    // by version, of those that have their own
  bool aborted = false;                             // outputs are due
  bool paused = false;
  bool draft_pages_due = false;  // to be given up
  int64_t idle_resets = 0;       // after which they were
  std::string lost;              // why no rank computes any more; empty: they do
  bool ended = false;            // nothing is added any more

  // For the thread of steps, and for `side` while it works: what is between steps.
  std::optional<Step> planned, computed;              // the next one, and the last one if it is not handled yet
  std::vector<std::shared_ptr<LiveRequest>> touched;  // outputs are due
  bool failed = false;                                // a pass: pages are to be forgotten
  bool due = false;                                   // something has happened

  // Works while a pass computes; null: steps do not overlap. Last: it uses the others.
  std::unique_ptr<SideThread> side;

  bool plans_ahead() const { return options.scheduler.steps_in_flight > 1; }
  // Before requests and answers are touched while a step runs.
  void wait_for_side() {
    if (side) side->wait();
  }
};

}  // namespace easydel::esurge
