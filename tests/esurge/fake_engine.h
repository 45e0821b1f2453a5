// A model without weights that runs what the scheduler plans: a row of a page holds a hash of all tokens up to its own,
// so reading through the page tables shows whether every row is the right one. Its next token is a function of that
// hash alone.
#pragma once

#include <deque>
#include <functional>
#include <map>

#include "easydel/esurge/scheduler.h"

namespace easydel::test {

using namespace easydel::esurge;

CacheGroup full_group(int64_t bytes = 100);
CacheGroup window_group(int64_t span, int64_t bytes = 60);
CacheGroup chunk_group(int64_t span, int64_t bytes = 60);
CacheGroup state_group(int64_t bytes = 250);

// `size` tokens in order, and a request for them.
std::vector<TokenId> text_of(int64_t size, TokenId first = 1);
SchedulerRequest request_of(std::vector<TokenId> prompt, int64_t max_tokens = 1);

// What one choice of a request must give, computed without an engine.
struct FakeModel {
  int64_t vocabulary = 5;
  int64_t stop_every = 0;  // about one token in so many ends the answer; 0: none does
  bool roles_matter = false;

  uint64_t begin(const CacheRoot& root) const;
  uint64_t next(uint64_t hash, TokenId token, bool generated) const;
  TokenId draw(uint64_t hash, int64_t choice) const;
  bool stops(uint64_t hash, int64_t choice) const;
  std::vector<TokenId> answer(const SchedulerRequest& request, int64_t choice) const;
  // The log-probabilities of the token after those of the hash.
  TokenLogprobs scores(uint64_t hash, TokenId next, int64_t count) const;
  // Of all of its prompt.
  std::vector<TokenLogprobs> prompt_scores(const SchedulerRequest& request) const;
};

struct FakeAnswer {
  std::vector<TokenId> tokens;
  std::vector<int64_t> steps;  // in which each of them came
  bool ended = false;
  SequenceEnd end;
};

class FakeEngine {
 public:
  FakeEngine(SchedulerConfig config, CacheLayout layout, int64_t budget_bytes, FakeModel model = {});

  RequestId add(SchedulerRequest request);
  // Schedules a step; runs and finishes the oldest one if as many as are allowed are unfinished, or nothing was
  // planned. Returns the plan.
  StepPlan step(double now = 0);
  // Runs what is planned to its end.
  void finish_all();
  // Steps until no request is left; ADD_FAILURE after `most` steps.
  void run(int64_t most = 10000);

  // Takes over another engine's prefix index, which has been through its bytes.
  void restore_index(const FakeEngine& from);

  const FakeAnswer& answer(RequestId id, int64_t choice = 0) { return answers[{id, choice}]; }
  int64_t tokens_of(const StepPlan& plan, RequestId id) const;

  CacheLayout layout;
  FakeModel model;
  Scheduler scheduler;
  std::map<std::pair<RequestId, int64_t>, FakeAnswer> answers;
  std::map<RequestId, SchedulerRequest> asked;
  // Speculated tokens for a sequence; nothing: none.
  std::function<std::vector<TokenId>(SequenceId id)> drafts;
  int64_t steps = 0, computed_tokens = 0, scored_tokens = 0, copies = 0, clears = 0, releases = 0, rejected = 0,
          accepted = 0, preemptions = 0;
  uint64_t digest = 0;  // of all decisions
  // No sequence held more pages of a window or chunk than CacheLayout::max_pages.
  bool windows_are_bounded = true;

 private:
  struct Planned {
    StepPlan plan;
    std::vector<std::vector<std::vector<int32_t>>> tables;  // of each entry
    std::map<std::pair<RequestId, int64_t>, std::vector<TokenId>> drafts;
  };

  void apply(const std::vector<PageOp>& ops);
  void run_oldest();
  uint64_t& row(int group, int32_t page, int64_t row);
  void collect();

  SchedulerConfig config_;
  std::map<std::pair<RequestId, int64_t>, std::vector<TokenId>> proposed_;
  std::deque<Planned> planned_;
  std::vector<std::vector<std::vector<uint64_t>>> storage_;
};

}  // namespace easydel::test
