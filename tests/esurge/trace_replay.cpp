#include "esurge/trace_replay.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/esurge/scheduler_trace.h"

namespace easydel::test {
namespace {

using namespace easydel::esurge;

constexpr const char* variable = "EASYDEL_ESURGE_TRACE";

[[noreturn]] void broken(const std::string& problem) { refuse("trace", problem, str("give a file of ", variable)); }

// What a line has under a key.
const Value& at(const Value& map, std::string_view key) {
  const Value* const found = map.is_map() ? map.find(key) : nullptr;
  if (!found) broken(str("a line has no '", key, "'"));
  return *found;
}
int64_t integer(const Value& value) {
  const auto number = value.as_int();
  if (!number) broken("a line has something else than a number");
  return *number;
}
int64_t integer(const Value& map, std::string_view key) { return integer(at(map, key)); }
bool boolean(const Value& map, std::string_view key) { return at(map, key).as_bool().value_or(false); }
std::optional<double> number(const Value& map, std::string_view key) { return at(map, key).as_double(); }

std::vector<TokenId> tokens(const Value& list) {
  std::vector<TokenId> out;
  for (const Value& item : list.items) out.push_back(TokenId(integer(item)));
  return out;
}

std::unique_ptr<Scheduler> scheduler_of(const Value& line) {
  if (at(line, "call").scalar != "scheduler") broken("it does not begin with a scheduler");
  SchedulerConfig config;
  each_limit(config, [&](std::string_view name, int64_t& limit) { limit = integer(line, name); });
  config.policy = boolean(line, "priority") ? SchedulingPolicy::priority : SchedulingPolicy::fcfs;
  config.prefix_caching = boolean(line, "prefix_caching");
  config.window_aware_admission = boolean(line, "window_aware_admission");
  config.idle_reset_seconds = number(line, "idle_reset_seconds");
  config.idle_reset_min_interval = number(line, "idle_reset_min_interval").value_or(0);
  if (const Value& shared = at(line, "shared_text_tokens"); !shared.is_null())
    config.shared_text_tokens = integer(shared);
  config.check_every_step = true;
  CacheLayout layout{integer(line, "page_size"), {}, boolean(line, "roles_matter")};
  for (const Value& entry : at(line, "groups").items)
    layout.groups.push_back(
        {CacheGroup::Kind(integer(entry, "kind")), integer(entry, "page_bytes"), integer(entry, "span")});
  return std::make_unique<Scheduler>(config, std::move(layout), CacheBudget{integer(line, "budget"), false});
}

SchedulerRequest request_of(const Value& line) {
  SchedulerRequest out;
  out.prompt = tokens(at(line, "prompt"));
  out.choices = integer(line, "choices"), out.max_tokens = integer(line, "max_tokens");
  out.priority = integer(line, "priority");
  const std::vector<Value>& root = at(line, "root").items;
  if (root.size() != 4) broken("a request has no root");
  out.root = {root[0].scalar,
              root[1].scalar,
              root[2].scalar,
              root[3].scalar,
              integer(line, "adapter_version"),
              integer(line, "frequency_class"),
              line.find("part") ? integer(line, "part") : 0};
  out.deadline = number(line, "deadline");
  out.max_cached_tokens = integer(line, "max_cached_tokens");
  out.beams = boolean(line, "beams");
  if (const Value& count = at(line, "prompt_logprobs"); !count.is_null())
    out.prompt_scores = std::make_shared<PromptScores>(PromptScores{integer(count)});
  return out;
}

std::vector<StepResult> results_of(const Value& list) {
  std::vector<StepResult> out;
  for (const Value& entry : list.items)
    out.push_back({{integer(entry, "request"), integer(entry, "choice")},
                   tokens(at(entry, "tokens")),
                   boolean(entry, "stopped"),
                   boolean(entry, "failed")});
  return out;
}

// The decisions depend on how many rows of scores there are, and of how many tokens each is.
void add_rows(PromptScores& scores, int64_t rows) {
  TokenLogprobs row;
  for (TokenId id = 0; id <= TokenId(scores.count); ++id) row.token_ids.push_back(id), row.logprobs.push_back(0);
  row.chosen = size_t(scores.count);
  if (rows > std::ssize(scores.rows)) scores.rows.resize(size_t(rows), row);
}

using ScoresOf = std::map<RequestId, std::shared_ptr<PromptScores>>;

void make_call(Scheduler& scheduler, const Value& line, ScoresOf& scores) {
  const std::string call = at(line, "call").scalar;
  if (call == "add") {
    const SchedulerRequest request = request_of(line);
    scores[scheduler.add(request)] = request.prompt_scores;
  } else if (call == "propose") {
    scheduler.propose({integer(line, "request"), integer(line, "choice")}, integer(line, "drafts"));
  } else if (call == "abort") {
    scheduler.abort(integer(line, "request"));
  } else if (call == "stop") {
    scheduler.stop(integer(line, "request"));
  } else if (call == "continue_beams") {
    std::vector<BeamStep> steps;
    for (const TokenId token : tokens(at(line, "tokens"))) steps.push_back({0, token});
    const std::vector<TokenId> parents = tokens(at(line, "parents"));
    if (parents.size() != steps.size()) broken("a beam has no parent");
    for (size_t i = 0; i < steps.size(); ++i) steps[i].parent = parents[i];
    scheduler.continue_beams(integer(line, "request"), steps);
  } else if (call == "reset_prefix_cache") {
    scheduler.reset_prefix_cache();
  } else if (call == "pause") {
    scheduler.pause(boolean(line, "destroy_pages"));
  } else if (call == "resume") {
    scheduler.resume();
  } else if (call == "drain") {
    scheduler.drain();
  } else if (call == "await_new_weights") {
    scheduler.await_new_weights();
  } else if (call == "take_new_weights") {
    scheduler.take_new_weights(boolean(line, "same"));
  } else if (call == "finish") {
    for (const Value& entry : at(line, "scores").items)
      add_rows(*scores.at(integer(entry.items.at(0))), integer(entry.items.at(1)));
    scheduler.finish(results_of(at(line, "results")));
  } else if (call == "schedule") {
    scheduler.schedule(number(line, "now").value_or(0));
  } else if (call == "restore_index") {
    broken("it begins with a prefix cache, which it does not have");
  } else {
    broken("there is no call '" + call + "'");
  }
}

}  // namespace

TraceFile::TraceFile() { setenv(variable, (folder_ / "trace").c_str(), 1); }
TraceFile::~TraceFile() { unsetenv(variable); }

fs::path TraceFile::path() const {
  const std::vector<fs::path> files = files::list(folder_.path());
  check(files.size() == 1, "traces: there are ", files.size());
  return files[0];
}

std::string TraceFile::text() const { return read_file(path()); }

std::string replay_trace(std::string_view lines) {
  const TraceFile repeated;
  std::unique_ptr<Scheduler> scheduler;
  ScoresOf scores;
  std::ifstream made;
  // A process that was killed leaves a line without its end.
  for (size_t end = lines.find('\n'); end != std::string_view::npos; end = lines.find('\n')) {
    const std::string line(lines.substr(0, end));
    lines.remove_prefix(end + 1);
    const Value call = parse_json(line, "trace");
    if (scheduler)
      make_call(*scheduler, call, scores);
    else
      scheduler = scheduler_of(call), made.open(repeated.path());
    // The schedulers' own trace tells what came out.
    if (std::string again; !std::getline(made, again) || again != line) return str(again, "\ninstead of\n", line);
  }
  if (!scheduler) broken("it is empty");
  return "";
}

}  // namespace easydel::test
