#include "easydel/server/encode_queue.h"

#include <algorithm>
#include <utility>

namespace easydel::server {
namespace {

constexpr size_t max_pass_tokens = 4096;  // of several texts; a longer text is a pass of its own

}  // namespace

EncodeQueue::~EncodeQueue() {
  cancel_all({.status = 503, .message = "The server has shut down.", .code = "draining"});
  {
    std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void EncodeQueue::add(EncodeRequest request) {
  const int64_t most =
      options_.max_requests > 0 ? options_.max_requests : 4 * int64_t(request.model->config.max_num_seqs);
  auto job = std::make_shared<Job>(Job{.request = std::move(request)});
  for (const EncodedText& text : job->request.texts) job->tokens += int64_t(text.ids.size());
  job->rows.resize(job->request.texts.size());
  {
    std::lock_guard lock(mutex_);
    if (ended_) throw Refusal(*ended_);
    if (std::ssize(jobs_) >= most)
      throw Refusal(
          {.status = 503, .message = options_.overload_message, .code = "overloaded", .retry_after_seconds = 1});
    jobs_.push_back(std::move(job));
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  changed_.notify_all();
}

std::vector<AnswerJobs::Info> EncodeQueue::list() const {
  std::lock_guard lock(mutex_);
  std::vector<AnswerJobs::Info> out;
  for (const auto& job : jobs_) {
    const Call& call = *job->request.call;
    out.push_back({.id = call.id(),
                   .key = call.admission().key_id,
                   .route = std::string(call.route().path),
                   .model = job->request.model->id,
                   .seconds = call.seconds(),
                   .prompt_tokens = job->tokens});
  }
  return out;
}

// False: another thread has answered it.
bool EncodeQueue::remove(const std::shared_ptr<Job>& job) {
  std::lock_guard lock(mutex_);
  const auto at = std::ranges::find(jobs_, job);
  if (at == jobs_.end()) return false;
  jobs_.erase(at);
  return true;
}

bool EncodeQueue::cancel(const std::string& id, const ApiError& error) {
  std::shared_ptr<Job> job;
  {
    std::lock_guard lock(mutex_);
    const auto at = std::ranges::find_if(jobs_, [&](const auto& one) { return one->request.call->id() == id; });
    if (at == jobs_.end()) return false;
    job = *at;
    jobs_.erase(at);
  }
  changed_.notify_all();
  job->request.call->refuse(error);
  return true;
}

void EncodeQueue::cancel_all(const ApiError& error) {
  Jobs jobs;
  {
    std::lock_guard lock(mutex_);
    if (!ended_) ended_ = error;
    jobs.swap(jobs_);
  }
  changed_.notify_all();
  for (const auto& job : jobs) job->request.call->refuse(error);
}

void EncodeQueue::change_weights(const ServedEncoder& encoder, const std::optional<ApiError>& error,
                                 const std::function<void()>& change) {
  const auto is_its = [&](const std::shared_ptr<Job>& job) { return job->request.model->encoder.get() == &encoder; };
  Jobs ended;
  {
    std::lock_guard lock(mutex_);
    changing_ = &encoder;
    if (error)
      for (auto at = jobs_.begin(); at != jobs_.end();) {
        const auto next = std::next(at);
        if (is_its(*at)) ended.splice(ended.end(), jobs_, at);
        at = next;
      }
  }
  for (const auto& job : ended) job->request.call->refuse(*error);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return computing_ != &encoder &&
           std::ranges::none_of(jobs_, [&](const auto& job) { return is_its(job) && job->begun > 0; });
  });
  lock.unlock();
  std::exception_ptr failure;
  try {
    change();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  changing_ = nullptr;
  changed_.notify_all();
  lock.unlock();
  if (failure) std::rethrow_exception(failure);
}

bool EncodeQueue::is_changing() const {
  std::lock_guard lock(mutex_);
  return changing_ != nullptr;
}

int64_t EncodeQueue::count() const {
  std::lock_guard lock(mutex_);
  return std::ssize(jobs_);
}

// Takes out jobs that nobody waits for any longer, and those that took too long.
EncodeQueue::Jobs EncodeQueue::take_overdue() {
  Jobs out;
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    const auto next = std::next(at);
    Call& call = *(*at)->request.call;
    if (call.exchange().is_gone() || (options_.timeout_seconds > 0 && call.seconds() > options_.timeout_seconds))
      out.splice(out.end(), jobs_, at);
    at = next;
  }
  return out;
}

bool EncodeQueue::is_held(const Job& job) const {
  return job.begun == 0 && job.request.model->encoder.get() == changing_;
}

// A text of each request for the model of the first one in turn, as many as go into a pass. Another request is the
// first of the next pass.
EncodeQueue::Pass EncodeQueue::next_pass() {
  Pass out;
  const auto first = std::ranges::find_if(jobs_, [&](const auto& job) { return !is_held(*job); });
  if (first == jobs_.end()) return out;
  const std::shared_ptr<const ServedModel> model = (*first)->request.model;
  size_t tokens = 0;
  for (bool more = true; more;) {
    more = false;
    for (const auto& job : jobs_) {
      if (job->request.model != model || job->begun == job->request.texts.size() || is_held(*job)) continue;
      const size_t size = job->request.texts[job->begun].ids.size();
      if (!out.empty() && tokens + size > max_pass_tokens) continue;
      tokens += size;
      out.emplace_back(job, job->begun++);
      more = true;
    }
  }
  jobs_.splice(jobs_.end(), jobs_, first);
  computing_ = model->encoder.get();
  return out;
}

void EncodeQueue::encode(const Pass& pass) {
  std::vector<EncodedText> texts;
  for (const auto& [job, number] : pass) texts.push_back(std::move(job->request.texts[number]));
  std::vector<Vector> rows;
  std::exception_ptr failure;
  try {
    rows = pass.front().first->request.model->encoder->encode(texts);
  } catch (...) {
    failure = std::current_exception();
  }
  for (size_t i = 0; i < pass.size(); ++i) {
    const auto& [job, number] = pass[i];
    if (!failure) job->rows[number] = std::move(rows[i]);
    if (++job->done < job->rows.size() && !failure) continue;
    if (!remove(job)) continue;
    Call& call = *job->request.call;
    answer_errors(call, [&, &job = job] {
      if (failure) std::rethrow_exception(failure);
      job->request.answer(call, std::move(job->rows));
    });
  }
}

void EncodeQueue::run() {
  while (true) {
    Jobs overdue;
    Pass pass;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] {
        return stops_ || std::ranges::any_of(jobs_, [this](const auto& job) { return !is_held(*job); });
      });
      if (stops_) return;
      overdue = take_overdue();
      pass = next_pass();
    }
    for (const auto& job : overdue) {
      Call& call = *job->request.call;
      if (call.exchange().is_gone())
        call.record.finish_reason = "abort";
      else
        call.refuse({.status = 504, .message = "The request took too long.", .code = "deadline_exceeded"});
    }
    overdue.clear();
    if (!pass.empty()) encode(pass);
    pass.clear();
    {
      std::lock_guard lock(mutex_);
      computing_ = nullptr;
    }
    changed_.notify_all();
  }
}

}  // namespace easydel::server
