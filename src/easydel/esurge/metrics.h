// What the engine counts and measures. Plain values without torch; not thread-safe: the engine hands out copies.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::esurge {

// Counts observations in buckets.
class Histogram {
 public:
  // `bounds`: the upper limits of all buckets except the last one, ascending; a limit belongs to its bucket. They must
  // outlive the histogram.
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}

  void observe(double value, int64_t times = 1);
  std::span<const double> bounds() const { return bounds_; }
  std::span<const int64_t> counts() const { return counts_; }  // by bucket; the last one is above all bounds
  int64_t count() const { return count_; }
  double sum() const { return sum_; }
  double mean() const { return count_ > 0 ? sum_ / double(count_) : 0; }
  // The upper limit of the bucket with this quantile (0 to 1); beyond all bounds the greatest value observed. 0 without
  // observations.
  double quantile(double share) const;

 private:
  std::span<const double> bounds_;
  std::vector<int64_t> counts_;
  int64_t count_ = 0;
  double sum_ = 0, greatest_ = 0;
};

// Events per second over the last `window` seconds.
class Rate {
 public:
  explicit Rate(double window = 10) : window_(window) {}
  // `now`: seconds on a clock that does not go back.
  void add(double now, int64_t events);
  // Of a shorter history: over the time since the first event, but at least a second.
  double per_second(double now);

 private:
  void forget(double now);

  double window_;
  std::deque<std::pair<double, int64_t>> events_;
  double first_ = -1;
  int64_t sum_ = 0;
};

std::span<const double> seconds_buckets();      // 0.001 to 600
std::span<const double> token_count_buckets();  // 1 to 65536
std::span<const double> entropy_buckets();      // nats, 0.01 to 12
std::span<const double> few_buckets();          // counts that are often 0, to 64

struct EngineMetrics {
  // Now.
  int64_t batch_size = 0;  // sequences of the last step
  int64_t running_requests = 0, waiting_requests = 0;
  int64_t cache_pages_used = 0, cache_pages_total = 0;
  int64_t cache_bytes_used = 0, cache_bytes_total = 0;
  double tokens_per_second = 0;  // generated, over the last ten seconds

  // Since the start.
  int64_t steps = 0;
  int64_t requests_finished = 0, requests_aborted = 0, requests_failed = 0, requests_refused = 0;
  int64_t prompt_tokens = 0, cached_prompt_tokens = 0;  // of admitted requests
  int64_t generated_tokens = 0;
  int64_t preemptions = 0, recomputed_tokens = 0;
  int64_t draft_tokens = 0, accepted_draft_tokens = 0;
  int64_t cache_evictions = 0, cache_resets = 0;

  // Seconds.
  Histogram queue_seconds{seconds_buckets()};        // from arrival to admission
  Histogram prefill_seconds{seconds_buckets()};      // from admission to the first token
  Histogram first_token_seconds{seconds_buckets()};  // from arrival
  Histogram between_tokens_seconds{seconds_buckets()};
  Histogram request_seconds{seconds_buckets()};  // from arrival to the end
  Histogram step_seconds{seconds_buckets()};
  Histogram mask_seconds{seconds_buckets()};  // making one mask of constrained output
  // Tokens.
  Histogram step_tokens{token_count_buckets()};
  Histogram request_prompt_tokens{token_count_buckets()}, request_generated_tokens{token_count_buckets()};
  Histogram request_recomputed_tokens{token_count_buckets()};  // of requests that were preempted
  Histogram request_preemptions{few_buckets()};
  Histogram accepted_drafts{few_buckets()};  // of the drafts of a sequence in a step
  // With esurge.sampler_metrics, of each row that a token is chosen from.
  Histogram entropy{entropy_buckets()};  // nats
  Histogram chosen_negative_logprob{entropy_buckets()};

  double cache_hit_rate() const;   // of prompt tokens; 0 before the first
  double acceptance_rate() const;  // of draft tokens; 0 before the first
};

// {"esurge_running_requests": 3, ...}; a histogram is a map of count, sum, mean, p50, p90 and p99.
Value metrics_document(const EngineMetrics& metrics);
// Prometheus' text format, version 0.0.4, of engines with the names of their models, which are the label model_name.
std::string metrics_text(const std::vector<std::pair<std::string, EngineMetrics>>& engines);

}  // namespace easydel::esurge
