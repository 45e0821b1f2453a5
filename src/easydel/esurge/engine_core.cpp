#include "easydel/esurge/engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/tensor/threads.h"

namespace easydel::esurge {
namespace {

void join_completion(CompletionOutput& to, CompletionOutput next) {
  next.text = to.text + next.text;
  next.delta_text = to.delta_text + next.delta_text;
  next.reasoning_content = to.reasoning_content + next.reasoning_content;
  if (to.tool_calls.is_list()) {
    if (next.tool_calls.is_list()) std::ranges::move(next.tool_calls.items, std::back_inserter(to.tool_calls.items));
    next.tool_calls = std::move(to.tool_calls);
  }
  next.token_ids.insert(next.token_ids.begin(), to.token_ids.begin(), to.token_ids.end());
  next.logprobs.insert(next.logprobs.begin(), to.logprobs.begin(), to.logprobs.end());
  to = std::move(next);
}

// What a listener gets that missed `to`.
void join_output(RequestOutput& to, RequestOutput next, OutputKind kind) {
  if (kind == OutputKind::delta && to.outputs.size() == next.outputs.size()) {
    for (size_t i = 0; i < next.outputs.size(); ++i) join_completion(to.outputs[i], std::move(next.outputs[i]));
    next.outputs = std::move(to.outputs);
  } else {
    for (size_t i = 0; i < next.outputs.size() && i < to.outputs.size(); ++i)
      next.outputs[i].delta_text = to.outputs[i].delta_text + next.outputs[i].delta_text;
  }
  next.delta_text = to.delta_text + next.delta_text;
  if (!to.prompt_logprobs.empty()) next.prompt_logprobs = std::move(to.prompt_logprobs);
  to = std::move(next);
}

// The results of one request on their way from the thread of steps to their reader: what is not fetched is joined.
class Mailbox {
 public:
  explicit Mailbox(OutputKind kind) : kind_(kind) {}

  void put(RequestOutput output) {
    const std::lock_guard lock(mutex_);
    if (pending_)
      join_output(*pending_, std::move(output), kind_);
    else
      pending_ = std::move(output);
    came_.notify_all();
  }
  std::optional<RequestOutput> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(pending_, std::nullopt);
  }
  RequestOutput wait() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [&] { return pending_.has_value(); });
    return *std::exchange(pending_, std::nullopt);
  }

 private:
  OutputKind kind_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::optional<RequestOutput> pending_;
};

struct Letter {
  std::shared_ptr<Mailbox> box;
  std::shared_ptr<OnOutput> listener;
  std::shared_ptr<std::atomic<bool>> failed;
};

}  // namespace

struct Engine::Parts {
  explicit Parts(EngineSetup setup) : on_ranks(setup.ranks != nullptr), steps(std::move(setup)) {}

  void run_steps(int threads);
  void deliver();
  // Does `work` on the thread of steps, between two of them. What it throws comes back.
  void between_steps(std::function<void()> work);
  // Loads an adapter, on several ranks between steps.
  int64_t new_version(const std::function<int64_t()>& load) {
    if (!on_ranks) return load();
    int64_t version = 0;
    between_steps([&] { version = load(); });
    return version;
  }
  void do_work();
  // Does `change` when nothing needs the present weights any more.
  void change_weights(KnownRequests known, const std::function<void()>& change);
  // Of something that steps change.
  void wait_until(const std::function<bool()>& holds) {
    std::unique_lock lock(mutex);
    // It is not under this mutex, so a change may pass unseen: it is looked at again soon.
    while (!holds()) changed.wait_for(lock, std::chrono::milliseconds(50));
  }
  void wake() {
    const std::lock_guard lock(mutex);
    due = true;
    changed.notify_all();
  }

  const bool on_ranks;
  StepEngine steps;
  std::mutex mutex;  // of what follows
  std::condition_variable changed;
  bool due = false, stopping = false;
  std::deque<std::packaged_task<void()>> work;

  std::mutex mail_mutex;  // of what follows
  std::condition_variable mail_came;
  std::deque<Letter> mail;
  bool no_more_mail = false;

  std::mutex updating;  // the weights
  mutable std::shared_mutex weights_mutex;
  int64_t weights = 0;  // number of those that answer what is added; under weights_mutex
  std::mutex terminating;
  std::thread stepper, postman;
};

void Engine::Parts::run_steps(int threads) {
  tensor::set_threads(threads);
  constexpr double longest_wait = 3600;  // far greater ones do not fit into the clock's type
  const std::optional<double> reset = steps.info().options.scheduler.idle_reset_seconds;
  while (true) {
    // Requests may wait although nothing runs: for resume().
    std::optional<double> seconds = steps.seconds_to_deadline();
    if (reset) seconds = std::min(seconds.value_or(*reset), *reset);
    {
      std::unique_lock lock(mutex);
      const auto ready = [&] { return due || stopping; };
      if (seconds)
        changed.wait_for(lock, std::chrono::duration<double>(std::min(*seconds, longest_wait)), ready);
      else
        changed.wait(lock, ready);
      if (stopping && !due) return;
      due = false;
    }
    do_work();
    while (steps.step()) do_work();
    changed.notify_all();  // wait_until() waits for this
  }
}

void Engine::Parts::between_steps(std::function<void()> asked) {
  std::packaged_task<void()> task(std::move(asked));
  std::future<void> done = task.get_future();
  {
    const std::lock_guard lock(mutex);
    if (stopping) refuse("esurge", "the engine is terminated", "make another one");
    work.push_back(std::move(task));
    due = true;
    changed.notify_all();
  }
  done.get();
}

void Engine::Parts::do_work() {
  std::deque<std::packaged_task<void()>> tasks;
  {
    const std::lock_guard lock(mutex);
    tasks.swap(work);
  }
  for (auto& task : tasks) task();
}

// Calls listeners. A slow one delays the others, but never a step.
void Engine::Parts::deliver() {
  while (true) {
    Letter letter;
    {
      std::unique_lock lock(mail_mutex);
      mail_came.wait(lock, [&] { return !mail.empty() || no_more_mail; });
      if (mail.empty()) return;
      letter = std::move(mail.front());
      mail.pop_front();
    }
    std::optional<RequestOutput> output = letter.box->take();
    if (!output || *letter.failed) continue;
    try {
      (*letter.listener)(std::move(*output));
    } catch (const std::exception& error) {
      log::warning("esurge: a listener failed: ", error.what());
      *letter.failed = true;
    }
  }
}

Engine::Engine(EngineSetup setup) : parts_(std::make_unique<Parts>(std::move(setup))) {
  Parts& p = *parts_;
  p.stepper = std::thread([&p, threads = tensor::threads()] { p.run_steps(threads); });
  p.postman = std::thread([&p] { p.deliver(); });
}

Engine::~Engine() { terminate(); }

void Engine::terminate() {
  Parts& p = *parts_;
  const std::lock_guard alone(p.terminating);
  if (!p.stepper.joinable()) return;
  p.steps.resume();
  p.steps.end();
  {
    const std::lock_guard lock(p.mutex);
    p.due = p.stopping = true;
    p.changed.notify_all();
  }
  p.stepper.join();
  {
    const std::lock_guard lock(p.mail_mutex);
    p.no_more_mail = true;
    p.mail_came.notify_all();
  }
  p.postman.join();
}

RequestId Engine::add(Request request, OnOutput listener) {
  Parts& p = *parts_;
  const Letter letter{std::make_shared<Mailbox>(request.sampling.output_kind),
                      std::make_shared<OnOutput>(std::move(listener)), std::make_shared<std::atomic<bool>>(false)};
  const RequestId id = p.steps.add(std::move(request), [&p, letter](RequestOutput output) {
    if (*letter.failed) throw std::runtime_error("its listener failed");
    letter.box->put(std::move(output));
    const std::lock_guard lock(p.mail_mutex);
    p.mail.push_back(letter);
    p.mail_came.notify_one();
  });
  p.wake();
  return id;
}

void Engine::abort(RequestId id) {
  parts_->steps.abort(id);
  parts_->wake();
}

void Engine::pause() {
  parts_->steps.pause();
  parts_->wake();  // the system gets destroyed pages back in the next step, also if nobody asks for anything
}

void Engine::resume() {
  parts_->steps.resume();
  parts_->wake();
}

void Engine::drain() {
  Parts& p = *parts_;
  p.steps.drain();
  p.wake();
  p.wait_until([&] { return p.steps.requests() == 0; });
}

void Engine::save_prefix_cache(const std::filesystem::path& folder) {
  parts_->between_steps([&] { parts_->steps.save_prefix_cache(folder); });
}

void Engine::reset_prefix_cache() {
  parts_->between_steps([&] { parts_->steps.reset_prefix_cache(); });
}

void Engine::Parts::change_weights(KnownRequests known, const std::function<void()>& change) {
  const std::lock_guard alone(updating);
  {
    const std::lock_guard lock(weights_mutex);
    steps.await_new_weights(known);
    ++weights;
  }
  wake();
  wait_until([&] { return steps.has_left_weights(); });
  between_steps(change);
  wake();
}

void Engine::update_model_weights(const std::function<NewWeights()>& make, KnownRequests known) {
  parts_->change_weights(known, [&] { parts_->steps.take_new_weights(make); });
}

void Engine::change_model_weights(const std::function<std::string()>& change, KnownRequests known) {
  parts_->change_weights(known, [&] { parts_->steps.change_weights(change); });
}

void Engine::release_model_state() {
  parts_->between_steps([&] { parts_->steps.release_model(); });
}

HeldWeights Engine::hold_weights() const {
  HeldWeights out{std::shared_lock(parts_->weights_mutex)};
  out.number = parts_->weights;
  return out;
}

int64_t Engine::load_adapter(const std::string& name, const std::filesystem::path& folder, bool replace) {
  return parts_->new_version([&] { return parts_->steps.load_adapter(name, folder, replace); });
}

int64_t Engine::add_adapter_sum(const std::string& name, models::AdapterSum::Kind kind,
                                const std::vector<models::AdapterSum::Share>& shares) {
  return parts_->new_version([&] { return parts_->steps.add_adapter_sum(name, kind, shares); });
}

void Engine::unload_adapter(const std::string& name) { parts_->steps.unload_adapter(name); }

std::vector<AdapterInfo> Engine::adapters() const { return parts_->steps.adapters(); }

RequestOutput Engine::generate(Request request) {
  std::vector<Request> one;
  one.push_back(std::move(request));
  return std::move(generate(std::move(one)).front());
}

std::vector<RequestOutput> Engine::generate(std::vector<Request> requests) {
  std::vector<std::shared_ptr<Mailbox>> boxes;
  std::vector<RequestId> ids;
  try {
    for (Request& request : requests) {
      if (!request.continuation && !request.pooled) request.sampling.output_kind = OutputKind::final_only;
      const auto box = boxes.emplace_back(std::make_shared<Mailbox>(OutputKind::final_only));
      ids.push_back(
          parts_->steps.add(std::move(request), [box](RequestOutput output) { box->put(std::move(output)); }));
    }
  } catch (...) {
    for (const RequestId id : ids) abort(id);
    throw;
  }
  parts_->wake();
  std::vector<RequestOutput> out;
  for (const auto& box : boxes) out.push_back(box->wait());
  return out;
}

std::vector<generation::TokenScores> Engine::score(const std::vector<generation::ScoreRequest>& requests) {
  std::vector<Request> all;
  for (const generation::ScoreRequest& asked : requests) {
    Request& request = all.emplace_back();
    request.prompt = asked.context;
    request.continuation = asked.continuation;
  }
  std::vector<generation::TokenScores> out;
  for (RequestOutput& output : generate(std::move(all))) {
    if (!output.error.empty()) refuse("score", output.error);
    if (output.scores->each.size() < requests[out.size()].continuation.size())
      refuse("score", str("request ", out.size() + 1, " was aborted"));
    out.push_back(std::move(*output.scores));
  }
  return out;
}

std::vector<std::vector<float>> Engine::encode(std::vector<Request> texts) {
  for (Request& text : texts)
    if (!text.pooled) text.pooled.emplace();
  std::vector<std::vector<float>> out;
  for (RequestOutput& output : generate(std::move(texts))) {
    if (!output.error.empty()) throw std::runtime_error(output.error);
    if (!output.vector) throw std::runtime_error("the text was aborted");
    out.push_back(std::move(*output.vector));
  }
  return out;
}

RequestOutput Engine::stream(Request request, const std::function<bool(const RequestOutput&)>& on_output) {
  const auto box = std::make_shared<Mailbox>(request.sampling.output_kind);
  const RequestId id =
      parts_->steps.add(std::move(request), [box](RequestOutput output) { box->put(std::move(output)); });
  parts_->wake();
  bool wanted = true;
  while (true) {
    RequestOutput output = box->wait();
    if (wanted && !on_output(output) && !output.finished) {
      wanted = false;
      abort(id);
    }
    if (output.finished) return output;
  }
}

EngineMetrics Engine::metrics() const { return parts_->steps.metrics(); }
EngineInfo Engine::info() const { return parts_->steps.info(); }

}  // namespace easydel::esurge
