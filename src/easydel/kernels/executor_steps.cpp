#include "easydel/kernels/executor_steps.h"

#include <algorithm>

namespace easydel::kernels {

thread_local bool inside_a_part = false;

void Steps::Ahead::ask() {
  constexpr int64_t line = 64, together = 16 * line, near = 640 << 10;
  if (const uint32_t told = steps_.told_.load(std::memory_order_acquire); told != told_) {
    told_ = told, stream_ = 0, left_ = near;
    open();
  }
  while (at_ >= end_) {
    if (stream_ + 1 >= seen_ahead || left_ <= 0) return;
    ++stream_;
    open();
  }
  for (const char* const end = std::min(at_ + together, end_); at_ < end; at_ += line) __builtin_prefetch(at_, 0, 2);
}

void Steps::Ahead::open() {
  const char* const data = steps_.next_[stream_].data.load(std::memory_order_relaxed);
  const int64_t bytes = steps_.next_[stream_].bytes.load(std::memory_order_relaxed), threads = steps_.threads_;
  at_ = data + bytes * thread_ / threads;
  end_ = at_ + std::min(bytes / threads, left_);
  left_ -= end_ - at_;
}

void Steps::run(int64_t parts, Call call, void* work) {
  if (inside_a_part || threads_ == 1 || parts >= int64_t(closed)) {
    for (int64_t i = 0; i < parts; ++i) call(work, i);
    return;
  }
  const uint64_t step = ++step_ << 32;
  for (int t = 0; t < threads_; ++t) {
    shares_[t].ticket.store(step | closed, std::memory_order_relaxed);
    shares_[t].end.store(uint64_t(parts * (t + 1) / threads_), std::memory_order_release);
  }
  call_ = call, work_ = work, failure_ = nullptr;
  left_.store(parts, std::memory_order_relaxed);
  for (int t = 0; t < threads_; ++t)
    shares_[t].ticket.store(step | uint64_t(parts * t / threads_), std::memory_order_release);
  if (news_) tell();
  steps_.fetch_add(1);
  steps_.notify_all();  // no system call while nobody sleeps
  take_parts(0);
  const auto all_done = [&] {
    if (left_.load(std::memory_order_acquire) == 0) return true;
    caller_ahead_.ask();
    return false;
  };
  if (!caller_.until(all_done)) {
    for (int64_t left; (left = left_.load(std::memory_order_acquire)) != 0;) left_.wait(left);
    caller_.woke();
  }
  if (failure_) std::rethrow_exception(failure_);
}

void Steps::take_parts(int thread) {
  inside_a_part = true;
  for (int t = 0; t < threads_; ++t) {
    Share& share = shares_[(thread + t) % threads_];
    int64_t done = 0;
    for (uint64_t ticket = share.ticket.load();;) {
      const uint64_t part = ticket & closed;
      if (part == closed || part >= share.end.load(std::memory_order_acquire)) break;
      if (!share.ticket.compare_exchange_weak(ticket, ticket + 1)) continue;
      try {
        call_(work_, int64_t(part));
      } catch (...) {
        const std::lock_guard one(failures_);
        if (!failure_) failure_ = std::current_exception();
      }
      ++done;
      ticket = share.ticket.load();
    }
    if (done > 0 && left_.fetch_sub(done, std::memory_order_acq_rel) == done) left_.notify_one();
  }
  inside_a_part = false;
}

void Steps::serve(int thread) {
  Spin spin;
  Ahead ahead(*this, thread);
  for (uint32_t seen = 0; !stop_;) {
    const auto comes = [&] {
      if (steps_.load(std::memory_order_acquire) != seen) return true;
      ahead.ask();
      return false;
    };
    if (!spin.until(comes)) {
      steps_.wait(seen);
      spin.woke();
    }
    seen = steps_.load(std::memory_order_acquire);
    take_parts(thread);
  }
}

void Steps::stop() {
  stop_ = true;
  steps_.fetch_add(1);
  steps_.notify_all();
}

void Steps::restart(int threads) {
  stop_ = false, threads_ = threads;
  order_.resize(at_);
  at_ = 0;
  tell();
}

void Steps::reads(const void* data, int64_t bytes) {
  const Stream stream{static_cast<const char*>(data), bytes};
  if (at_ == order_.size())
    order_.push_back(stream);
  else
    order_[at_] = stream;
  ++at_, news_ = true;
}

void Steps::tell() {
  for (size_t i = 0; i < seen_ahead; ++i) {
    const Stream comes = at_ + i < order_.size() ? order_[at_ + i] : Stream();
    next_[i].data.store(comes.data, std::memory_order_relaxed);
    next_[i].bytes.store(comes.bytes, std::memory_order_relaxed);
  }
  told_.fetch_add(1, std::memory_order_release);
  news_ = false;
}

}  // namespace easydel::kernels
