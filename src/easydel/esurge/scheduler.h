// Decides what each step of the engine computes: which sequences get how many tokens, and who waits or is preempted
// when pages run out. No model and no clock: its decisions are a function of the calls alone. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "easydel/esurge/cache_manager.h"
#include "easydel/esurge/esurge_config.h"
#include "easydel/esurge/finish_reason.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::esurge {

using text::TokenId;
using RequestId = int64_t;  // in the order of arrival

struct SchedulerConfig {
  int64_t max_num_seqs = 32;              // running sequences, choices counted
  int64_t max_num_batched_tokens = 2048;  // of one step
  // Prompt tokens that one sequence gets in a step at most; 0: no limit of its own.
  int64_t long_prefill_token_threshold = 0;
  int64_t max_requests = 65536;  // known at once, waiting ones included
  SchedulingPolicy policy = SchedulingPolicy::fcfs;
  bool prefix_caching = true;
  bool logs_preemptions = true;
  bool window_aware_admission = false;  // enable_window_aware_runtime_cap
  // Steps that may be planned before the first of them is finished: 2 with overlapped execution.
  int64_t steps_in_flight = 1;
  std::optional<double> idle_reset_seconds;
  double idle_reset_min_interval = 60;
  // Of models whose rotary frequencies depend on a sequence's length (models/model.h): a sequence that outgrows
  // restart_length is computed again, and prompts longer than turning_length share pages with prompts of their own
  // length alone. 0: no limit.
  int64_t restart_length = 0, turning_length = 0;
  // Prompts are texts that one step computes whole (the model keeps no pages): several share a step up to so many
  // tokens, and a longer one has a step of its own. nullopt: prompts are cut into steps.
  std::optional<int64_t> shared_text_tokens = {};
  bool check_every_step = false;  // the walk of CacheManager::check_all; also by EASYDEL_ESURGE_CHECK=1
};

struct SchedulerRequest {
  std::vector<TokenId> prompt;  // at least one
  int64_t choices = 1;          // sequences that continue the prompt
  int64_t max_tokens = 16;      // of each choice, at least one
  int64_t priority = 0;         // lower first, if the policy is priority
  CacheRoot root = {};
  std::optional<double> deadline = {};  // on the clock of schedule(): the request ends with what is there
  // Its choices give no tokens of their own: continue_beams() says how they go on (beam search, guidance).
  bool beams = false;
  // Tokens of the prompt that may come from the index: scores of the others are wanted.
  int64_t max_cached_tokens = std::numeric_limits<int64_t>::max();
  // Scores of all of the prompt are wanted: what computes a step appends them before it is finished, and the index
  // gives those that it has. Tokens come from the index only as far as scores are there. Null: none are wanted.
  std::shared_ptr<PromptScores> prompt_scores = {};
};

struct SequenceId {
  RequestId request = 0;
  int64_t choice = 0;
  bool operator==(const SequenceId&) const = default;
};

// Tokens [begin, begin + tokens) of one sequence. The last `drafts` of them are speculated.
struct StepEntry {
  SequenceId id;
  int64_t begin = 0, tokens = 0, drafts = 0;
  // Choices that draw their next token from the last one's scores: 0, or 1, or at the end of a prompt all of the
  // request's, as sequences {request, id.choice ...}.
  int64_t draws = 0;
};

// What one step computes: `before` is done to storage, then one pass over the entries, then `after`. An id of a page is
// valid for this step; tables() are those of the latest schedule().
struct StepPlan {
  int64_t step = 0;  // from 1
  std::vector<StepEntry> entries;
  std::vector<PageOp> before, after;
  int64_t tokens = 0;  // of all entries
  std::vector<SequenceId> preempted;
};

// What a sequence that drew got: one token, or with drafts those that were accepted and the one after them.
struct StepResult {
  SequenceId id;
  std::vector<TokenId> tokens;  // of a beam none
  bool stopped = false;         // by a stop rule: the sequence ends with these tokens
  bool failed = false;          // the row cannot be used: the request ends with an error
};

struct SequenceEnd {
  SequenceId id;
  FinishReason reason = FinishReason::stop;
  bool timed_out = false;         // an abort by the request's deadline
  int64_t cached_tokens = 0;      // of the prompt, when it was first admitted
  int64_t preemptions = 0;        // of this sequence
  int64_t recomputed_tokens = 0;  // because of them
};

// How a choice of a beam search goes on: with the tokens of one of the choices, and one more.
struct BeamStep {
  int64_t parent = 0;
  TokenId token = 0;
};

class SchedulerTrace;

class Scheduler {
 public:
  Scheduler(SchedulerConfig config, CacheLayout layout, CacheBudget budget);
  ~Scheduler();

  // UserError: too many requests, more choices than max_num_seqs, pages that the budget will never have, or after
  // drain(). The request is then unknown. Bug: a prompt or an answer without tokens.
  RequestId add(SchedulerRequest request);
  // Requests that are added from now on wait for new weights; those that are known get the present ones.
  void await_new_weights();
  // Whether nothing is left that needs the present weights.
  bool has_left_weights() const;
  // What waits may run. The index, whose pages are of the former weights, is emptied, unless they stay after all. Bug:
  // something needs the former weights.
  void take_new_weights(bool same);
  // The number of speculated tokens that the sequence's next step may verify.
  void propose(SequenceId id, int64_t drafts);
  // Ends a request. No later step computes for it; its pages are free when the steps in flight are finished. Unknown
  // ids are passed over.
  void abort(RequestId id);
  // Of a request of beams, when the last tokens of all its choices are computed: how each goes on. Unknown ids are
  // passed over, also by stop(), which ends such a request.
  void continue_beams(RequestId id, std::span<const BeamStep> steps);
  void stop(RequestId id);
  // Plans no step until resume(). destroy_pages gives up all pages and the index; sequences are computed again then.
  void pause(bool destroy_pages);
  void resume();
  // Forgets all of the prefix cache that no running sequence shares. Between steps.
  void reset_prefix_cache();
  // Refuses new requests; those that are known are finished.
  void drain();

  // `now`: seconds on any clock that does not go back. At most config.steps_in_flight plans may be unfinished.
  StepPlan schedule(double now = 0);
  // Finishes the oldest unfinished plan. One result for each sequence that drew, in the plan's order; sequences that
  // have ended meanwhile may be left out.
  void finish(std::span<const StepResult> results);
  int64_t unfinished() const { return int64_t(unfinished_.size()); }  // plans
  // What has ended since the last call, in order.
  std::vector<SequenceEnd> take_ended() { return std::exchange(ended_, {}); }

  // Prompt and generated tokens of a sequence that is known.
  std::vector<TokenId> tokens(SequenceId id) const;
  const SequencePages& pages(SequenceId id) const;
  bool known(SequenceId id) const { return find(id) != nullptr; }
  bool runs(SequenceId id) const;  // it has pages
  // Prompt and generated tokens of a sequence, without those of plans that are not finished.
  int64_t known_tokens(SequenceId id) const;

  // Enters a saved prefix index into the empty one, before the first request. The contents of the pages that it returns
  // must be loaded before the next plan is computed.
  std::vector<PrefixIndex::Restored> restore_index(const SavedPrefixIndex& saved);

  int64_t running() const { return int64_t(running_.size()); }
  int64_t waiting() const { return int64_t(waiting_.size()); }
  int64_t requests() const { return int64_t(requests_.size()); }
  int64_t preemptions() const { return preemptions_; }
  // The earliest time limit of a request; nullopt: none has one.
  std::optional<double> next_deadline() const {
    return deadlines_.empty() ? std::nullopt : std::optional(deadlines_.begin()->first);
  }
  int64_t idle_resets() const { return idle_resets_; }
  const CacheManager& cache() const { return cache_; }
  // The walk that check_every_step makes. Bug: what is wrong.
  void check_pages() const;

 private:
  struct Request;
  struct Sequence;
  struct InFlight {  // a sequence's part of an unfinished plan
    Sequence* sequence = nullptr;
    int64_t end = 0, tokens = 0, drafts = 0;
    bool draws = false;
    int32_t kept_state = -1;
  };
  struct Unfinished {
    int64_t step = 0;
    std::vector<InFlight> parts;
  };
  struct WaitingOrder {
    bool operator()(const Sequence* a, const Sequence* b) const;
  };

  Sequence* find(SequenceId id) const;
  TokenKeys keys(const Sequence& sequence) const;
  CacheRoot root(const Sequence& sequence) const;
  int64_t known_tokens(const Sequence& sequence) const;
  int64_t remaining(const Sequence& sequence) const;
  PromptScores* missing_scores(const Sequence& sequence) const;
  int64_t most_cacheable(const Sequence& sequence) const;
  int64_t cacheable(const Sequence& sequence) const;
  bool may_run(const Sequence& sequence) const;
  bool loses_less(const Sequence& a, const Sequence& b) const;
  int64_t slots_used() const;
  CacheManager::Demand demand_of(const Sequence& sequence) const;

  void expire(double now);
  void reset_when_idle(double now);
  void plan_generated(StepPlan& plan);
  void admit(StepPlan& plan);
  void plan_prompts(StepPlan& plan);
  void plan_texts(std::vector<Sequence*> texts, StepPlan& plan);
  bool waits_for_prefix(Sequence& sequence);
  bool place(Sequence& sequence, int64_t tokens, int64_t drafts, StepPlan& plan);
  bool make_room(const Sequence& sequence, StepPlan& plan);
  void fork(Sequence& sequence, StepPlan& plan);
  bool join(Sequence& sequence);
  bool preempt_beam(StepPlan& plan);
  void finish_part(const InFlight& part, const StepResult* result);
  std::vector<std::pair<RequestId, int64_t>> known_scores(const Unfinished& plan) const;

  void end(Sequence& sequence, FinishReason reason, bool timed_out = false);
  void end_request(Request& request, FinishReason reason, bool timed_out = false);
  void preempt(Sequence& sequence);
  void settle(Sequence& sequence);
  void forget_finished(Request& request);

  const SchedulerConfig config_;
  const std::unique_ptr<SchedulerTrace> trace_;  // null: nothing is written
  CacheManager cache_;
  std::unordered_map<RequestId, std::unique_ptr<Request>> requests_;
  std::vector<Sequence*> running_;  // in the order of admission; those that leave stay until no plan has them
  std::set<Sequence*, WaitingOrder> waiting_;
  std::set<std::pair<double, RequestId>> deadlines_;
  std::deque<Unfinished> unfinished_;
  std::vector<PageOp> ops_;  // due before the next step
  std::vector<SequenceEnd> ended_;
  RequestId next_id_ = 1;
  int64_t weights_ = 0, next_weights_ = 0;  // numbers: the present ones, and those of requests that are added
  int64_t step_ = 0, budget_left_ = 0, admissions_ = 0, preemptions_ = 0, idle_resets_ = 0;
  bool paused_ = false, draining_ = false, destroy_pages_ = false, preempted_now_ = false;
  bool pages_come_ = false;  // when the unfinished plans are finished
  double last_active_ = -std::numeric_limits<double>::infinity();
  double last_reset_ = -std::numeric_limits<double>::infinity();
};

}  // namespace easydel::esurge
