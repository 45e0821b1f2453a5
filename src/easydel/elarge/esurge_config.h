// The keys of the section `esurge`, the paged inference engine. The engine itself is not built yet.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "easydel/config/fields.h"

namespace easydel::elarge {

enum class TruncateMode { left, right, middle };
constexpr auto choices(TruncateMode) {
  using config::Choice;
  return std::array{Choice{TruncateMode::left, "left"}, Choice{TruncateMode::right, "right"},
                    Choice{TruncateMode::middle, "middle"}};
}
enum class DistributedRole { automatic, coordinator, worker };
constexpr auto choices(DistributedRole) {
  using config::Choice;
  return std::array{Choice{DistributedRole::automatic, "auto"}, Choice{DistributedRole::coordinator, "coordinator"},
                    Choice{DistributedRole::worker, "worker"}};
}

struct EsurgeConfig {
  std::optional<int64_t> max_model_len;
  int64_t min_input_pad = 16;
  std::optional<int64_t> min_token_pad;
  int64_t max_num_seqs = 32;
  std::optional<std::vector<int64_t>> max_num_seq_buckets;
  std::optional<int64_t> max_num_batched_tokens;
  double hbm_utilization = 0.8;
  int64_t page_size = 128;
  bool use_aot_forward = true;
  bool bind_graphstate_for_aot = false;
  bool enable_window_aware_runtime_cap = false;
  bool enable_prefix_caching = true;
  bool auto_shard_model = true;
  std::vector<int64_t> sharding_axis_dims = {1, 1, 1, -1, 1};
  bool compile_runner = true;
  bool async_scheduling = true;
  bool runner_verbose = false;
  bool verbose = false;
  bool overlap_execution = false;
  bool sampler_metrics = false;
  std::string data_parallelism_axis = "dp";
  std::optional<std::string> esurge_name;
  std::optional<int64_t> reserve_tokens;
  bool auto_truncate_prompt = true;
  bool auto_cap_new_tokens = true;
  bool strict_context = false;
  TruncateMode truncate_mode = TruncateMode::left;
  bool prefer_preserve_prompt = true;
  bool decode_truncated_prompt = true;
  bool destroy_pages_on_pause = true;
  int64_t detokenizer_max_states = 65536;
  std::optional<double> worker_startup_timeout;
  std::optional<double> idle_reset_seconds;
  double idle_reset_min_interval = 60;
  std::optional<std::string> tokenizer_endpoint;
  std::optional<std::string> detokenizer_endpoint;
  Value sampling_params_callback;
  std::optional<int64_t> long_prefill_token_threshold;
  std::optional<std::vector<int64_t>> extra_eos_token_ids;
  config::Many<std::string> extra_stops;
  bool silent_mode = false;
  std::optional<std::string> tool_parser;
  std::optional<std::string> reasoning_parser;
  bool ignore_stop_strings_in_reasoning = true;
  bool distributed_mode = false;
  DistributedRole distributed_role = DistributedRole::automatic;
  std::optional<std::string> distributed_service_name;
  std::optional<int64_t> distributed_world_size;
  std::optional<int64_t> distributed_rank;
  int64_t distributed_control_port = 19666;
  std::string distributed_control_bind_host = "0.0.0.0";
  std::optional<std::string> distributed_advertise_addr;
  std::optional<std::string> distributed_auth_token;
  double distributed_step_timeout_s = 30;
  double distributed_connect_timeout_s = 15;
  bool distributed_verify_sampling_digest = true;

  static constexpr auto doc = "The paged inference engine; its keys are checked, the engine is not built yet.";
  static constexpr auto fields() {
    using namespace config;
    constexpr auto compiler = no_effect("nothing is compiled by XLA");
    constexpr auto python = not_built("a Python function in YAML");
    return std::tuple{
        field<&EsurgeConfig::max_model_len>("Longest sequence served; null: 8192 or the model's.", at_least(1)),
        field<&EsurgeConfig::min_input_pad>("Fewest sequences of a step.", at_least(1), compiler),
        field<&EsurgeConfig::min_token_pad>("Fewest tokens of a step.", at_least(1), compiler),
        field<&EsurgeConfig::max_num_seqs>("Sequences decoded together.", at_least(1)),
        field<&EsurgeConfig::max_num_seq_buckets>("Sizes of compiled steps.", compiler),
        field<&EsurgeConfig::max_num_batched_tokens>("Tokens of one step.", at_least(1)),
        field<&EsurgeConfig::hbm_utilization>("Share of the free memory for keys and values.", between(0, 1)),
        field<&EsurgeConfig::page_size>("Tokens in a page of the cache.", between(1, 4096)),
        field<&EsurgeConfig::use_aot_forward>("Compile ahead of time.", compiler),
        field<&EsurgeConfig::bind_graphstate_for_aot>("Weights as constants.", compiler),
        field<&EsurgeConfig::enable_window_aware_runtime_cap>("Cap pages by the attention window."),
        field<&EsurgeConfig::enable_prefix_caching>("Reuse pages of equal beginnings."),
        field<&EsurgeConfig::auto_shard_model>("Cut the model while it is loaded."),
        field<&EsurgeConfig::sharding_axis_dims>("Mesh while serving."),
        field<&EsurgeConfig::compile_runner>("Compile the runner.", compiler),
        field<&EsurgeConfig::async_scheduling>("Schedule while the device works."),
        field<&EsurgeConfig::runner_verbose>("Log each step."),
        field<&EsurgeConfig::verbose>("Log more."),
        field<&EsurgeConfig::overlap_execution>("Overlap steps."),
        field<&EsurgeConfig::sampler_metrics>("Measure the sampler."),
        field<&EsurgeConfig::data_parallelism_axis>("Axis that cuts requests."),
        field<&EsurgeConfig::esurge_name>("Name under which the model is served."),
        field<&EsurgeConfig::reserve_tokens>("Tokens kept free for the reply.", at_least(0)),
        field<&EsurgeConfig::auto_truncate_prompt>("Cut a prompt that is too long."),
        field<&EsurgeConfig::auto_cap_new_tokens>("Lower max_new_tokens to what fits."),
        field<&EsurgeConfig::strict_context>("Refuse what does not fit."),
        field<&EsurgeConfig::truncate_mode>("Where a prompt is cut."),
        field<&EsurgeConfig::prefer_preserve_prompt>("Shorten the reply before the prompt."),
        field<&EsurgeConfig::decode_truncated_prompt>("Give back the prompt as it was cut."),
        field<&EsurgeConfig::destroy_pages_on_pause>("Free the cache while paused."),
        field<&EsurgeConfig::detokenizer_max_states>("Streams decoded at once.", at_least(1)),
        field<&EsurgeConfig::worker_startup_timeout>("Seconds to wait for workers.", above(0)),
        field<&EsurgeConfig::idle_reset_seconds>("Seconds of idleness before a reset.", above(0)),
        field<&EsurgeConfig::idle_reset_min_interval>("Seconds between such resets.", at_least(0)),
        field<&EsurgeConfig::tokenizer_endpoint>("A tokenizer in another process.", not_built("an external tokenizer")),
        field<&EsurgeConfig::detokenizer_endpoint>("A detokenizer in another process.",
                                                   not_built("an external detokenizer")),
        field<&EsurgeConfig::sampling_params_callback>("Changes sampling per request; Python only.", python),
        field<&EsurgeConfig::long_prefill_token_threshold>("Tokens of a prompt prefilled in one step.", at_least(1)),
        field<&EsurgeConfig::extra_eos_token_ids>("More tokens that end a reply."),
        field<&EsurgeConfig::extra_stops>("More texts that end a reply."),
        field<&EsurgeConfig::silent_mode>("Log nothing."),
        field<&EsurgeConfig::tool_parser>("How tool calls are written."),
        field<&EsurgeConfig::reasoning_parser>("How reasoning is written."),
        field<&EsurgeConfig::ignore_stop_strings_in_reasoning>("Stop texts count only outside reasoning."),
        field<&EsurgeConfig::distributed_mode>("Serve over several hosts.", not_built("serving over hosts")),
        field<&EsurgeConfig::distributed_role>("This host's part."),
        field<&EsurgeConfig::distributed_service_name>("Name that finds the hosts."),
        field<&EsurgeConfig::distributed_world_size>("Hosts.", at_least(1)),
        field<&EsurgeConfig::distributed_rank>("This host.", at_least(0)),
        field<&EsurgeConfig::distributed_control_port>("Port of the control channel.", between(1, 65535)),
        field<&EsurgeConfig::distributed_control_bind_host>("Address of the control channel."),
        field<&EsurgeConfig::distributed_advertise_addr>("Address told to the others."),
        field<&EsurgeConfig::distributed_auth_token>("Secret of the control channel."),
        field<&EsurgeConfig::distributed_step_timeout_s>("Seconds to wait for a step.", above(0)),
        field<&EsurgeConfig::distributed_connect_timeout_s>("Seconds to wait for a host.", above(0)),
        field<&EsurgeConfig::distributed_verify_sampling_digest>("Compare what the hosts sampled."),
    };
  }
};

}  // namespace easydel::elarge
