#include "easydel/esurge/scheduler.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/text_table.h"
#include "easydel/esurge/scheduler_state.h"
#include "easydel/esurge/scheduler_trace.h"

namespace easydel::esurge {
namespace {

SchedulerConfig with_environment(SchedulerConfig config) {
  const char* const value = std::getenv("EASYDEL_ESURGE_CHECK");
  if (!value) return config;
  const std::string_view text = value;
  if (text != "0" && text != "1") refuse("EASYDEL_ESURGE_CHECK", str("'", text, "' is not 0 or 1"));
  config.check_every_step |= text == "1";
  return config;
}

}  // namespace

bool Scheduler::WaitingOrder::operator()(const Sequence* a, const Sequence* b) const {
  const auto order = [](const Sequence* s) {
    return std::tuple{s->request->weights, s->request->asked.priority, s->preemptions == 0, s->request->id, s->choice};
  };
  return order(a) < order(b);
}

Scheduler::Scheduler(SchedulerConfig config, CacheLayout layout, CacheBudget budget)
    : config_(with_environment(config)),
      trace_(SchedulerTrace::from_environment()),
      cache_(std::move(layout), budget.bytes, config.prefix_caching) {
  check(config.max_num_seqs > 0 && config.max_num_batched_tokens > 0 && config.max_requests > 0 &&
            config.steps_in_flight > 0 && config.long_prefill_token_threshold >= 0,
        "scheduler: a limit that is not positive");
  if (trace_) trace_->begin(config_, cache_.layout(), budget.bytes);
}

Scheduler::~Scheduler() = default;

Scheduler::Sequence* Scheduler::find(SequenceId id) const {
  const auto found = requests_.find(id.request);
  if (found == requests_.end() || id.choice < 0 || size_t(id.choice) >= found->second->sequences.size()) return nullptr;
  return found->second->sequences[size_t(id.choice)].get();
}

TokenKeys Scheduler::keys(const Sequence& s) const {
  // Of a sequence that has outgrown its frequencies they are those of the former ones.
  const bool outgrown = config_.restart_length > 0 && s.frequency_class == 1 &&
                        std::ssize(s.request->asked.prompt) <= config_.restart_length;
  return {s.request->asked.prompt, s.generated, cache_.layout().roles_matter,
          outgrown ? nullptr : s.request->asked.prompt_scores.get()};
}

int64_t Scheduler::known_tokens(const Sequence& s) const {
  return int64_t(s.request->asked.prompt.size() + s.generated.size());
}

CacheRoot Scheduler::root(const Sequence& s) const {
  CacheRoot root = s.request->asked.root;
  root.frequency_class = s.frequency_class;
  return root;
}

// Tokens that are known, or will be when the unfinished plans are done, and that no plan has computed.
int64_t Scheduler::remaining(const Sequence& s) const { return known_tokens(s) + s.drawn - s.computed - s.planned; }

bool Scheduler::may_run(const Sequence& s) const {
  if (s.leaving != Sequence::Leaving::no || s.drafts_in_flight) return false;
  // How a beam goes on, and a sequence whose frequencies change, is known when the plan that it is in is finished.
  if (s.drawn > 0 && s.request->asked.beams) return false;
  if (s.drawn > 0 && s.frequency_class == 0 && config_.restart_length > 0 &&
      known_tokens(s) + s.drawn > config_.restart_length)
    return false;
  return int64_t(s.generated.size()) + s.drawn < s.request->asked.max_tokens;
}

int64_t Scheduler::slots_used() const {
  int64_t sum = 0;
  for (const Sequence* s : running_) sum += s->forked ? 1 : s->request->asked.choices;
  return sum;
}

CacheManager::Demand Scheduler::demand_of(const Sequence& s) const {
  const SchedulerRequest& asked = s.request->asked;
  const auto prompt = int64_t(asked.prompt.size());
  CacheManager::Demand demand;
  demand.max_tokens = prompt + asked.max_tokens;
  // What was preempted three times comes back only with all that it may still need.
  const bool all = s.preemptions >= 3;
  demand.tokens = all ? demand.max_tokens : known_tokens(s);
  demand.step_tokens = config_.max_num_batched_tokens * config_.steps_in_flight;
  if (!s.forked) demand.forks = asked.choices - 1;
  if (all) demand.fork_pages = cache_.layout().pages_of(demand.max_tokens) - prompt / cache_.layout().page_size;
  return demand;
}

RequestId Scheduler::add(SchedulerRequest request) {
  const auto prompt = int64_t(request.prompt.size());
  check(prompt > 0 && request.max_tokens > 0 && request.choices > 0, "scheduler: a request for nothing");
  if (draining_) refuse("request", "the engine is draining: it finishes what it has and takes nothing new");
  if (requests() >= config_.max_requests)
    refuse("request", str("the engine has ", requests(), " requests already"),
           "try again later, or raise esurge.detokenizer_max_states");
  check(!config_.shared_text_tokens || prompt <= config_.max_num_batched_tokens, "scheduler: a text of ", prompt,
        " tokens, steps of ", config_.max_num_batched_tokens);
  if (request.choices > config_.max_num_seqs)
    refuse("n", str(request.choices, " choices are more than esurge.max_num_seqs ", config_.max_num_seqs),
           "ask for fewer choices, or raise esurge.max_num_seqs");
  const CacheLayout& layout = cache_.layout();
  const int64_t step = config_.max_num_batched_tokens * config_.steps_in_flight;
  int64_t need = 0;
  for (const CacheGroup& group : layout.groups) {
    const int64_t all = layout.max_pages(group, prompt + request.max_tokens, step);
    const int64_t shared = group.kind == CacheGroup::Kind::full ? prompt / layout.page_size : 0;
    need += (all + (request.choices - 1) * (all - shared)) * group.page_bytes;
  }
  if (need > cache_.pools().budget_bytes())
    refuse("request",
           str("a prompt of ", prompt, " tokens and ",
               request.choices > 1 ? str(request.choices, " answers") : "an answer", " of up to ", request.max_tokens,
               " need ", bytes_text(uint64_t(need)), " of KV cache; all of it is ",
               bytes_text(uint64_t(cache_.pools().budget_bytes()))),
           "shorten the prompt, lower max_tokens, or raise esurge.hbm_utilization");
  if (config_.policy == SchedulingPolicy::fcfs) request.priority = 0;
  auto owned = std::make_unique<Request>();
  Request& made = *owned;
  made.id = next_id_++;
  made.asked = std::move(request);
  made.weights = next_weights_;
  made.unended = made.asked.choices;
  auto& first = *made.sequences.emplace_back(std::make_unique<Sequence>());
  first.request = &made;
  first.forked = made.asked.choices == 1;
  first.frequency_class = made.asked.root.frequency_class;
  if (config_.restart_length > 0)
    first.frequency_class = prompt > config_.restart_length ? 1 : 0;
  else if (config_.turning_length > 0 && prompt > config_.turning_length)
    first.frequency_class = prompt;
  if (made.asked.deadline) deadlines_.emplace(*made.asked.deadline, made.id);
  waiting_.insert(&first);
  requests_.emplace(made.id, std::move(owned));
  if (trace_) trace_->add(made.asked, made.id);
  return made.id;
}

void Scheduler::await_new_weights() {
  next_weights_ = weights_ + 1;
  if (trace_) trace_->call("await_new_weights");
}

bool Scheduler::has_left_weights() const {
  return unfinished_.empty() &&
         std::ranges::none_of(requests_, [&](const auto& entry) { return entry.second->weights == weights_; });
}

void Scheduler::take_new_weights(bool same) {
  check(has_left_weights(), "scheduler: weights change while requests need them");
  if (trace_) trace_->take_new_weights(same);
  weights_ = next_weights_;
  if (!same) cache_.drop_index(ops_);
}

void Scheduler::propose(SequenceId id, int64_t drafts) {
  if (trace_) trace_->propose(id, drafts);
  if (Sequence* s = find(id)) s->drafts = drafts;
}

int64_t Scheduler::known_tokens(SequenceId id) const {
  const Sequence* const s = find(id);
  check(s != nullptr, "scheduler: no choice ", id.choice, " of request ", id.request);
  return known_tokens(*s);
}

bool Scheduler::runs(SequenceId id) const {
  const Sequence* const s = find(id);
  return s && s->place == Sequence::Place::running && s->leaving == Sequence::Leaving::no;
}

std::vector<TokenId> Scheduler::tokens(SequenceId id) const {
  const Sequence* s = find(id);
  check(s, "scheduler: sequence ", id.choice, " of request ", id.request, " is not known");
  std::vector<TokenId> all = s->request->asked.prompt;
  all.insert(all.end(), s->generated.begin(), s->generated.end());
  return all;
}

const SequencePages& Scheduler::pages(SequenceId id) const {
  const Sequence* s = find(id);
  check(s, "scheduler: sequence ", id.choice, " of request ", id.request, " is not known");
  return s->pages;
}

// A sequence ends now; it gives up its pages when no unfinished plan has it.
void Scheduler::end(Sequence& s, FinishReason reason, bool timed_out) {
  if (s.leaving == Sequence::Leaving::ended || s.place == Sequence::Place::ended) return;
  const int64_t choices = s.forked ? 1 : s.request->asked.choices;
  for (int64_t i = 0; i < choices; ++i)
    ended_.push_back(
        {{s.request->id, s.choice + i}, reason, timed_out, s.cached_tokens, s.preemptions, s.recomputed_tokens});
  s.request->unended -= choices;
  s.leaving = Sequence::Leaving::ended;
}

void Scheduler::end_request(Request& request, FinishReason reason, bool timed_out) {
  std::vector<Sequence*> all;
  for (const auto& s : request.sequences) all.push_back(s.get());
  for (Sequence* s : all) end(*s, reason, timed_out);
  for (Sequence* s : all) settle(*s);
  forget_finished(request);
}

void Scheduler::abort(RequestId id) {
  if (trace_) trace_->abort(id);
  if (const auto found = requests_.find(id); found != requests_.end()) end_request(*found->second, FinishReason::abort);
}

void Scheduler::preempt(Sequence& s) {
  s.leaving = Sequence::Leaving::preempted;
  settle(s);
}

// Lets a sequence that leaves go, if no unfinished plan has it.
void Scheduler::settle(Sequence& s) {
  if (s.leaving == Sequence::Leaving::no || s.in_flight > 0) return;
  const bool ended = s.leaving == Sequence::Leaving::ended;
  s.leaving = Sequence::Leaving::no;
  if (s.place == Sequence::Place::waiting) {
    check(ended, "scheduler: a waiting sequence is preempted");
    waiting_.erase(&s);
  } else if (s.place == Sequence::Place::running) {
    const int64_t known = std::min(s.computed, known_tokens(s));
    const int64_t indexed = s.pages.indexed;
    cache_.leave(s.pages, keys(s), known, s.computed == known);
    std::erase(running_, &s);
    if (!ended) {
      if (s.counts_preemption) {
        ++preemptions_, ++s.preemptions;
        if (config_.logs_preemptions)
          log::info("esurge: request ", s.request->id, " is preempted for the ", s.preemptions,
                    s.preemptions == 1   ? "st"
                    : s.preemptions == 2 ? "nd"
                    : s.preemptions == 3 ? "rd"
                                         : "th",
                    " time: ", s.computed, " computed tokens, ", config_.prefix_caching ? indexed : 0,
                    " of them in the prefix index");
      }
      s.counts_preemption = true;
      s.max_computed = std::max(s.max_computed, s.computed);
      s.computed = 0, s.redone = 0, s.no_room_at = 0, s.cut_at = 0;
      s.place = Sequence::Place::waiting;
      waiting_.insert(&s);
      return;
    }
  }
  s.place = Sequence::Place::ended;
}

void Scheduler::forget_finished(Request& request) {
  if (request.unended > 0) return;
  for (const auto& s : request.sequences)
    if (s->place != Sequence::Place::ended) return;
  if (request.asked.deadline) deadlines_.erase({*request.asked.deadline, request.id});
  requests_.erase(request.id);
}

void Scheduler::resume() {
  if (trace_) trace_->call("resume");
  paused_ = false;
}

void Scheduler::drain() {
  if (trace_) trace_->call("drain");
  draining_ = true;
}

void Scheduler::pause(bool destroy_pages) {
  if (trace_) trace_->pause(destroy_pages);
  paused_ = true;
  if (!destroy_pages) return;
  // Those that an unfinished plan has go when it is finished.
  destroy_pages_ = true;
  const std::vector<Sequence*> all = running_;
  for (Sequence* s : all)
    if (s->leaving == Sequence::Leaving::no) {
      s->counts_preemption = false;
      preempt(*s);
    }
  if (!unfinished_.empty()) return;
  destroy_pages_ = false;
  cache_.drop_index(ops_);
}

void Scheduler::reset_prefix_cache() {
  if (trace_) trace_->call("reset_prefix_cache");
  cache_.drop_index(ops_);
}

std::vector<PrefixIndex::Restored> Scheduler::restore_index(const SavedPrefixIndex& saved) {
  check(requests_.empty() && unfinished_.empty(), "scheduler: the index is restored while requests are there");
  if (trace_) trace_->call("restore_index");
  return cache_.restore_index(saved, ops_);
}

void Scheduler::expire(double now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    Request& request = *requests_.at(deadlines_.begin()->second);
    deadlines_.erase(deadlines_.begin());
    end_request(request, FinishReason::abort, true);
  }
}

void Scheduler::reset_when_idle(double now) {
  if (!requests_.empty() || last_active_ < 0) last_active_ = requests_.empty() ? std::max(last_active_, now) : now;
  if (!requests_.empty() || !config_.idle_reset_seconds || cache_.pools().resident_bytes() == 0) return;
  if (now - last_active_ < *config_.idle_reset_seconds || now - last_reset_ < config_.idle_reset_min_interval) return;
  last_reset_ = now, ++idle_resets_;
  cache_.drop_index(ops_);
}

void Scheduler::finish(std::span<const StepResult> results) {
  check(!unfinished_.empty(), "scheduler: no plan is unfinished");
  if (trace_) trace_->finish(results, known_scores(unfinished_.front()));
  const Unfinished plan = std::move(unfinished_.front());
  unfinished_.pop_front();
  size_t at = 0;
  for (const InFlight& part : plan.parts) {
    const StepResult* result = nullptr;
    if (part.draws && at < results.size() && results[at].id == id_of(*part.sequence)) result = &results[at++];
    check(!part.draws || result || part.sequence->leaving == Sequence::Leaving::ended, "scheduler: step ", plan.step,
          " has no result for choice ", part.sequence->choice, " of request ", part.sequence->request->id);
    finish_part(part, result);
  }
  check(at == results.size(), "scheduler: step ", plan.step, " has ", results.size(), " results, ", at,
        " are expected");
  // Only now: choices of one request fail together, and requests go with their sequences.
  for (const InFlight& part : plan.parts) settle(*part.sequence);
  std::set<RequestId> seen;
  for (const InFlight& part : plan.parts) seen.insert(part.sequence->request->id);
  for (const RequestId id : seen) forget_finished(*requests_.at(id));
  if (destroy_pages_ && unfinished_.empty()) {
    destroy_pages_ = false;
    cache_.drop_index(ops_);
  }
  if (config_.check_every_step) check_pages();
}

// Of the plan's requests that want some: how many rows are there.
std::vector<std::pair<RequestId, int64_t>> Scheduler::known_scores(const Unfinished& plan) const {
  std::vector<std::pair<RequestId, int64_t>> out;
  for (const InFlight& part : plan.parts)
    if (const auto& scores = part.sequence->request->asked.prompt_scores)
      out.emplace_back(part.sequence->request->id, std::ssize(scores->rows));
  return out;
}

void Scheduler::finish_part(const InFlight& part, const StepResult* result) {
  Sequence& s = *part.sequence;
  --s.in_flight;
  s.planned -= part.tokens;
  if (part.draws) s.drawn -= 1;
  int64_t rejected = 0;
  if (part.drafts > 0) {
    s.drafts_in_flight = false;
    const int64_t accepted = result && !result->failed ? int64_t(result->tokens.size()) - 1 : 0;
    check(accepted >= 0 && accepted <= part.drafts, "scheduler: ", accepted, " of ", part.drafts,
          " drafts are accepted");
    rejected = part.drafts - accepted;
  }
  s.computed = part.end - rejected;
  if (rejected > 0) cache_.truncate(s.pages, s.computed);
  if (rejected > 0 && s.pages.saved_state >= 0) {
    cache_.restore_state(s.pages);
    s.redone = part.tokens - rejected;
    s.computed -= s.redone;
  }
  if (part.drafts > 0) cache_.drop_saved_state(s.pages);
  s.has_scores = result && s.request->asked.beams;
  if (result && result->failed) {
    for (const auto& other : s.request->sequences) end(*other, FinishReason::error);
  } else if (result && s.leaving != Sequence::Leaving::ended && !s.request->asked.beams) {
    check(!result->tokens.empty() && (part.drafts > 0 || result->tokens.size() == 1), "scheduler: a result of ",
          result->tokens.size(), " tokens");
    s.generated.insert(s.generated.end(), result->tokens.begin(), result->tokens.end());
    const bool full = int64_t(s.generated.size()) >= s.request->asked.max_tokens;
    if (result->stopped || full) {
      end(s, result->stopped ? FinishReason::stop : FinishReason::length);
    } else if (config_.restart_length > 0 && s.frequency_class == 0 && known_tokens(s) > config_.restart_length) {
      s.frequency_class = 1;
      s.counts_preemption = false;
      s.leaving = Sequence::Leaving::preempted;
    }
  }
  if (s.computed <= known_tokens(s)) {
    cache_.advance(s.pages, keys(s), s.computed);
    if (part.kept_state >= 0) cache_.keep_state(s.pages, keys(s), s.computed, part.kept_state);
  } else if (part.kept_state >= 0) {
    cache_.drop_state(part.kept_state);
  }
}

void Scheduler::check_pages() const {
  std::vector<const SequencePages*> all;
  std::vector<int32_t> kept;
  for (const Sequence* s : running_) {
    all.push_back(&s->pages);
    check(s->place == Sequence::Place::running, "scheduler: a running sequence is marked otherwise");
  }
  for (const Unfinished& plan : unfinished_)
    for (const InFlight& part : plan.parts)
      if (part.kept_state >= 0) kept.push_back(part.kept_state);
  cache_.check_all(all, kept);
  for (const Sequence* s : waiting_)
    check(s->pages.empty() && s->place == Sequence::Place::waiting, "scheduler: a waiting sequence has pages");
  check(slots_used() <= config_.max_num_seqs, "scheduler: more than max_num_seqs sequences run");
}

}  // namespace easydel::esurge
