#include "easydel/esurge/scheduler_trace.h"

#include <atomic>
#include <cstdlib>
#include <string>
#include <utility>

#include "easydel/base/error.h"

namespace easydel::esurge {
namespace {

Value integers(const auto& numbers) {
  Value out = Value::list();
  for (const auto number : numbers) out.items.push_back(Value::integer(int64_t(number)));
  return out;
}

Value one(std::string_view key, Value value) {
  Value out = Value::map();
  out.set(key, std::move(value));
  return out;
}

Value plan_document(const StepPlan& plan) {
  Value entries = Value::list(), out = Value::map();
  for (const StepEntry& entry : plan.entries)
    entries.items.push_back(integers(std::initializer_list<int64_t>{entry.id.request, entry.id.choice, entry.begin,
                                                                    entry.tokens, entry.drafts, entry.draws}));
  out.set("entries", std::move(entries));
  Value preempted = Value::list();
  for (const SequenceId& id : plan.preempted)
    preempted.items.push_back(integers(std::initializer_list<int64_t>{id.request, id.choice}));
  out.set("preempted", std::move(preempted));
  return out;
}

}  // namespace

std::unique_ptr<SchedulerTrace> SchedulerTrace::from_environment() {
  const char* const path = std::getenv("EASYDEL_ESURGE_TRACE");
  if (!path || !*path) return nullptr;
  static std::atomic<int> schedulers = 0;
  const int number = ++schedulers;
  return std::make_unique<SchedulerTrace>(number == 1 ? std::string(path) : str(path, ".", number));
}

SchedulerTrace::SchedulerTrace(const std::filesystem::path& path) : file_((files::write(path, ""), path)) {}

void SchedulerTrace::begin(const SchedulerConfig& config, const CacheLayout& layout, int64_t budget_bytes) {
  Value out = one("call", Value::text("scheduler"));
  each_limit(config, [&](std::string_view name, int64_t limit) { out.set(name, Value::integer(limit)); });
  out.set("priority", Value::boolean(config.policy == SchedulingPolicy::priority));
  out.set("prefix_caching", Value::boolean(config.prefix_caching));
  out.set("window_aware_admission", Value::boolean(config.window_aware_admission));
  out.set("idle_reset_seconds", config.idle_reset_seconds ? Value::number(*config.idle_reset_seconds) : Value());
  out.set("idle_reset_min_interval", Value::number(config.idle_reset_min_interval));
  out.set("shared_text_tokens", config.shared_text_tokens ? Value::integer(*config.shared_text_tokens) : Value());
  out.set("page_size", Value::integer(layout.page_size));
  out.set("roles_matter", Value::boolean(layout.roles_matter));
  Value groups = Value::list();
  for (const CacheGroup& group : layout.groups) {
    Value entry = one("kind", Value::integer(int64_t(group.kind)));
    entry.set("page_bytes", Value::integer(group.page_bytes));
    entry.set("span", Value::integer(group.span));
    groups.items.push_back(std::move(entry));
  }
  out.set("groups", std::move(groups));
  out.set("budget", Value::integer(budget_bytes));
  line(out);
}

void SchedulerTrace::add(const SchedulerRequest& request, RequestId id) {
  Value out = one("call", Value::text("add"));
  out.set("id", Value::integer(id));
  out.set("prompt", integers(request.prompt));
  out.set("choices", Value::integer(request.choices));
  out.set("max_tokens", Value::integer(request.max_tokens));
  out.set("priority", Value::integer(request.priority));
  const CacheRoot& root = request.root;
  out.set("root", Value::list());
  for (const std::string& part : {root.weights, root.adapter, root.format, root.salt})
    out.find("root")->items.push_back(Value::text(part));
  out.set("adapter_version", Value::integer(root.adapter_version));
  out.set("frequency_class", Value::integer(root.frequency_class));
  out.set("part", Value::integer(root.part));
  out.set("deadline", request.deadline ? Value::number(*request.deadline) : Value());
  out.set("max_cached_tokens", Value::integer(request.max_cached_tokens));
  out.set("beams", Value::boolean(request.beams));
  out.set("prompt_logprobs", request.prompt_scores ? Value::integer(request.prompt_scores->count) : Value());
  line(out);
}

void SchedulerTrace::propose(SequenceId id, int64_t drafts) {
  Value out = one("call", Value::text("propose"));
  out.set("request", Value::integer(id.request));
  out.set("choice", Value::integer(id.choice));
  out.set("drafts", Value::integer(drafts));
  line(out);
}

void SchedulerTrace::abort(RequestId id) {
  Value out = one("call", Value::text("abort"));
  out.set("request", Value::integer(id));
  line(out);
}

void SchedulerTrace::stop(RequestId id) {
  Value out = one("call", Value::text("stop"));
  out.set("request", Value::integer(id));
  line(out);
}

void SchedulerTrace::continue_beams(RequestId id, std::span<const BeamStep> steps) {
  Value out = one("call", Value::text("continue_beams"));
  out.set("request", Value::integer(id));
  std::vector<int64_t> parents;
  std::vector<TokenId> tokens;
  for (const auto& [parent, token] : steps) parents.push_back(parent), tokens.push_back(token);
  out.set("parents", integers(parents));
  out.set("tokens", integers(tokens));
  line(out);
}

void SchedulerTrace::pause(bool destroy_pages) {
  Value out = one("call", Value::text("pause"));
  out.set("destroy_pages", Value::boolean(destroy_pages));
  line(out);
}

void SchedulerTrace::call(std::string_view name) { line(one("call", Value::text(std::string(name)))); }

void SchedulerTrace::take_new_weights(bool same) {
  Value out = one("call", Value::text("take_new_weights"));
  out.set("same", Value::boolean(same));
  line(out);
}

void SchedulerTrace::schedule(double now, const StepPlan& plan) {
  Value out = one("call", Value::text("schedule"));
  out.set("now", Value::number(now));
  out.set("plan", plan_document(plan));
  line(out);
}

void SchedulerTrace::finish(std::span<const StepResult> results,
                            std::span<const std::pair<RequestId, int64_t>> scores) {
  Value list = Value::list(), out = one("call", Value::text("finish"));
  for (const StepResult& result : results) {
    Value entry = one("request", Value::integer(result.id.request));
    entry.set("choice", Value::integer(result.id.choice));
    entry.set("tokens", integers(result.tokens));
    entry.set("stopped", Value::boolean(result.stopped));
    entry.set("failed", Value::boolean(result.failed));
    list.items.push_back(std::move(entry));
  }
  out.set("results", std::move(list));
  Value rows = Value::list();
  for (const auto& [request, count] : scores)
    rows.items.push_back(integers(std::initializer_list<int64_t>{request, count}));
  out.set("scores", std::move(rows));
  line(out);
}

}  // namespace easydel::esurge
