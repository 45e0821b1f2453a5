// What the engine measures, and how it is written.
#include "easydel/esurge/metrics.h"

#include <gtest/gtest.h>

#include <array>

namespace easydel::test {
namespace {

using esurge::EngineMetrics;
using esurge::Histogram;
using esurge::Rate;

TEST(Metrics, AHistogramCountsEachValueOnce) {
  static constexpr std::array bounds = {1., 2., 4.};
  Histogram histogram(bounds);
  EXPECT_EQ(histogram.quantile(0.5), 0);
  for (const double value : {0.5, 1., 1.5, 3., 9.}) histogram.observe(value);
  EXPECT_EQ(std::vector(histogram.counts().begin(), histogram.counts().end()), (std::vector<int64_t>{2, 1, 1, 1}));
  EXPECT_EQ(histogram.count(), 5);
  EXPECT_EQ(histogram.sum(), 15);
  EXPECT_EQ(histogram.mean(), 3);
  EXPECT_EQ(histogram.quantile(0.4), 1);
  EXPECT_EQ(histogram.quantile(0.5), 2);
  EXPECT_EQ(histogram.quantile(0.8), 4);
  EXPECT_EQ(histogram.quantile(1), 9) << "beyond the bounds the greatest value";
  histogram.observe(2, 3);
  EXPECT_EQ(histogram.counts()[1], 4);
  EXPECT_EQ(histogram.count(), 8);
}

TEST(Metrics, ARateForgetsWhatIsOlderThanItsWindow) {
  Rate rate(10);
  EXPECT_EQ(rate.per_second(3), 0);
  rate.add(5, 20);
  EXPECT_EQ(rate.per_second(5), 20) << "of less than a second: as if it were one";
  rate.add(9, 40);
  EXPECT_EQ(rate.per_second(9), 15) << "60 events in the 4 seconds since the first";
  EXPECT_EQ(rate.per_second(15), 4) << "40 events in the last 10 seconds";
  EXPECT_EQ(rate.per_second(19), 0);
}

TEST(Metrics, AreWrittenByUpstreamsNames) {
  EngineMetrics metrics;
  metrics.running_requests = 3;
  metrics.prompt_tokens = 40, metrics.cached_prompt_tokens = 10;
  metrics.queue_seconds.observe(0.002);
  const Value document = metrics_document(metrics);
  for (const char* name :
       {"esurge_batch_size", "esurge_running_requests", "esurge_waiting_requests", "esurge_cache_hit_rate",
        "esurge_cache_pages_used", "esurge_cache_pages_total", "esurge_tokens_per_second"})
    EXPECT_TRUE(document.find(name)) << name;
  EXPECT_EQ(document.find("esurge_running_requests")->as_int(), 3);
  EXPECT_EQ(document.find("esurge_cache_hit_rate")->as_double(), 0.25);
  EXPECT_EQ(document.find("esurge_queue_seconds")->find("p99")->as_double(), 0.0025);

  const std::string text = esurge::metrics_text({{"a \"b\"", metrics}});
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(
      has("# HELP esurge_running_requests Requests that are being computed.\n"
          "# TYPE esurge_running_requests gauge\n"
          "esurge_running_requests{model_name=\"a \\\"b\\\"\"} 3\n"));
  EXPECT_TRUE(has("esurge_cache_hit_rate{model_name=\"a \\\"b\\\"\"} 0.25\n"));
  EXPECT_TRUE(
      has("# TYPE esurge_queue_seconds histogram\n"
          "esurge_queue_seconds_bucket{model_name=\"a \\\"b\\\"\",le=\"0.001\"} 0\n"
          "esurge_queue_seconds_bucket{model_name=\"a \\\"b\\\"\",le=\"0.0025\"} 1\n"));
  EXPECT_TRUE(
      has("esurge_queue_seconds_bucket{model_name=\"a \\\"b\\\"\",le=\"+Inf\"} 1\n"
          "esurge_queue_seconds_sum{model_name=\"a \\\"b\\\"\"} 0.002\n"
          "esurge_queue_seconds_count{model_name=\"a \\\"b\\\"\"} 1\n"));
}

}  // namespace
}  // namespace easydel::test
