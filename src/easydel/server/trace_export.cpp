#include "easydel/server/trace_export.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <random>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/json_text.h"
#include "easydel/base/log.h"
#include "easydel/hub/http.h"
#include "easydel/server/api.h"

namespace easydel::server {
namespace {

constexpr size_t max_waiting = 4096, max_batch = 256;
constexpr std::chrono::seconds send_interval{1}, patience_at_the_end{2};
// Numbers of OTLP's protocol.
constexpr int kind_internal = 1, kind_server = 2, status_error = 2;

std::string random_id(size_t digits) {
  thread_local std::mt19937_64 random{std::random_device()()};
  std::string out(digits, '0');
  for (char& c : out) c = "0123456789abcdef"[random() & 15];
  out.back() = 'f';  // never all zeros
  return out;
}

std::string text_attribute(std::string_view key, std::string_view value) {
  return str(R"({"key":)", json_text(key), R"(,"value":{"stringValue":)", json_text(value), "}}");
}

std::string number_attribute(std::string_view key, int64_t value) {
  // OTLP writes 64-bit integers as text.
  return str(R"({"key":)", json_text(key), R"(,"value":{"intValue":")", value, "\"}}");
}

std::string attributes_of(const Call& call) {
  const RequestRecord& record = call.record;
  std::string out = text_attribute("http.request.method", call.route().method) + "," +
                    text_attribute("http.route", call.route().path) + "," +
                    number_attribute("http.response.status_code", call.status()) + "," +
                    text_attribute("easydel.request_id", call.id());
  if (record.model.empty()) return out;
  out += "," + text_attribute("gen_ai.request.model", record.model) + "," +
         number_attribute("gen_ai.usage.input_tokens", record.prompt_tokens) + "," +
         number_attribute("gen_ai.usage.output_tokens", record.completion_tokens) + "," +
         number_attribute("easydel.cached_tokens", record.cached_tokens);
  if (!record.finish_reason.empty())
    out += str(R"(,{"key":"gen_ai.response.finish_reasons","value":{"arrayValue":{"values":[{"stringValue":)",
               json_text(record.finish_reason), "}]}}}");
  return out;
}

std::string span_json(const TraceSpan& span, const std::string& trace, const std::string& id, const std::string& parent,
                      int kind, const std::string& more) {
  return str(R"({"traceId":")", trace, R"(","spanId":")", id, "\"",
             parent.empty() ? "" : R"(,"parentSpanId":")" + parent + "\"", R"(,"name":)", json_text(span.name),
             R"(,"kind":)", kind, R"(,"startTimeUnixNano":")", span.begin, R"(","endTimeUnixNano":")", span.end, "\"",
             more, "}");
}

int64_t nanoseconds(double seconds) { return int64_t(seconds * 1e9); }

// Waiting for the engine, reading the prompt, generating; as far as the request came.
std::vector<TraceSpan> stages_of(const RequestRecord& record, int64_t begin, int64_t end) {
  std::vector<TraceSpan> out;
  if (!record.engine_seconds || !record.queue_seconds) return out;
  const int64_t arrived = begin + nanoseconds(*record.engine_seconds);
  const int64_t admitted = std::min(end, arrived + nanoseconds(*record.queue_seconds));
  out.push_back({"queue", arrived, admitted});
  if (!record.first_token_seconds) return out;
  const int64_t first = std::clamp(arrived + nanoseconds(*record.first_token_seconds), admitted, end);
  out.push_back({"prefill", admitted, first});
  out.push_back({"decode", first, end});
  return out;
}

std::string url_of(const std::string& endpoint) {
  const size_t host = endpoint.find("://") + 3;
  const size_t path = endpoint.find('/', host);
  if (path != std::string::npos && path + 1 < endpoint.size()) return endpoint;
  return endpoint.substr(0, path) + "/v1/traces";
}

}  // namespace

std::optional<TraceParent> parse_trace_parent(std::string_view text) {
  constexpr std::string_view form = "hh-hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-hh";
  const bool formed = std::ranges::equal(text, form, [](char c, char expected) {
    return expected == '-' ? c == '-' : (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (!formed) return std::nullopt;
  TraceParent out{std::string(text.substr(3, 32)), std::string(text.substr(36, 16))};
  const auto all_zeros = [](const std::string& id) { return id.find_first_not_of('0') == std::string::npos; };
  if (all_zeros(out.trace_id) || all_zeros(out.span_id)) return std::nullopt;
  // The lowest bit of the flags.
  out.sampled = std::string_view("13579bdf").find(text.back()) != std::string_view::npos;
  return out;
}

std::string trace_spans(const Call& call, int64_t end) {
  const std::string* const header = call.request().header("traceparent");
  const std::optional<TraceParent> parent = header ? parse_trace_parent(*header) : std::nullopt;
  if (parent && !parent->sampled) return "";
  const std::string trace = parent ? parent->trace_id : random_id(32), id = random_id(16);
  const int64_t begin = end - nanoseconds(call.seconds());
  const std::string status = call.status() >= 500 ? str(R"(,"status":{"code":)", status_error, "}") : "";
  std::string out =
      span_json({str(call.route().method, " ", call.route().path), begin, end}, trace, id,
                parent ? parent->span_id : "", kind_server, R"(,"attributes":[)" + attributes_of(call) + "]" + status);
  for (const TraceSpan& stage : stages_of(call.record, begin, end))
    out += "," + span_json(stage, trace, random_id(16), id, kind_internal, "");
  return out;
}

TraceExporter::TraceExporter(const std::string& endpoint, Post post) : post_(std::move(post)) {
  if (!post_)
    post_ = [this, url = url_of(endpoint)](const std::string& body) {
      const hub::Response answer = hub::perform({.method = "POST",
                                                 .url = url,
                                                 .headers = {"Content-Type: application/json"},
                                                 .body = body,
                                                 .to_other_hosts = false,
                                                 .stop = &stop_});
      check(answer.status / 100 == 2, url, " answers ", answer.status);
    };
  thread_ = std::thread([this] { run(); });
}

TraceExporter::~TraceExporter() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience_at_the_end, [this] { return waiting_.empty() && !sending_; });
  }
  stop_ = true;
  thread_.join();
}

void TraceExporter::add(const Call& call) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string spans = trace_spans(call, std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  if (!spans.empty()) add_spans(std::move(spans));
}

void TraceExporter::add_spans(std::string spans) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= max_waiting) return void(++dropped_);
    waiting_.push_back(std::move(spans));
  }
  changed_.notify_all();
}

void TraceExporter::run() {
  while (true) {
    std::vector<std::string> batch;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, send_interval, [this] { return ending_ || waiting_.size() >= max_batch; });
      if (waiting_.empty() && ending_) return;
      const auto count = int64_t(std::min(waiting_.size(), max_batch));
      batch.assign(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(waiting_.begin() + count));
      waiting_.erase(waiting_.begin(), waiting_.begin() + count);
      sending_ = !batch.empty();
    }
    if (!batch.empty()) send(batch);
    {
      const std::lock_guard lock(mutex_);
      sending_ = false;
    }
    changed_.notify_all();
  }
}

void TraceExporter::send(const std::vector<std::string>& batch) {
  std::string spans;
  for (const std::string& one : batch) spans += (spans.empty() ? "" : ",") + one;
  const std::string body =
      str(R"({"resourceSpans":[{"resource":{"attributes":[)", text_attribute("service.name", "easydel"), ",",
          text_attribute("service.version", EASYDEL_VERSION),
          R"(]},"scopeSpans":[{"scope":{"name":"easydel.serve"},"spans":[)", spans, "]}]}]}");
  try {
    post_(body);
    if (std::exchange(failing_, false)) log::info("serve: the collector of traces answers again");
  } catch (const std::exception& error) {
    dropped_ += int64_t(batch.size());
    if (!std::exchange(failing_, true)) log::warning("serve: traces are not sent: ", error.what());
  }
}

}  // namespace easydel::server
