// Beam search: the choices of a request go on together, each from the tokens of one of them.
#include <utility>

#include "easydel/base/error.h"
#include "easydel/esurge/scheduler_state.h"
#include "easydel/esurge/scheduler_trace.h"

namespace easydel::esurge {

void Scheduler::stop(RequestId id) {
  if (trace_) trace_->stop(id);
  if (const auto found = requests_.find(id); found != requests_.end()) end_request(*found->second, FinishReason::stop);
}

// A beam that waits goes on with the pages of another one, if there is a place for it.
bool Scheduler::join(Sequence& s) {
  if (slots_used() >= config_.max_num_seqs || cache_.layout().state_group() >= 0) return false;
  waiting_.erase(&s);
  s.place = Sequence::Place::running;
  s.admission = ++admissions_;
  running_.push_back(&s);
  return true;
}

// Where all that run are beams that wait for others, the one that loses least gives its pages to those.
bool Scheduler::preempt_beam(StepPlan& plan) {
  Sequence* victim = nullptr;
  for (Sequence* s : running_) {
    if (!s->has_scores || s->leaving != Sequence::Leaving::no) return false;
    if (!victim || loses_less(*s, *victim)) victim = s;
  }
  if (!victim) return false;
  plan.preempted.push_back(id_of(*victim));
  victim->counts_preemption = false;
  preempt(*victim);
  return true;
}

void Scheduler::continue_beams(RequestId id, std::span<const BeamStep> steps) {
  if (trace_) trace_->continue_beams(id, steps);
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  Request& request = *found->second;
  const size_t count = request.sequences.size();
  check(request.asked.beams && steps.size() == count, "scheduler: ", steps.size(), " beams of ", count);
  std::vector<bool> had, runs;  // pages until now; and from now on
  std::vector<std::vector<TokenId>> generated;
  std::vector<int64_t> owners(count, -1);  // of each choice the one that takes over its pages
  for (const auto& s : request.sequences) {
    check(s->in_flight == 0 && s->leaving == Sequence::Leaving::no && s->place != Sequence::Place::ended,
          "scheduler: a beam goes on that is not at rest");
    had.push_back(s->place == Sequence::Place::running);
    s->has_scores = false;
  }
  for (size_t i = 0; i < count; ++i) {
    const bool parent_had = had[size_t(steps[i].parent)];
    runs.push_back(parent_had && (had[i] || join(*request.sequences[i])));
  }
  for (size_t i = 0; i < count; ++i) {
    const auto parent = size_t(steps[i].parent);
    generated.push_back(request.sequences[parent]->generated);
    generated.back().push_back(steps[i].token);
    if (runs[i] && (owners[parent] < 0 || parent == i)) owners[parent] = int64_t(i);
  }
  std::vector<SequencePages> pages(count);
  std::vector<int64_t> computed(count);
  for (size_t i = 0; i < count; ++i) {
    Sequence& s = *request.sequences[i];
    if (!had[i]) continue;
    computed[i] = s.computed;
    // Room for the states of those that are forked below.
    if (owners[i] < 0) cache_.leave(s.pages, keys(s), s.computed, false);
    pages[i] = std::exchange(s.pages, {});
  }
  for (size_t i = 0; i < count; ++i)
    if (const int64_t owner = owners[i]; owner >= 0) request.sequences[size_t(owner)]->pages = std::move(pages[i]);
  for (size_t i = 0; i < count; ++i) {
    Sequence& s = *request.sequences[i];
    const auto parent = size_t(steps[i].parent);
    s.generated = std::move(generated[i]);
    s.computed = runs[i] ? computed[parent] : 0;
    if (const auto owner = size_t(owners[parent]); runs[i] && owner != i) {
      cache_.fork(request.sequences[owner]->pages, s.pages, s.computed, {.fork_pages = 0}, ops_, ops_);
    } else if (!runs[i] && had[i]) {
      s.counts_preemption = false;
      preempt(s);
    }
  }
  if (config_.restart_length > 0 && request.sequences[0]->frequency_class == 0 &&
      known_tokens(*request.sequences[0]) > config_.restart_length)
    for (const auto& s : request.sequences) {
      s->frequency_class = 1;
      if (s->place != Sequence::Place::running) continue;
      s->counts_preemption = false;
      preempt(*s);
    }
  if (config_.check_every_step) check_pages();
}

}  // namespace easydel::esurge
