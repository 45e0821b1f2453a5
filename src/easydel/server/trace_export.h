// Sends a trace of each request to a collector, as OTLP over HTTP with JSON bodies: a span of the request, and below it
// those of waiting, reading the prompt and generating.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace easydel::server {

class Call;

// The ids of a W3C traceparent header: "00-<trace>-<span>-<flags>".
struct TraceParent {
  std::string trace_id, span_id;  // 32 and 16 hex digits
  bool sampled = false;
};
// nullopt: the text is not a traceparent, or an id is all zeros.
std::optional<TraceParent> parse_trace_parent(std::string_view text);

// A part of a request's time, in nanoseconds since 1970.
struct TraceSpan {
  std::string name;
  int64_t begin = 0, end = 0;
};

// The spans of a request that ended at `end` (nanoseconds since 1970) as JSON objects, with a comma between them.
// Empty: its traceparent says that it is not sampled.
std::string trace_spans(const Call& call, int64_t end);

// Thread-safe. What the collector does not take is dropped, and never delays a request.
class TraceExporter {
 public:
  using Post = std::function<void(const std::string& body)>;  // throws what went wrong

  // `post`: in place of a request to `endpoint`, for tests. An endpoint without a path gets "/v1/traces".
  explicit TraceExporter(const std::string& endpoint, Post post = {});
  ~TraceExporter();  // sends what is left, unless the collector does not answer
  TraceExporter(const TraceExporter&) = delete;
  TraceExporter& operator=(const TraceExporter&) = delete;

  void add(const Call& call);
  void add_spans(std::string spans);
  int64_t dropped() const { return dropped_; }

 private:
  void run();
  void send(const std::vector<std::string>& batch);

  Post post_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> waiting_;  // the spans of a request each
  bool ending_ = false, sending_ = false;
  bool failing_ = false;            // of the thread
  std::atomic<bool> stop_ = false;  // ends a request to a collector that does not answer
  std::atomic<int64_t> dropped_ = 0;
  std::thread thread_;
};

}  // namespace easydel::server
