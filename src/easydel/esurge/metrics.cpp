#include "easydel/esurge/metrics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "easydel/base/error.h"
#include "easydel/esurge/metric_table.h"

namespace easydel::esurge {
namespace {

using M = EngineMetrics;
constexpr std::array all_metrics = {
    gauge<&M::batch_size>("esurge_batch_size", "Sequences in the last step."),
    gauge<&M::running_requests>("esurge_running_requests", "Requests that are being computed."),
    gauge<&M::waiting_requests>("esurge_waiting_requests", "Requests that wait for admission."),
    gauge<&M::cache_pages_used>("esurge_cache_pages_used", "Pages of the KV cache with content."),
    gauge<&M::cache_pages_total>("esurge_cache_pages_total", "Pages that the KV cache can have."),
    gauge<&M::cache_bytes_used>("esurge_cache_bytes_used", "Bytes of the KV cache with content."),
    gauge<&M::cache_bytes_total>("esurge_cache_bytes_total", "Bytes that the KV cache can have."),
    Metric{"esurge_cache_hit_rate", "Share of prompt tokens that the prefix cache had.", MetricKind::gauge,
           [](const M& m) { return m.cache_hit_rate(); }, nullptr},
    gauge<&M::tokens_per_second>("esurge_tokens_per_second", "Tokens generated per second in the last ten seconds."),
    counter<&M::steps>("esurge_steps_total", "Steps."),
    counter<&M::requests_finished>("esurge_requests_finished_total", "Requests that ended by a stop or their length."),
    counter<&M::requests_aborted>("esurge_requests_aborted_total", "Requests that were aborted or timed out."),
    counter<&M::requests_failed>("esurge_requests_failed_total", "Requests that ended with an error."),
    counter<&M::requests_refused>("esurge_requests_refused_total", "Requests that were not accepted."),
    counter<&M::prompt_tokens>("esurge_prompt_tokens_total", "Prompt tokens of admitted requests."),
    counter<&M::cached_prompt_tokens>("esurge_cached_prompt_tokens_total", "Prompt tokens that the prefix cache had."),
    counter<&M::generated_tokens>("esurge_generated_tokens_total", "Generated tokens."),
    counter<&M::preemptions>("esurge_preemptions_total", "Preemptions of sequences."),
    counter<&M::recomputed_tokens>("esurge_recomputed_tokens_total", "Tokens computed again after preemptions."),
    counter<&M::draft_tokens>("esurge_draft_tokens_total", "Speculated tokens that were verified."),
    counter<&M::accepted_draft_tokens>("esurge_accepted_draft_tokens_total", "Speculated tokens that were accepted."),
    counter<&M::cache_evictions>("esurge_cache_evictions_total", "Evictions from the prefix cache."),
    counter<&M::cache_resets>("esurge_cache_resets_total", "Times that the idle prefix cache was dropped."),
    histogram<&M::queue_seconds>("esurge_queue_seconds", "Time from arrival to admission."),
    histogram<&M::prefill_seconds>("esurge_prefill_seconds", "Time from admission to the first token."),
    histogram<&M::first_token_seconds>("esurge_time_to_first_token_seconds", "Time from arrival to the first token."),
    histogram<&M::between_tokens_seconds>("esurge_time_between_tokens_seconds", "Time between tokens of a sequence."),
    histogram<&M::request_seconds>("esurge_request_seconds", "Time from arrival to the end of a request."),
    histogram<&M::step_seconds>("esurge_step_seconds", "Time of a step."),
    histogram<&M::mask_seconds>("esurge_mask_seconds", "Time to make a mask of constrained output."),
    histogram<&M::step_tokens>("esurge_step_tokens", "Tokens in a step."),
    histogram<&M::request_prompt_tokens>("esurge_request_prompt_tokens", "Prompt tokens of a request."),
    histogram<&M::request_generated_tokens>("esurge_request_generated_tokens", "Generated tokens of a request."),
    histogram<&M::request_recomputed_tokens>("esurge_request_recomputed_tokens",
                                             "Tokens computed again of a request that was preempted."),
    histogram<&M::request_preemptions>("esurge_request_preemptions", "Preemptions of a request."),
    histogram<&M::accepted_drafts>("esurge_accepted_drafts", "Accepted tokens of those speculated for a step."),
    histogram<&M::entropy>("esurge_sampler_entropy_nats", "Entropy of the model's distribution."),
    histogram<&M::chosen_negative_logprob>("esurge_sampler_chosen_negative_logprob",
                                           "Negative log-probability of the chosen token."),
};

std::string number_text(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return std::to_string(int64_t(value));
  return Value::number(value).scalar;
}

std::string escaped(std::string_view label) {
  std::string out;
  for (const char c : label)
    if (c == '\n')
      out += "\\n";
    else if (c == '"' || c == '\\')
      out += {'\\', c};
    else
      out += c;
  return out;
}

}  // namespace

void Histogram::observe(double value, int64_t times) {
  const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  counts_[size_t(bucket)] += times;
  greatest_ = count_ == 0 ? value : std::max(greatest_, value);
  count_ += times;
  sum_ += value * double(times);
}

double Histogram::quantile(double share) const {
  if (count_ == 0) return 0;
  const auto rank = std::clamp<int64_t>(int64_t(std::ceil(share * double(count_))), 1, count_);
  int64_t seen = 0;
  for (size_t i = 0; i < bounds_.size(); ++i)
    if ((seen += counts_[i]) >= rank) return bounds_[i];
  return greatest_;
}

void Rate::forget(double now) {
  while (!events_.empty() && events_.front().first <= now - window_) {
    sum_ -= events_.front().second;
    events_.pop_front();
  }
}

void Rate::add(double now, int64_t events) {
  forget(now);
  if (first_ < 0) first_ = now;
  events_.emplace_back(now, events);
  sum_ += events;
}

double Rate::per_second(double now) {
  forget(now);
  if (first_ < 0) return 0;
  return double(sum_) / std::clamp(now - first_, std::min(1.0, window_), window_);
}

std::span<const double> seconds_buckets() {
  static constexpr std::array bounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,  0.25, 0.5,
                                        1.,    2.5,    5.,    10.,  30.,   60.,  120., 300., 600.};
  return bounds;
}

std::span<const double> token_count_buckets() {
  static constexpr std::array bounds = {1.,   2.,    4.,    8.,    16.,   32.,    64.,    128.,  256.,
                                        512., 1024., 2048., 4096., 8192., 16384., 32768., 65536.};
  return bounds;
}

std::span<const double> entropy_buckets() {
  static constexpr std::array bounds = {0.01, 0.03, 0.1, 0.3, 0.5, 1., 1.5, 2., 3., 4., 5., 6., 8., 10., 12.};
  return bounds;
}

std::span<const double> few_buckets() {
  static constexpr std::array bounds = {0., 1., 2., 3., 4., 6., 8., 12., 16., 32., 64.};
  return bounds;
}

double EngineMetrics::cache_hit_rate() const {
  return prompt_tokens > 0 ? double(cached_prompt_tokens) / double(prompt_tokens) : 0;
}

double EngineMetrics::acceptance_rate() const {
  return draft_tokens > 0 ? double(accepted_draft_tokens) / double(draft_tokens) : 0;
}

Value metrics_document(const EngineMetrics& metrics) {
  const auto number = [](double value) {
    return value == std::floor(value) && std::abs(value) < 1e15 ? Value::integer(int64_t(value)) : Value::number(value);
  };
  Value out = Value::map();
  for (const Metric& metric : all_metrics) {
    if (metric.kind != MetricKind::histogram) {
      out.set(metric.name, number(metric.number(metrics)));
      continue;
    }
    const Histogram& values = *metric.histogram(metrics);
    Value summary = Value::map();
    summary.set("count", Value::integer(values.count()));
    summary.set("sum", number(values.sum()));
    summary.set("mean", number(values.mean()));
    summary.set("p50", number(values.quantile(0.5)));
    summary.set("p90", number(values.quantile(0.9)));
    summary.set("p99", number(values.quantile(0.99)));
    out.set(metric.name, std::move(summary));
  }
  return out;
}

std::string metrics_text(const std::vector<std::pair<std::string, EngineMetrics>>& engines) {
  return metrics_text(all_metrics, engines);
}

std::string metrics_text(std::span<const Metric> table,
                         const std::vector<std::pair<std::string, EngineMetrics>>& engines) {
  static constexpr std::string_view kinds[] = {"gauge", "counter", "histogram"};
  std::string out;
  for (const Metric& metric : table) {
    out +=
        str("# HELP ", metric.name, " ", metric.help, "\n# TYPE ", metric.name, " ", kinds[size_t(metric.kind)], "\n");
    for (const auto& [model, metrics] : engines) {
      const std::string label = str("model_name=\"", escaped(model), "\"");
      if (metric.kind != MetricKind::histogram) {
        out += str(metric.name, "{", label, "} ", number_text(metric.number(metrics)), "\n");
        continue;
      }
      const Histogram& values = *metric.histogram(metrics);
      int64_t seen = 0;
      for (size_t i = 0; i < values.counts().size(); ++i) {
        seen += values.counts()[i];
        const std::string bound = i < values.bounds().size() ? number_text(values.bounds()[i]) : "+Inf";
        out += str(metric.name, "_bucket{", label, ",le=\"", bound, "\"} ", seen, "\n");
      }
      out += str(metric.name, "_sum{", label, "} ", number_text(values.sum()), "\n");
      out += str(metric.name, "_count{", label, "} ", values.count(), "\n");
    }
  }
  return out;
}

}  // namespace easydel::esurge
