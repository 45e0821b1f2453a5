#include "easydel/esurge/engine_options.h"

#include <algorithm>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/text_table.h"
#include "easydel/esurge/context.h"

namespace easydel::esurge {
namespace {

void settle_whole_texts(EngineOptions& options, const EsurgeConfig& config, const ModelLimits& model) {
  constexpr int64_t default_text_tokens = 8192, default_shared_tokens = 4096;
  if (!config.max_model_len) options.max_model_len = model.max_positions.value_or(default_text_tokens);
  SchedulerConfig& scheduler = options.scheduler;
  scheduler.max_num_batched_tokens =
      config.max_num_batched_tokens.value_or(std::max(default_shared_tokens, options.max_model_len));
  scheduler.shared_text_tokens = std::min(default_shared_tokens, scheduler.max_num_batched_tokens);
  // A text is there for one step, and keeps nothing.
  scheduler.max_num_seqs = std::max(config.max_num_seqs, *scheduler.shared_text_tokens);
  scheduler.prefix_caching = false;
}

}  // namespace

int64_t EngineOptions::longest_sequence() const {
  const int64_t step = scheduler.max_num_batched_tokens * scheduler.steps_in_flight;
  int64_t fits = 0, too_long = max_model_len + 1;
  while (too_long - fits > 1) {
    const int64_t middle = fits + (too_long - fits) / 2;
    (layout.max_bytes(middle, step) <= budget.bytes ? fits : too_long) = middle;
  }
  return fits;
}

std::vector<std::string> EngineOptions::facts() const {
  if (scheduler.shared_text_tokens)
    return {str("texts of up to ", std::min(max_model_len, scheduler.max_num_batched_tokens),
                " tokens, each computed whole"),
            str("several share a step of up to ", *scheduler.shared_text_tokens, " tokens")};
  std::vector<std::string> out = {
      str("context of ", max_model_len, " tokens"), str("up to ", scheduler.max_num_seqs, " sequences at once"),
      str("steps of up to ", scheduler.max_num_batched_tokens, " tokens", step_tokens_measured ? " (measured)" : ""),
      budget.describe(layout)};
  if (!budget.limited_by_need)
    out.push_back(str(bytes_text(uint64_t(memory.bytes)), " are free",
                      memory.limit.empty() ? "" : str(" (limited by ", memory.limit, ")")));
  if (const int64_t longest = longest_sequence(); longest < max_model_len)
    out.push_back(str("the longest sequence that fits has ", longest, " tokens"));
  return out;
}

std::string EngineOptions::describe() const {
  const std::vector<std::string> all = facts();
  if (scheduler.shared_text_tokens) return join(all, ", ");
  return join({all.begin(), all.begin() + 3}, ", ") + "; " + join({all.begin() + 3, all.end()}, "; ");
}

std::string EngineOptions::report() const {
  std::string out;
  for (const std::string& fact : facts()) out += fact + "\n";
  for (const CacheGroup& group : layout.groups) {
    using enum CacheGroup::Kind;
    const std::string bytes = bytes_text(uint64_t(group.page_bytes));
    if (group.kind == state)
      out += bytes + " of states for a sequence\n";
    else
      out += str(bytes, " a page of layers that see ", group.kind == full ? "all tokens" : "",
                 group.kind == window ? str("the last ", group.span, " tokens") : "",
                 group.kind == chunk ? str("their chunk of ", group.span, " tokens") : "", "\n");
  }
  return out;
}

EngineOptions engine_options(const EsurgeConfig& config, const ModelLimits& model, const FreeMemory& memory) {
  check(model.layout.page_size == config.page_size, "engine options: a layout of pages of ", model.layout.page_size,
        " tokens, but esurge.page_size is ", config.page_size);
  EngineOptions out;
  out.max_model_len = context_length(config, model.max_positions);
  out.layout = model.layout;
  out.memory = memory;
  out.budget = cache_budget(out.layout, config.hbm_utilization, memory.bytes, config.max_num_seqs, out.max_model_len);
  constexpr int64_t default_step_tokens = 2048;
  SchedulerConfig& scheduler = out.scheduler;
  scheduler.max_num_seqs = config.max_num_seqs;
  scheduler.max_num_batched_tokens =
      std::min(config.max_num_batched_tokens.value_or(default_step_tokens), out.max_model_len);
  scheduler.long_prefill_token_threshold = config.long_prefill_token_threshold.value_or(0);
  scheduler.max_requests = config.detokenizer_max_states;
  scheduler.policy = config.scheduling_policy;
  scheduler.prefix_caching = config.enable_prefix_caching;
  scheduler.logs_preemptions = !config.silent_mode;
  scheduler.window_aware_admission = config.enable_window_aware_runtime_cap;
  // Which drafts a step accepts decides what the next one computes.
  const bool overlapped = config.overlap_execution && config.async_scheduling && config.num_speculative_tokens == 0;
  scheduler.steps_in_flight = overlapped ? 2 : 1;
  scheduler.idle_reset_seconds = config.idle_reset_seconds;
  scheduler.idle_reset_min_interval = config.idle_reset_min_interval;
  if (model.whole_texts) settle_whole_texts(out, config, model);
  return out;
}

void measure_step_tokens(EngineOptions& options, const std::function<double(int64_t tokens)>& seconds_of) {
  constexpr int64_t smallest = 64, greatest = 4096;
  constexpr double good_share = 0.9, gain = 1.1, long_step = 0.5;
  // They are computed with the first pages of each group.
  const auto fits = [&](int64_t tokens) {
    return tokens <= std::min(greatest, options.max_model_len) &&
           options.layout.all_bytes(tokens) <= options.budget.bytes;
  };
  if (!fits(smallest)) return;
  seconds_of(smallest);  // weights are laid out at their first use
  std::vector<std::pair<int64_t, double>> rates;
  double best = 0, seconds = 0;
  for (int64_t tokens = smallest, without_gain = 0; fits(tokens) && without_gain < 2 && seconds < long_step;
       tokens *= 2) {
    seconds = std::max(seconds_of(tokens), 1e-9);
    const double rate = double(tokens) / seconds;
    without_gain = rate < best * gain ? without_gain + 1 : 0;
    best = std::max(best, rate);
    rates.emplace_back(tokens, rate);
  }
  const auto chosen =
      std::ranges::find_if(rates, [&](const auto& measured) { return measured.second >= good_share * best; });
  options.scheduler.max_num_batched_tokens =
      std::min(std::max(chosen->first, 2 * options.scheduler.max_num_seqs), options.max_model_len);
  options.step_tokens_measured = true;
}

}  // namespace easydel::esurge
