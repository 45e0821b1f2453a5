#include "easydel/elarge/engine_followers.h"

#include <utility>

#include "easydel/elarge/core.h"

namespace easydel::elarge {

EngineFollowers::~EngineFollowers() {
  if (all_.empty()) return;
  for (const One& one : all_) one.engine->stop();
  join();
  for (size_t i = 0; i < signals.size(); ++i) std::signal(signals[i], before_[i]);
}

void EngineFollowers::add(std::unique_ptr<EngineFollower> engine) {
  const std::lock_guard lock(mutex_);
  if (all_.empty())
    for (size_t i = 0; i < signals.size(); ++i) before_[i] = std::signal(signals[i], SIG_IGN);
  One& one = all_.emplace_back(One{std::move(engine)});
  if (failed_) one.engine->stop();
  one.thread = std::thread([this, &one] {
    try {
      one.engine->follow();
    } catch (...) {
      fail(std::current_exception());
    }
  });
}

void EngineFollowers::join() {
  for (One& one : all_)
    if (one.thread.joinable()) one.thread.join();
}

void EngineFollowers::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (failed_) return;
  failed_ = std::move(error);
  for (const One& one : all_) one.engine->stop();
}

void EngineFollowers::wait() {
  join();
  if (failed_) std::rethrow_exception(failed_);
}

void follow_engine(Session& session) {
  EngineFollowers engines;
  engines.add(session.join_engine());
  engines.wait();
}

}  // namespace easydel::elarge
