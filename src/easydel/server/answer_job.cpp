#include "easydel/server/answer_job.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/esurge/wrong_constraint.h"
#include "easydel/text/remote/remote_tokenizer.h"

namespace easydel::server {
namespace {

ApiError out_of_tokens() {
  return {.status = 429,
          .message = "The key's limit of tokens is reached.",
          .code = "insufficient_quota",
          .type = "insufficient_quota"};
}

// A result whose only answer is there several times.
esurge::RequestOutput repeated(const esurge::RequestOutput& output, int64_t copies) {
  esurge::RequestOutput out = output;
  if (output.outputs.empty()) return out;
  for (int64_t i = 1; i < copies; ++i) {
    out.outputs.push_back(output.outputs.front());
    out.outputs.back().index = i;
  }
  return out;
}

}  // namespace

class AnswerJob : public std::enable_shared_from_this<AnswerJob> {
 public:
  AnswerJob(AnswerJobs& jobs, std::shared_ptr<Call> call, std::shared_ptr<const ServedModel> model,
            std::unique_ptr<AnswerWriter> writer)
      : jobs_(jobs), call_(std::move(call)), model_(std::move(model)), writer_(std::move(writer)) {}

  void start(std::vector<AnswerPart> parts);
  void cancel(const ApiError& error);
  AnswerJobs::Info info() const;

 private:
  struct Part {
    int64_t id = -1, prompt_tokens = 0, generated = 0, cached = 0, accepted = 0, rejected = 0, copies = 1;
    bool counts_answer = true, finished = false;
  };
  int64_t add(esurge::Request request, const std::string& constraint_field, size_t index);
  void take(size_t index, esurge::RequestOutput output);
  void handle(size_t index, const esurge::RequestOutput& output);
  void count(Part& part, const esurge::RequestOutput& output);
  void fail(const ApiError& error);
  void finish();
  void abort_parts();
  void leave();
  void begin() {
    begun_ = true;
    writer_->begin(*call_);
  }

  AnswerJobs& jobs_;
  mutable std::mutex mutex_;    // of what follows
  std::shared_ptr<Call> call_;  // null: the answer is complete
  std::shared_ptr<const ServedModel> model_;
  std::unique_ptr<AnswerWriter> writer_;
  std::vector<Part> parts_;
  TokenUsage usage_;
  bool started_ = false, begun_ = false;                         // the writer: begun_
  std::atomic<bool> left_ = false;                               // the client has gone; read without the mutex
  std::vector<std::pair<size_t, esurge::RequestOutput>> early_;  // results before all requests were started
  int64_t number_ = 0;

  friend class AnswerJobs;
};

// Requests that were added after the client had gone are aborted by start().
void AnswerJob::abort_parts() {
  for (const Part& part : parts_)
    if (part.id >= 0 && !part.finished) model_->engine->abort(part.id);
}

void AnswerJob::finish() {
  call_ = nullptr;
  writer_ = nullptr;
  std::lock_guard lock(jobs_.mutex_);
  jobs_.jobs_.erase(number_);
}

// The client has gone. What was computed until the engine knows is counted with its last results.
void AnswerJob::leave() {
  if (!left_.exchange(true)) abort_parts();
  call_->record.finish_reason = "abort";
  if (std::ranges::all_of(parts_, &Part::finished)) finish();
}

void AnswerJob::fail(const ApiError& error) {
  if (!call_) return;
  abort_parts();
  if (begun_ && !left_)
    writer_->fail(*call_, error);
  else if (started_ && !left_)
    call_->refuse(error);
  finish();
}

void AnswerJob::cancel(const ApiError& error) {
  std::lock_guard lock(mutex_);
  fail(error);
}

void AnswerJob::count(Part& part, const esurge::RequestOutput& output) {
  usage_.completion_tokens = usage_.prompt_tokens = usage_.cached_tokens = 0;
  usage_.accepted_prediction_tokens = usage_.rejected_prediction_tokens = 0;
  const int64_t before = part.generated;
  part.generated = std::max(before, output.num_generated_tokens);
  part.cached = output.cached_tokens;
  part.accepted = output.accepted_drafts, part.rejected = output.rejected_drafts;
  for (const Part& one : parts_) {
    usage_.prompt_tokens += one.prompt_tokens;
    usage_.cached_tokens += one.cached;
    usage_.accepted_prediction_tokens += one.accepted;
    usage_.rejected_prediction_tokens += one.rejected;
    if (one.counts_answer) usage_.completion_tokens += one.generated * one.copies;
  }
  usage_.processing_time = std::max(usage_.processing_time, output.processing_time);
  usage_.tokens_per_second = output.tokens_per_second;
  usage_.prompt_seconds = std::max(usage_.prompt_seconds, output.first_token_time.value_or(0));
  usage_.generation_seconds = std::max(usage_.generation_seconds, output.time_spent_generating);
  RequestRecord& record = call_->record;
  record.cached_tokens = usage_.cached_tokens;
  record.completion_tokens = usage_.completion_tokens;
  record.generated_tokens += part.generated - before;
  if (!record.queue_seconds) record.queue_seconds = output.queue_time;
  if (!record.first_token_seconds && output.first_token_time) record.first_token_seconds = output.first_token_time;
  if (!output.outputs.empty() && output.outputs[0].finish_reason)
    record.finish_reason = name_of(*output.outputs[0].finish_reason);
  if (!jobs_.add_tokens(*call_, part.generated - before)) throw Refusal(out_of_tokens());
}

void AnswerJob::handle(size_t index, const esurge::RequestOutput& output) {
  if (!call_) return;
  try {
    Part& part = parts_[index];
    part.finished = output.finished;
    if (!output.error.empty()) {
      log::error("request ", call_->id(), ": ", output.error);
      return fail({.status = 500, .message = "The engine failed to answer the request."});
    }
    if (output.timed_out)
      return fail({.status = 504, .message = "The request took too long.", .code = "deadline_exceeded"});
    count(part, output);
    if (call_->exchange().is_gone()) return leave();
    const auto is_aborted = [](const esurge::CompletionOutput& one) {
      return one.finish_reason == esurge::FinishReason::abort;
    };
    if (output.finished && std::ranges::any_of(output.outputs, is_aborted))
      return fail({.status = 503, .message = "An administrator ended the request.", .code = "cancelled"});
    if (!begun_) {
      writer_->set_fingerprint(output.fingerprint);
      begin();
    }
    if (part.copies > 1)
      writer_->add(*call_, index, repeated(output, part.copies), usage_);
    else
      writer_->add(*call_, index, output, usage_);
    if (!std::ranges::all_of(parts_, &Part::finished)) return;
    writer_->end(*call_, usage_);
    finish();
  } catch (const Refusal& refusal) {
    fail(refusal.error());
  } catch (const text::TokenizerLost& lost) {
    fail(error_of(lost));
  } catch (const std::exception& error) {
    log::error("request ", call_->id(), ": ", error.what());
    fail({.status = 500, .message = "The server has a defect."});
  }
}

void AnswerJob::take(size_t index, esurge::RequestOutput output) {
  std::lock_guard lock(mutex_);
  if (started_) return handle(index, output);
  early_.emplace_back(index, std::move(output));
}

// UserErrors name the field of the body that is wrong.
int64_t AnswerJob::add(esurge::Request request, const std::string& constraint_field, size_t index) {
  try {
    return model_->engine->add(std::move(request), [self = shared_from_this(), index](esurge::RequestOutput output) {
      self->take(index, std::move(output));
    });
  } catch (const esurge::WrongConstraint& error) {
    ApiError refused = error_of(error);
    refused.message = constraint_field + ": " + refused.message;
    refused.param = constraint_field;
    throw Refusal(std::move(refused));
  }
}

void AnswerJob::start(std::vector<AnswerPart> parts) {
  call_->record.model = model_->id;
  for (const AnswerPart& part : parts) {
    parts_.push_back({.prompt_tokens = part.prompt_tokens, .copies = part.copies, .counts_answer = part.counts_answer});
    usage_.prompt_tokens += part.prompt_tokens;
    usage_.truncated_tokens += part.truncated_tokens;
    usage_.shows_timings = usage_.shows_timings || part.shows_timings;
  }
  call_->record.prompt_tokens = usage_.prompt_tokens;
  for (const AnswerPart& part : parts)
    if (const auto* const ids = std::get_if<std::vector<text::TokenId>>(&part.request.prompt))
      jobs_.note_prompt(*call_, *model_, *ids);
  if (!jobs_.add_tokens(*call_, usage_.prompt_tokens)) throw Refusal(out_of_tokens());
  call_->exchange().on_gone([weak = weak_from_this()] {
    const auto job = weak.lock();
    if (!job) return;
    std::lock_guard lock(job->mutex_);
    if (!job->call_) return;
    job->leave();
  });
  call_->record.engine_seconds = call_->seconds();
  try {
    // All parts of an answer are of the same weights.
    esurge::HeldWeights weights = model_->engine->hold_weights();
    for (size_t i = 0; i < parts.size(); ++i) {
      const int64_t id = add(std::move(parts[i].request), parts[i].constraint_field, i);
      std::lock_guard lock(mutex_);
      parts_[i].id = id;
    }
    weights.lock = {};  // an engine whose weights never change has none to hold
    std::lock_guard lock(mutex_);
    started_ = true;
    // Weights that were changed meanwhile have another fingerprint, which the first result tells.
    if (call_->exchange().is_gone()) {
      abort_parts();
      leave();
    } else if (weights.number == model_->weights) {
      begin();
    }
    for (auto& [index, output] : std::exchange(early_, {})) handle(index, output);
  } catch (...) {
    std::lock_guard lock(mutex_);
    abort_parts();
    finish();
    throw;
  }
}

AnswerJobs::Info AnswerJob::info() const {
  std::lock_guard lock(mutex_);
  if (!call_) return {};
  AnswerJobs::Info out{.id = call_->id(),
                       .key = call_->admission().key_id,
                       .route = std::string(call_->route().path),
                       .model = model_->id,
                       .seconds = call_->seconds(),
                       .prompt_tokens = usage_.prompt_tokens};
  for (const Part& part : parts_) out.generated_tokens += part.generated;
  return out;
}

void AnswerJobs::note_prompt(Call& call, const ServedModel& model, std::span<const text::TokenId> ids) const {
  constexpr size_t max_bytes = 64 << 10;
  std::string& prompt = call.record.prompt;
  if (!options_.log_prompts || !model.tokenizer || prompt.size() >= max_bytes) return;
  // A token has at least a byte.
  prompt += (prompt.empty() ? "" : "\n") + model.tokenizer->decode(ids.first(std::min(ids.size(), max_bytes)), false);
  size_t kept = std::min(prompt.size(), max_bytes);
  while (kept < prompt.size() && (uint8_t(prompt[kept]) & 0xc0) == 0x80) --kept;
  prompt.resize(kept);
}

void AnswerJobs::count_tokens(const Call& call, int64_t tokens) const {
  if (!add_tokens(call, tokens)) throw Refusal(out_of_tokens());
}

bool AnswerJobs::add_tokens(const Call& call, int64_t tokens) const {
  return !options_.keys || options_.keys->add_tokens(call.admission().key_id, tokens);
}

void AnswerJobs::start(std::shared_ptr<Call> call, std::shared_ptr<const ServedModel> model,
                       std::vector<AnswerPart> parts, std::unique_ptr<AnswerWriter> writer) {
  if (!model->engine) refuse("model", str("'", model->id, "' generates no text"), "use /v1/embeddings or /v1/classify");
  const auto job = std::make_shared<AnswerJob>(*this, std::move(call), std::move(model), std::move(writer));
  const int64_t running = job->model_->config.max_num_seqs;
  const int64_t most = options_.max_requests > 0 ? options_.max_requests : 4 * running;
  for (AnswerPart& part : parts)
    if (options_.timeout_seconds > 0) part.request.sampling.timeout_seconds = options_.timeout_seconds;
  {
    std::lock_guard lock(mutex_);
    int64_t of_model = 0, of_all = 0;
    for (const auto& [number, weak] : jobs_) {
      const std::shared_ptr<AnswerJob> other = weak.lock();
      if (!other || other->left_) continue;
      ++of_all;
      of_model += other->model_ == job->model_;
    }
    if (of_model >= running + most || (options_.max_of_all_models > 0 && of_all >= options_.max_of_all_models))
      throw Refusal(
          {.status = 503, .message = options_.overload_message, .code = "overloaded", .retry_after_seconds = 1});
    job->number_ = next_++;
    jobs_.emplace(job->number_, job);
  }
  job->start(std::move(parts));
}

std::vector<std::shared_ptr<AnswerJob>> AnswerJobs::all() const {
  std::vector<std::shared_ptr<AnswerJob>> out;
  std::lock_guard lock(mutex_);
  for (const auto& [number, weak] : jobs_)
    if (std::shared_ptr<AnswerJob> job = weak.lock()) out.push_back(std::move(job));
  return out;
}

std::vector<AnswerJobs::Info> AnswerJobs::list() const {
  std::vector<Info> out;
  for (const auto& job : all()) out.push_back(job->info());
  std::erase_if(out, [](const Info& info) { return info.id.empty(); });
  return out;
}

bool AnswerJobs::cancel(const std::string& id, const ApiError& error) {
  for (const auto& job : all())
    if (job->info().id == id) return job->cancel(error), true;
  return false;
}

void AnswerJobs::cancel_all(const ApiError& error) {
  for (const auto& job : all()) job->cancel(error);
}

int64_t AnswerJobs::count() const {
  return std::ranges::count_if(all(), [](const auto& job) { return !job->left_; });
}

}  // namespace easydel::server
