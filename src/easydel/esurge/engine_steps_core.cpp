// How a step is computed.
#include <algorithm>
#include <cmath>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/esurge/pooled_text.h"
#include "easydel/esurge/step_engine_parts.h"

namespace easydel::esurge {
namespace {

// Draws from the rows as long as each token drawn is the one that was speculated. `accept`: log-probabilities, text and
// stops of the tokens are computed at once; otherwise accept() does it later.
void choose(Draw& draw, bool accept) try {
  draw.dropped = draw.answer->ended() && !draw.request->prepared.scheduled.beams;
  if (draw.dropped) return;
  if (const PooledText* const text = draw.request->pooled.get()) {
    if (!std::ranges::all_of(text->vector(), [](float x) { return std::isfinite(x); }))
      refuse("model", "the vector of the text is not made of numbers (NaN)");
    draw.result.tokens = {0};
    return;
  }
  if (draw.request->prepared.is_scored()) {
    const ScoredRow& row = draw.rows[0];
    draw.request->add_row(row.position, draw.request->read_row(row));
    draw.result.tokens = {draw.request->continuation_token(row.position)};
    return;
  }
  const std::span<const float> logits = draw.rows[0].logits;
  if (draw.request->guided) {
    draw.request->guided->add(draw.result.id.choice, draw.result.id.request == draw.request->negative_id, logits);
    return;
  }
  if (draw.request->beams) {
    draw.request->beams->add_scores(draw.result.id.choice, draw.answer->beam_scores(logits), logits);
    return;
  }
  if (!accept) {
    draw.result.tokens = {draw.answer->choose(logits)};
    draw.open = true;
    return;
  }
  const std::vector<TokenId>& drafts = draw.answer->drafts();
  for (size_t i = 0; i < draw.rows.size(); ++i) {
    const TokenId token = draw.answer->choose(draw.rows[i].logits);
    draw.answer->accept(draw.rows[i].logits);
    draw.result.tokens.push_back(token);
    if (draw.answer->ended() || i + 1 == draw.rows.size() || token != drafts[i]) break;
  }
  draw.result.stopped = draw.answer->stopped();
} catch (const std::exception& error) {
  draw.error = error.what();
}

void accept(Draw& draw) try {
  draw.open = false;
  draw.answer->accept(draw.rows[0].logits);
  draw.result.stopped = draw.answer->stopped();
  draw.answer->prepare_mask();
} catch (const std::exception& error) {
  draw.error = error.what();
}

}  // namespace

void StepEngine::Parts::propose_drafts() {
  if (!speculates) return;
  if (drafts.by_model)
    draft_by_model();
  else
    look_drafts_up();
}

void StepEngine::Parts::look_drafts_up() {
  const std::lock_guard lock(mutex);
  for (const auto& [id, request] : live)
    for (size_t choice = 0; choice < request->answers.size(); ++choice) {
      // An empty proposal matters as well: it clears drafts that the scheduler still has from a step without room for
      // the sequence.
      const auto& found = request->answers[choice]->propose(scheduler.running());
      scheduler.propose({id, int64_t(choice)}, int64_t(found.size()));
    }
}

void StepEngine::Parts::draft_by_model() {
  if (!draft) return;
  std::vector<std::shared_ptr<LiveRequest>> asked;
  std::vector<Answer*> answers;
  std::vector<DraftModel::Wish> wishes;
  {
    const std::lock_guard lock(mutex);
    if (paused) return;
    for (const auto& [id, request] : live)
      for (size_t choice = 0; choice < request->answers.size(); ++choice) {
        Answer& answer = *request->answers[choice];
        const SequenceId sequence{id, int64_t(choice)};
        answer.set_drafts({});
        scheduler.propose(sequence, 0);
        const int64_t count = scheduler.runs(sequence) ? answer.wanted_drafts(scheduler.running()) : 0;
        if (count == 0) continue;
        asked.push_back(request);
        answers.push_back(&answer);
        wishes.push_back({sequence, answer.tokens(), request->prepared.prompt_tokens(), count,
                          [&answer](std::span<const float> logits, std::span<const TokenId> guessed) {
                            return answer.guess(logits, guessed);
                          }});
      }
  }
  try {
    draft->draft(wishes, options.scheduler.max_num_batched_tokens);
  } catch (const std::exception& error) {
    log::warning("esurge: the draft model failed and is not used any more: ", error.what());
    draft.reset();
    return;
  }
  const std::lock_guard lock(mutex);
  for (size_t i = 0; i < wishes.size(); ++i) {
    scheduler.propose(wishes[i].id, int64_t(wishes[i].drafts.size()));
    answers[i]->set_drafts(std::move(wishes[i].drafts));
  }
}

void StepEngine::Parts::release_draft_pages() {
  {
    const std::lock_guard lock(mutex);
    const bool idle = std::exchange(idle_resets, scheduler.idle_resets()) != scheduler.idle_resets();
    if (!std::exchange(draft_pages_due, false) && !idle) return;
  }
  if (draft) draft->release();
}

// Everything that a plan refers to is copied, because a later plan may change it.
void StepEngine::Parts::plan_sequences(Step& step) {
  for (const PageOp& op : step.plan.before) counts.copied_pages += op.kind == PageOp::Kind::copy;
  for (const StepEntry& entry : step.plan.entries) {
    const auto& request = step.requests.emplace_back(request_of(entry.id.request));
    if (!request->admitted) {
      request->admitted = now();
      metrics.queue_seconds.observe(*request->admitted - request->arrived);
    }
    const Answer& answer = *request->answers[size_t(entry.id.choice)];
    RunSequence& run = step.sequences.emplace_back();
    run.begin = entry.begin;
    const int64_t known = entry.begin + entry.tokens - entry.drafts;
    // The last one may come from the step that runs now.
    run.tokens = request->tokens_read(entry.id, entry.begin, known);
    run.tokens.insert(run.tokens.end(), answer.drafts().begin(), answer.drafts().begin() + entry.drafts);
    run.prompt = request->prompt_read(entry.id.request);
    // Not the answer's: a guided one that has ended goes on beside the others, and its pages are shared like theirs.
    run.known = std::max(scheduler.known_tokens(entry.id), known);
    run.adapter = request->adapter;
    run.part = request->part;
    run.tables = scheduler.pages(entry.id).tables;
    run.pooled = request->pooled;
    run.draws = entry.draws > 0 && !run.pooled ? 1 + entry.drafts : 0;
    counts.cut_prompts += entry.begin + entry.tokens < run.prompt;
    for (const std::vector<int32_t>& table : run.tables)
      counts.passed_pages = std::max(counts.passed_pages, int64_t(std::ranges::count(table, -1)));
    if (const auto position = request->scored_from(); position && entry.id.request == request->id)
      run.scored_from = *position;
  }
}

Step StepEngine::Parts::plan() {
  Step step;
  const std::lock_guard lock(mutex);
  step.plan = scheduler.schedule(now());
  plan_sequences(step);
  due |= std::exchange(aborted, false);
  take_ended();
  return step;
}

void StepEngine::Parts::complete(Step& step) const {
  for (size_t i = 0; i < step.sequences.size(); ++i) {
    const StepEntry& entry = step.plan.entries[i];
    RunSequence& run = step.sequences[i];
    if (int64_t(run.tokens.size()) == entry.tokens) continue;
    const std::vector<TokenId>& tokens = step.requests[i]->answers[size_t(entry.id.choice)]->tokens();
    const auto next = size_t(entry.begin) + run.tokens.size();
    // If its request has failed, the token is missing; any will do, because the result is dropped.
    run.tokens.push_back(next < tokens.size() ? tokens[next] : 0);
  }
}

void StepEngine::Parts::on_prompt_rows(const Step& step, size_t first, std::span<const ScoredRow> rows) {
  wait_for_side();
  const auto request_of = [&](size_t i) -> LiveRequest& { return *step.requests[first + rows[i].sequence]; };
  std::vector<LiveRequest::ReadRow> read(rows.size());
  runner.share(std::ssize(rows), [&](int64_t i) { read[size_t(i)] = request_of(size_t(i)).read_row(rows[size_t(i)]); });
  // Rows of one request come in order.
  for (size_t i = 0; i < rows.size(); ++i) request_of(i).add_row(rows[i].position, std::move(read[i]));
}

void StepEngine::Parts::on_draw_rows(Step& step, size_t first, size_t count, std::span<const ScoredRow> rows) {
  wait_for_side();
  size_t at = 0;
  const size_t before = step.draws.size();
  for (size_t i = first; i < first + count; ++i) {
    const StepEntry& entry = step.plan.entries[i];
    if (entry.draws == 0) continue;
    const std::span<const ScoredRow> own = rows.subspan(at, step.requests[i]->pooled ? 0 : size_t(1 + entry.drafts));
    at += own.size();
    for (int64_t c = 0; c < entry.draws; ++c) {
      LiveRequest& request = *step.requests[i];
      const SequenceId id{entry.id.request, entry.id.choice + c};
      step.draws.push_back({&request, request.answers[size_t(id.choice)].get(), own, {id, {}, false, false}, {}});
    }
  }
  runner.share(int64_t(step.draws.size() - before),
               [&](int64_t task) { choose(step.draws[before + size_t(task)], !plans_ahead()); });
}

// One pass over entries [first, first + count) of the plan.
void StepEngine::Parts::run_entries(Step& step, size_t first, size_t count, std::span<const PageOp> before,
                                    std::span<const PageOp> after) {
  step.scores.push_back(runner.run(
      before, std::span(step.sequences).subspan(first, count), after,
      [&](std::span<const ScoredRow> rows) { on_prompt_rows(step, first, rows); },
      [&](std::span<const ScoredRow> rows) { on_draw_rows(step, first, count, rows); }));
}

void StepEngine::Parts::run(Step& step) {
  const StepPlan& plan = step.plan;
  try {
    return run_entries(step, 0, plan.entries.size(), plan.before, plan.after);
  } catch (const std::exception& error) {
    wait_for_side();
    step.failed = true;
    if (has_lost_ranks()) return;
    if (plan.entries.size() > 1) return run_one_by_one(step);
    for (const auto& request : step.requests) fail(*request, failure_text(error));
  }
}

// The beams of requests whose scores are all there now.
std::vector<StepEngine::Parts::BeamsToContinue> StepEngine::Parts::advance_beams(const Step& step) {
  std::vector<BeamsToContinue> out;
  for (const Draw& draw : step.draws) try {
      LiveRequest& request = *draw.request;
      if (!request.error.empty() || !draw.error.empty() || request.unended == 0) continue;
      auto tokens = int64_t(request.answers.size());
      if (request.guided && request.guided->has_all()) {
        tokens -= std::ranges::count_if(request.answers, [](const auto& answer) { return answer->ended(); });
        const auto steps = request.advance_guided();
        if (!request.beams) out.push_back({&request, steps, tokens});
      }
      if (request.beams && request.beams->has_all_scores()) out.push_back({&request, request.beams->advance(), tokens});
    } catch (const std::exception& error) {
      fail(*draw.request, error.what());
    }
  return out;
}

void StepEngine::Parts::continue_beams(const std::vector<BeamsToContinue>& all) {
  for (const auto& [request, steps, tokens] : all) {
    if (!request->error.empty()) continue;
    count_tokens(*request, tokens);
    for (size_t choice = 0; request->beams && choice < request->answers.size(); ++choice)
      request->answers[choice]->set_tokens(request->beams->tokens(int64_t(choice)));
    for (const RequestId id : {request->id, request->negative_id})
      if (id == 0)
        continue;
      else if (steps.empty())
        scheduler.stop(id);
      else
        scheduler.continue_beams(id, steps);
  }
}

void StepEngine::Parts::count_tokens(LiveRequest& request, int64_t count) {
  const double time = now();
  metrics.generated_tokens += count;
  rate.add(time, count);
  if (!request.first_token) {
    request.first_token = time;
    metrics.first_token_seconds.observe(time - request.arrived);
    metrics.prefill_seconds.observe(time - *request.admitted);
  } else {
    metrics.between_tokens_seconds.observe(time - *request.last_token);
  }
  request.last_token = time;
  request.changed = true;
}

std::vector<StepResult> StepEngine::Parts::results(Step& step) {
  for (Draw& draw : step.draws) {
    if (!draw.error.empty()) fail(*draw.request, draw.error);
    const Answer::Measured measured = draw.answer->take_measured();
    for (const double seconds : measured.mask_seconds) metrics.mask_seconds.observe(seconds);
    for (const double entropy : measured.entropies) metrics.entropy.observe(entropy);
    for (const double surprise : measured.surprises) metrics.chosen_negative_logprob.observe(surprise);
    if (draw.result.tokens.empty() || draw.request->prepared.is_scored() || draw.request->pooled) continue;
    const auto count = int64_t(draw.result.tokens.size()), tried = int64_t(draw.rows.size()) - 1;
    if (tried > 0) {
      draw.answer->verified(tried, count - 1);
      metrics.draft_tokens += tried, metrics.accepted_draft_tokens += count - 1;
      metrics.accepted_drafts.observe(double(count - 1));
      draw.request->accepted_drafts += count - 1, draw.request->rejected_drafts += tried - count + 1;
    }
    count_tokens(*draw.request, count);
  }
  std::vector<StepResult> out;
  size_t at = 0;
  for (size_t i = 0; i < step.plan.entries.size(); ++i) {
    const StepEntry& entry = step.plan.entries[i];
    for (int64_t c = 0; c < entry.draws; ++c) {
      StepResult result{{entry.id.request, entry.id.choice + c}, {}, false, true};
      if (at < step.draws.size() && step.draws[at].result.id == result.id) {
        Draw& draw = step.draws[at++];
        if (draw.dropped) continue;
        result = std::move(draw.result);
      }
      if (!step.requests[i]->error.empty()) result = {result.id, {}, false, true};
      out.push_back(std::move(result));
    }
  }
  return out;
}

void StepEngine::Parts::take_ended() {
  for (const SequenceEnd& end : scheduler.take_ended()) {
    const auto found = live.find(end.id.request);
    if (found == live.end()) continue;
    const std::shared_ptr<LiveRequest> request = found->second;
    if (std::ranges::find(touched, request) == touched.end()) touched.push_back(request);
    request->end(end);
    metrics.recomputed_tokens += end.recomputed_tokens;
    if (request->unended > 0) continue;
    live.erase(found);
    if (request->negative_id > 0) {
      scheduler.abort(request->negative_id);
      negatives.erase(request->negative_id);
    }
    if (draft) draft->forget(end.id.request);
    const FinishReason reason = request->error.empty() ? end.reason : FinishReason::error;
    ++(reason == FinishReason::error   ? metrics.requests_failed
       : reason == FinishReason::abort ? metrics.requests_aborted
                                       : metrics.requests_finished);
    metrics.prompt_tokens += request->prepared.prompt_tokens();
    metrics.request_prompt_tokens.observe(double(request->prepared.prompt_tokens()));
    int64_t generated = 0;
    for (const auto& answer : request->answers) generated += answer->generated();
    metrics.request_generated_tokens.observe(double(generated));
    metrics.cached_prompt_tokens += request->cached_tokens;
    counts.hits_in_pages += request->cached_tokens % options.layout.page_size > 0;
    metrics.request_preemptions.observe(double(request->preemptions));
    if (request->preemptions > 0) metrics.request_recomputed_tokens.observe(double(request->recomputed_tokens));
    const double seconds = now() - request->arrived;
    metrics.request_seconds.observe(seconds);
    if (setup.config.verbose)
      log::info("esurge: request ", request->id, " ended after ", seconds, " s (", name_of(reason),
                "): ", request->prepared.prompt_tokens(), " tokens of the prompt, ", request->cached_tokens,
                " of them cached, ", generated, " generated, preempted ", request->preemptions, " times");
  }
}

// Without the lock: listeners may call the engine.
void StepEngine::Parts::deliver() {
  for (const std::shared_ptr<LiveRequest>& request : touched) {
    if (!request->on_output || !request->has_output()) continue;
    const bool finished = request->unended == 0;
    try {
      request->on_output(request->output(now()));
    } catch (const std::exception& error) {
      log::warning("esurge: the listener of request ", request->id, " failed: ", error.what());
      request->on_output = {};
      if (finished) continue;
      fail(*request, error.what());
      const std::lock_guard lock(mutex);
      scheduler.abort(request->id);
      aborted = true;
    }
  }
  touched.clear();
}

void StepEngine::Parts::handle(Step& step) {
  for (Draw& draw : step.draws)
    if (draw.open) accept(draw);
  const auto beams = advance_beams(step);
  const std::lock_guard lock(mutex);
  for (const auto& request : step.requests)
    if (std::ranges::find(touched, request) == touched.end()) touched.push_back(request);
  if (has_lost_ranks()) end_without_ranks();
  scheduler.finish(results(step));
  continue_beams(beams);
  for (const auto& request : step.requests)
    if (!request->error.empty()) scheduler.abort(request->id);
  failed |= step.failed;
  // A plan that is computed now may use them.
  if (failed && scheduler.unfinished() == 0) {
    forget_pages();
    failed = false;
  }
  counts.draft_bytes = draft ? draft->resident_bytes() : 0;
  take_ended();
  if (step.plan.entries.empty()) return;
  ++counts.steps, ++metrics.steps;
  metrics.batch_size = int64_t(step.plan.entries.size());
  metrics.step_tokens.observe(double(step.plan.tokens));
  metrics.step_seconds.observe(step.seconds);
  if (setup.config.runner_verbose)
    log::info("esurge: step ", counts.steps, ": ", step.plan.entries.size(), " sequences, ", step.plan.tokens,
              " tokens, ", 1e3 * step.seconds, " ms");
}

void StepEngine::Parts::handle_computed() {
  if (!computed) return;
  Step step = std::move(*computed);
  computed.reset();
  handle(step);
}

// With plans_ahead() `side` handles the last step and plans the next one while this one computes, else it sends the
// outputs of the last one at most. A step without entries ends the overlap: nothing is unfinished after it.
bool StepEngine::step() {
  Parts& p = *parts_;
  if (!p.planned) {
    p.handle_computed();
    p.propose_drafts();
    p.planned = p.plan();
    p.release_draft_pages();
  }
  Step step = *std::exchange(p.planned, std::nullopt);
  p.complete(step);
  const bool computes = !step.plan.entries.empty(), overlaps = computes && p.side;
  // Without room for anybody a step only preempts; the next one admits.
  const bool goes_on = computes || !step.plan.preempted.empty();
  if (overlaps)
    p.side->start([&p] {
      p.handle_computed();
      // After a failure the next plan waits until nothing refers to pages that are forgotten.
      if (p.plans_ahead() && !p.failed) p.planned = p.plan();
      p.deliver();
    });
  const Clock::time_point began = Clock::now();
  p.run(step);
  step.seconds = seconds_since(began);
  if (overlaps) p.side->finish();
  if (overlaps && p.plans_ahead()) {
    p.computed = std::move(step);
    return true;
  }
  bool due = std::exchange(p.due, false);
  p.handle_computed();
  p.handle(step);
  due |= !p.touched.empty() || p.due;
  // While a next step is to come, it sends them.
  if (!overlaps || requests() == 0) p.deliver();
  return due || goes_on;
}

}  // namespace easydel::esurge
