#include "easydel/kernels/task_scheduler.h"

#include <algorithm>

namespace easydel::kernels {

thread_local bool inside_task = false;

void TaskScheduler::Prefetcher::prefetch_some() {
  constexpr int64_t line_bytes = 64, bytes_per_call = 16 * line_bytes, bytes_kept_in_l2 = 640 << 10;
  if (const uint32_t newest = scheduler_.announcement_.load(std::memory_order_acquire); newest != announcement_) {
    announcement_ = newest, stream_ = 0, bytes_left_ = bytes_kept_in_l2;
    open_stream();
  }
  while (at_ >= end_) {
    if (stream_ + 1 >= announced_streams || bytes_left_ <= 0) return;
    ++stream_;
    open_stream();
  }
  for (const char* const end = std::min(at_ + bytes_per_call, end_); at_ < end; at_ += line_bytes)
    __builtin_prefetch(at_, 0, 2);
}

void TaskScheduler::Prefetcher::open_stream() {
  const SharedStream& stream = scheduler_.announced_[stream_];
  const char* const data = stream.data.load(std::memory_order_relaxed);
  const int64_t bytes = stream.bytes.load(std::memory_order_relaxed), threads = scheduler_.threads_;
  at_ = data + bytes * thread_ / threads;
  end_ = at_ + std::min(bytes / threads, bytes_left_);
  bytes_left_ -= end_ - at_;
}

void TaskScheduler::run(int64_t tasks, Call call, void* work) {
  if (inside_task || threads_ == 1 || tasks >= int64_t(closed)) {
    for (int64_t i = 0; i < tasks; ++i) call(work, i);
    return;
  }
  const uint64_t run = ++run_ << 32;
  for (int t = 0; t < threads_; ++t) {
    ranges_[t].ticket.store(run | closed, std::memory_order_relaxed);
    ranges_[t].end.store(uint64_t(tasks * (t + 1) / threads_), std::memory_order_release);
  }
  call_ = call, work_ = work, failure_ = nullptr;
  tasks_left_.store(tasks, std::memory_order_relaxed);
  for (int t = 0; t < threads_; ++t)
    ranges_[t].ticket.store(run | uint64_t(tasks * t / threads_), std::memory_order_release);
  if (must_announce_) announce();
  runs_.fetch_add(1);
  runs_.notify_all();  // no system call while nobody sleeps
  take_tasks(0);
  const auto all_done = [&] {
    if (tasks_left_.load(std::memory_order_acquire) == 0) return true;
    caller_prefetcher_.prefetch_some();
    return false;
  };
  if (!caller_spin_.until(all_done)) {
    for (int64_t left; (left = tasks_left_.load(std::memory_order_acquire)) != 0;) tasks_left_.wait(left);
    caller_spin_.woke();
  }
  if (failure_) std::rethrow_exception(failure_);
}

void TaskScheduler::take_tasks(int thread) {
  const InsideTask inside;
  for (int t = 0; t < threads_; ++t) {
    Range& range = ranges_[(thread + t) % threads_];
    int64_t done = 0;
    for (uint64_t ticket = range.ticket.load();;) {
      const uint64_t task = ticket & closed;
      if (task == closed || task >= range.end.load(std::memory_order_acquire)) break;
      if (!range.ticket.compare_exchange_weak(ticket, ticket + 1)) continue;
      try {
        call_(work_, int64_t(task));
      } catch (...) {
        const std::lock_guard lock(failure_mutex_);
        if (!failure_) failure_ = std::current_exception();
      }
      ++done;
      ticket = range.ticket.load();
    }
    if (done > 0 && tasks_left_.fetch_sub(done, std::memory_order_acq_rel) == done) tasks_left_.notify_one();
  }
}

void TaskScheduler::serve(int thread) {
  Spin spin;
  Prefetcher prefetcher(*this, thread);
  for (uint32_t seen = 0; !stop_;) {
    const auto has_new_run = [&] {
      if (runs_.load(std::memory_order_acquire) != seen) return true;
      prefetcher.prefetch_some();
      return false;
    };
    if (!spin.until(has_new_run)) {
      runs_.wait(seen);
      spin.woke();
    }
    seen = runs_.load(std::memory_order_acquire);
    take_tasks(thread);
  }
}

void TaskScheduler::stop() {
  stop_ = true;
  runs_.fetch_add(1);
  runs_.notify_all();
}

void TaskScheduler::restart(int threads) {
  stop_ = false, threads_ = threads;
  rewind();
}

void TaskScheduler::rewind() {
  learned_.resize(position_);
  position_ = 0;
  announce();
}

void TaskScheduler::will_read(const void* data, int64_t bytes) {
  const Stream stream{static_cast<const char*>(data), bytes};
  if (position_ == learned_.size())
    learned_.push_back(stream);
  else
    learned_[position_] = stream;
  ++position_, must_announce_ = true;
}

void TaskScheduler::announce() {
  for (size_t i = 0; i < announced_streams; ++i) {
    const Stream next = position_ + i < learned_.size() ? learned_[position_ + i] : Stream();
    announced_[i].data.store(next.data, std::memory_order_relaxed);
    announced_[i].bytes.store(next.bytes, std::memory_order_relaxed);
  }
  announcement_.fetch_add(1, std::memory_order_release);
  must_announce_ = false;
}

}  // namespace easydel::kernels
