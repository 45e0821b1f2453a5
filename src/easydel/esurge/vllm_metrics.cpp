#include "easydel/esurge/vllm_metrics.h"

#include <array>

#include "easydel/esurge/metric_table.h"

namespace easydel::esurge {
namespace {

using E = EngineMetrics;

double share_of_pages_used(const E& m) {
  return m.cache_pages_total > 0 ? double(m.cache_pages_used) / double(m.cache_pages_total) : 0;
}

constexpr std::array vllm_metrics = {
    gauge<&E::running_requests>("vllm:num_requests_running", "Requests that are being computed."),
    gauge<&E::waiting_requests>("vllm:num_requests_waiting", "Requests that wait for admission."),
    Metric{"vllm:kv_cache_usage_perc", "Share of the KV cache's pages with content, 0 to 1.", MetricKind::gauge,
           share_of_pages_used, nullptr},
    counter<&E::prompt_tokens>("vllm:prefix_cache_queries_total", "Prompt tokens that the prefix cache was asked for."),
    counter<&E::cached_prompt_tokens>("vllm:prefix_cache_hits_total", "Prompt tokens that the prefix cache had."),
    counter<&E::preemptions>("vllm:num_preemptions_total", "Preemptions of sequences."),
    counter<&E::prompt_tokens>("vllm:prompt_tokens_total", "Prompt tokens of admitted requests."),
    counter<&E::generated_tokens>("vllm:generation_tokens_total", "Generated tokens."),
    counter<&E::draft_tokens>("vllm:spec_decode_num_draft_tokens_total", "Speculated tokens that were verified."),
    counter<&E::accepted_draft_tokens>("vllm:spec_decode_num_accepted_tokens_total",
                                       "Speculated tokens that were accepted."),
    counter<&E::requests_finished>("vllm:request_success_total", "Requests that ended by a stop or their length."),
    histogram<&E::first_token_seconds>("vllm:time_to_first_token_seconds", "Time from arrival to the first token."),
    histogram<&E::between_tokens_seconds>("vllm:inter_token_latency_seconds", "Time between tokens of a sequence."),
    histogram<&E::request_seconds>("vllm:e2e_request_latency_seconds", "Time from arrival to the end of a request."),
    histogram<&E::queue_seconds>("vllm:request_queue_time_seconds", "Time from arrival to admission."),
    histogram<&E::prefill_seconds>("vllm:request_prefill_time_seconds", "Time from admission to the first token."),
    histogram<&E::step_tokens>("vllm:iteration_tokens_total", "Tokens in a step."),
    histogram<&E::request_prompt_tokens>("vllm:request_prompt_tokens", "Prompt tokens of a request."),
    histogram<&E::request_generated_tokens>("vllm:request_generation_tokens", "Generated tokens of a request."),
};

}  // namespace

std::string vllm_metrics_text(const std::vector<std::pair<std::string, EngineMetrics>>& engines) {
  return metrics_text(vllm_metrics, engines);
}

}  // namespace easydel::esurge
