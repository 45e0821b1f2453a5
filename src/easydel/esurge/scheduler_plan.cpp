// How one step is filled: generated tokens first, then admissions, then prompts.
#include <algorithm>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/esurge/scheduler_state.h"
#include "easydel/esurge/scheduler_trace.h"

namespace easydel::esurge {

StepPlan Scheduler::schedule(double now) {
  check(int64_t(unfinished_.size()) < config_.steps_in_flight, "scheduler: ", unfinished_.size(),
        " plans are unfinished");
  StepPlan plan;
  plan.step = ++step_;
  unfinished_.push_back({plan.step, {}});
  expire(now);
  reset_when_idle(now);
  plan.before = std::exchange(ops_, {});
  if (!paused_) {
    budget_left_ = config_.max_num_batched_tokens;
    preempted_now_ = pages_come_ = false;
    for (const Sequence* s : running_) {
      preempted_now_ |= s->leaving == Sequence::Leaving::preempted;
      pages_come_ |= s->leaving != Sequence::Leaving::no;
    }
    plan_generated(plan);
    if (!preempted_now_ && budget_left_ > 0) admit(plan);
    plan_prompts(plan);
  }
  if (trace_) trace_->schedule(now, plan);
  if (config_.check_every_step) check_pages();
  return plan;
}

// Whether preempting `a` loses less than preempting `b`.
bool Scheduler::loses_less(const Sequence& a, const Sequence& b) const {
  const auto loss = [](const Sequence& s) {
    return std::tuple{s.preemptions >= 3, -s.request->asked.priority, s.computed + s.planned - s.pages.indexed,
                      -s.request->id, -s.choice};
  };
  return loss(a) < loss(b);
}

// Makes room for a sequence that could not grow by preempting the one that loses least. false: the sequence itself
// cannot go on in this step.
bool Scheduler::make_room(const Sequence& needy, StepPlan& plan) {
  if (pages_come_) return false;
  Sequence* victim = nullptr;
  for (Sequence* s : running_)
    if (s->leaving == Sequence::Leaving::no && s->last_step != step_ && (!victim || loses_less(*s, *victim)))
      victim = s;
  if (!victim) return false;
  preempted_now_ = true;
  pages_come_ = victim->in_flight > 0;
  plan.preempted.push_back(id_of(*victim));
  const bool itself = victim == &needy;
  preempt(*victim);
  return !itself && !pages_come_;
}

// Takes the pages for the next `tokens` tokens of a sequence, the last `drafts` of them speculated, and enters them
// into the plan. false: there is no room.
bool Scheduler::place(Sequence& s, int64_t tokens, int64_t drafts, StepPlan& plan) {
  const int64_t begin = s.computed + s.planned, end = begin + tokens;
  if (drafts > 0 && !cache_.save_state(s.pages, plan.before)) return false;
  if (!cache_.extend(s.pages, begin, end, plan.before)) {
    cache_.drop_saved_state(s.pages);
    return false;
  }
  const bool draws = drafts > 0 || tokens == remaining(s);
  InFlight part{&s, end, tokens, drafts, draws, -1};
  const int64_t choices = draws ? (s.forked ? 1 : s.request->asked.choices) : 0;
  plan.entries.push_back({id_of(s), begin, tokens, drafts, choices});
  plan.tokens += tokens;
  budget_left_ -= tokens;
  s.recomputed_tokens += std::max<int64_t>(0, std::min(end, s.max_computed) - begin);
  s.planned += tokens, s.drawn += draws ? 1 : 0, ++s.in_flight;
  s.drafts_in_flight = drafts > 0;
  s.drafts = 0, s.redone = 0;
  s.last_step = step_;
  const auto prompt = int64_t(s.request->asked.prompt.size());
  if (drafts == 0 && (end == prompt || end % cache_.layout().page_size == 0))
    part.kept_state = cache_.copy_state(s.pages, plan.before, plan.after);
  unfinished_.back().parts.push_back(part);
  if (draws && !s.forked) fork(s, plan);
  return true;
}

// The prompt is computed by this plan: the request's other choices become sequences that share its pages.
void Scheduler::fork(Sequence& s, StepPlan& plan) {
  const CacheManager::Demand demand = demand_of(s);
  s.forked = true;
  for (int64_t choice = 1; choice < s.request->asked.choices; ++choice) {
    Sequence& other = *s.request->sequences.emplace_back(std::make_unique<Sequence>());
    other.request = s.request, other.choice = choice, other.forked = true;
    other.place = Sequence::Place::running;
    other.frequency_class = s.frequency_class;
    other.admission = ++admissions_, other.last_step = other.seen_step = step_;
    other.cached_tokens = s.cached_tokens;
    other.computed = s.computed + s.planned - unfinished_.back().parts.back().tokens;
    const int64_t end = s.computed + s.planned;
    other.planned = end - other.computed, other.drawn = 1, other.in_flight = 1;
    cache_.fork(s.pages, other.pages, other.computed, demand, plan.before, plan.after);
    running_.push_back(&other);
    // Its part is that of the first sequence, which stays the last one before the forks.
    unfinished_.back().parts.push_back({&other, end, other.planned, 0, true, -1});
  }
}

void Scheduler::plan_generated(StepPlan& plan) {
  std::vector<Sequence*> ready;
  bool prompts = !waiting_.empty();
  int64_t spare = budget_left_;
  for (Sequence* s : running_) {
    if (!may_run(*s)) continue;
    if (remaining(*s) == 1 + s->redone && 1 + s->redone <= budget_left_) {
      s->seen_step = step_;
      spare -= 1 + s->redone;
      ready.push_back(s);
    } else if (remaining(*s) > 1) {
      prompts = true;
    }
  }
  if (spare < 0) {
    // They take turns: those that waited longest are first.
    std::ranges::sort(ready, {}, [](const Sequence* s) { return std::pair{s->last_step, s->admission}; });
    for (; spare < 0; ready.pop_back()) spare += 1 + ready.back()->redone;
  }
  // Those that would lose most take their pages first, so that nobody has to leave who is in the plan already.
  std::ranges::sort(ready, [&](const Sequence* a, const Sequence* b) { return loses_less(*b, *a); });
  if (prompts) spare /= 2;
  for (Sequence* s : ready) {
    if (s->leaving != Sequence::Leaving::no || s->place != Sequence::Place::running) continue;
    int64_t open = s->request->asked.max_tokens - int64_t(s->generated.size()) - s->drawn - 1;
    if (config_.restart_length > 0 && s->frequency_class == 0)
      open = std::min(open, config_.restart_length - known_tokens(*s));
    const bool may_draft = s->forked && s->redone == 0;
    const int64_t drafts = may_draft ? std::clamp<int64_t>(std::min(s->drafts, spare), 0, open) : 0;
    if (drafts > 0 && place(*s, 1 + drafts, drafts, plan)) {
      spare -= drafts;
      continue;
    }
    while (!place(*s, 1 + s->redone, 0, plan) && make_room(*s, plan)) {
    }
  }
}

// Null: none are wanted, or all are there.
PromptScores* Scheduler::missing_scores(const Sequence& s) const {
  PromptScores* const scores = s.request->asked.prompt_scores.get();
  return scores && scores->rows.size() + 1 < s.request->asked.prompt.size() ? scores : nullptr;
}

// Tokens of a sequence that need not be computed if they are in the index with all that is wanted. The last one always
// is.
int64_t Scheduler::most_cacheable(const Sequence& s) const {
  const int64_t all = known_tokens(s) - 1;
  return s.generated.empty() ? std::min(s.request->asked.max_cached_tokens, all) : all;
}

// The same with the scores that are there now, after the index has given those that it has.
int64_t Scheduler::cacheable(const Sequence& s) const {
  if (missing_scores(s)) cache_.find_scores(root(s), keys(s));
  const PromptScores* const missing = missing_scores(s);
  return missing ? std::min(most_cacheable(s), std::ssize(missing->rows)) : most_cacheable(s);
}

// Whether a running sequence is computing a longer beginning of this one than the index has.
bool Scheduler::waits_for_prefix(Sequence& s) {
  if (!config_.prefix_caching) return false;
  if (s.waits_until > 0) {
    const Sequence* other = find(s.waits_for);
    if (other && other->place == Sequence::Place::running && other->admission == s.waits_admission &&
        other->leaving == Sequence::Leaving::no && other->computed < s.waits_until)
      return true;
    s.waits_until = 0;
  }
  // States are kept at the ends of pages.
  const bool has_states = cache_.layout().state_group() >= 0;
  const int64_t page_size = cache_.layout().page_size, limit = most_cacheable(s);
  int64_t there = -1, least = 0;
  for (Sequence* other : running_) {
    if (other->leaving != Sequence::Leaving::no || other->computed + 1 >= known_tokens(*other) ||
        other->frequency_class != s.frequency_class || other->request->asked.root != s.request->asked.root)
      continue;
    const PromptScores *const wanted = missing_scores(s), *const made = other->request->asked.prompt_scores.get();
    if (wanted && (!made || made->count < wanted->count)) continue;
    const int64_t most = wanted ? int64_t(other->request->asked.prompt.size()) : known_tokens(*other);
    int64_t common = keys(*other).common(keys(s), std::min(limit, most));
    if (has_states) common -= common % page_size;
    if (common <= other->computed || common <= s.waits_until) continue;
    if (there < 0) {
      there = cache_.cached(root(s), keys(s), cacheable(s));
      // A page is worth waiting for, and less of it is if it saves a good part of what is to be computed.
      least = std::min(page_size, std::max<int64_t>(16, (known_tokens(s) - there) / 4));
    }
    if (common - there < least) continue;
    s.waits_for = id_of(*other), s.waits_admission = other->admission, s.waits_until = common;
  }
  if (s.waits_until == 0) return false;
  Sequence& other = *find(s.waits_for);
  if (has_states) other.cut_at = s.waits_until;
  return true;
}

void Scheduler::admit(StepPlan& plan) {
  int64_t slots = config_.max_num_seqs - slots_used();
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    Sequence& s = **at;
    if (s.request->weights != weights_) return;  // and so have all after it
    if (s.has_scores) {                          // its pages are wanted again when it goes on
      ++at;
      continue;
    }
    const int64_t own = s.forked ? 1 : s.request->asked.choices;
    if (s.no_room_at == cache_.version() || own > slots) {
      if (!preempt_beam(plan)) return;
      slots = config_.max_num_seqs - slots_used();
      continue;
    }
    if (waits_for_prefix(s)) {
      ++at;
      continue;
    }
    CacheManager::Demand demand = demand_of(s);
    // Alone a sequence needs no more than it can hold at once.
    demand.count_passed = !config_.window_aware_admission && !running_.empty();
    const auto hit = cache_.admit(s.pages, root(s), keys(s), cacheable(s), demand, plan.before);
    if (!hit) {
      s.no_room_at = cache_.version();
      if (preempt_beam(plan)) continue;
      return;
    }
    at = waiting_.erase(at);
    slots -= own;
    s.place = Sequence::Place::running;
    if (s.admission == 0) s.cached_tokens = *hit;
    s.admission = ++admissions_;
    s.computed = *hit;
    running_.push_back(&s);
  }
}

// The first in turn is always in the step, so nobody is passed over for long.
void Scheduler::plan_texts(std::vector<Sequence*> texts, StepPlan& plan) {
  std::ranges::sort(texts, {}, [](const Sequence* s) { return std::pair{s->request->asked.priority, s->admission}; });
  for (Sequence* s : texts) {
    const int64_t tokens = remaining(*s);
    if (tokens > budget_left_ || (plan.tokens > 0 && plan.tokens + tokens > *config_.shared_text_tokens)) continue;
    check(place(*s, tokens, 0, plan), "scheduler: a text without pages has no room");
  }
}

void Scheduler::plan_prompts(StepPlan& plan) {
  std::vector<Sequence*> prompts;
  for (Sequence* s : running_)
    if (may_run(*s) && remaining(*s) > 0 && s->seen_step != step_) prompts.push_back(s);
  if (prompts.empty() || budget_left_ == 0) return;
  if (config_.shared_text_tokens) return plan_texts(std::move(prompts), plan);
  const auto wants = [&](const Sequence* s) {
    const int64_t threshold = config_.long_prefill_token_threshold;
    return threshold > 0 ? std::min(threshold, remaining(*s)) : remaining(*s);
  };
  const auto turn = [](const Sequence* s) { return std::pair{s->request->asked.priority, s->admission}; };
  std::ranges::iter_swap(prompts.begin(), std::ranges::min_element(prompts, {}, turn));
  int64_t others = 0;
  for (size_t i = 1; i < prompts.size(); ++i) others += wants(prompts[i]);
  // The oldest prompt gets half, and more if the others do not want it; the odd token goes round. Of the others the
  // shortest are first: they are not held up by long ones, and a long one becomes the oldest in its turn.
  const int64_t half = (budget_left_ + step_ % 2) / 2;
  std::vector<int64_t> shares = {std::min(wants(prompts[0]), std::max(half, budget_left_ - others))};
  int64_t left = budget_left_ - shares[0];
  std::ranges::sort(prompts.begin() + 1, prompts.end(), {}, [&](const Sequence* s) {
    return std::tuple{s->request->asked.priority, remaining(*s), s->admission};
  });
  for (size_t i = 1; i < prompts.size(); ++i) {
    shares.push_back(std::min(wants(prompts[i]), left));
    left -= shares.back();
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    Sequence& s = *prompts[i];
    if (shares[i] == 0 || s.leaving != Sequence::Leaving::no || s.place != Sequence::Place::running) continue;
    const int64_t begin = s.computed + s.planned;
    if (s.cut_at > begin) shares[i] = std::min(shares[i], s.cut_at - begin);
    while (!place(s, shares[i], 0, plan) && make_room(s, plan)) {
    }
  }
}

}  // namespace easydel::esurge
