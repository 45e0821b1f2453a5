// The keys of the section `esurge`, the paged inference engine.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"

namespace easydel::esurge {

enum class TruncateMode { left, right, middle };
constexpr auto choices(TruncateMode) {
  using config::Choice;
  return std::array{Choice{TruncateMode::left, "left"}, Choice{TruncateMode::right, "right"},
                    Choice{TruncateMode::middle, "middle"}};
}
enum class SchedulingPolicy : uint8_t { fcfs, priority };
constexpr auto choices(SchedulingPolicy) {
  using config::Choice;
  return std::array{Choice{SchedulingPolicy::fcfs, "fcfs"}, Choice{SchedulingPolicy::priority, "priority"}};
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
  SchedulingPolicy scheduling_policy = SchedulingPolicy::fcfs;
  std::optional<std::string> prefix_cache_path;
  std::optional<std::string> speculative_model;
  int64_t num_speculative_tokens = 0;
  int64_t prompt_lookup_min = 2, prompt_lookup_max = 4;
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

  static constexpr auto doc = "The paged inference engine, which serves many requests at once.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    constexpr auto compiler = no_effect("nothing is compiled by XLA");
    constexpr auto python = not_built("a Python function in YAML");
    return std::array{
        field<&C::max_model_len>(
            "Maximum length of a sequence, prompt and answer together; null: 8192 or the model's maximum.",
            between(1, 1 << 30)),
        field<&C::min_input_pad>("Minimum number of sequences in a compiled step.", at_least(1), compiler),
        field<&C::min_token_pad>("Minimum number of tokens in a compiled step.", at_least(1), compiler),
        field<&C::max_num_seqs>(
            "Maximum number of sequences decoded together. More sequences raise throughput and need more memory.",
            between(1, 1 << 20)),
        field<&C::max_num_seq_buckets>("Batch sizes to compile.", compiler),
        field<&C::max_num_batched_tokens>("Maximum number of tokens in one step. Smaller steps shorten the "
                                          "wait of running sequences while a long prompt is prefilled. Null: what this "
                                          "machine computes well, measured at the start.",
                                          at_least(1)),
        field<&C::hbm_utilization>(
            "Share of the free memory for the KV cache, also for what an evaluation keeps of shared beginnings.",
            between(0, 1)),
        field<&C::page_size>("Number of tokens in a page of the KV cache. Most users should leave this alone.",
                             between(1, 4096)),
        field<&C::use_aot_forward>("Compile ahead of time.", compiler),
        field<&C::bind_graphstate_for_aot>("Compile weights in as constants.", compiler),
        field<&C::enable_window_aware_runtime_cap>("Limit the pages of a sequence to its attention window."),
        field<&C::enable_prefix_caching>("Reuse the KV cache of prompts that begin with the same tokens."),
        field<&C::auto_shard_model>("On several ranks, give the engine the layout of sharding_axis_dims; weights that "
                                    "are in memory in another one are laid out anew. false: the layout of the section "
                                    "sharding, which must be one that the engine computes on."),
        field<&C::sharding_axis_dims>(
            "Number of ranks along each mesh axis (dp, fsdp, ep, tp, sp) while serving, as sharding.axis_dims; -1: the "
            "remaining ranks. dp and tp may have several: tp divides each layer, dp the requests."),
        field<&C::compile_runner>("Compile the model runner.", compiler),
        field<&C::async_scheduling>(
            "With overlap_execution, plan the next step while one computes. An answer that a stop string or an end "
            "token ends is then computed for one more step, which is dropped. No effect with num_speculative_tokens: "
            "what is accepted decides what comes next."),
        field<&C::runner_verbose>("Log each step."),
        field<&C::verbose>("Log a line for each request that ends: its tokens, its time and why it ended."),
        field<&C::overlap_execution>(
            "Use a second thread while a step computes: it sends the outputs of the step before and, with "
            "async_scheduling, finds out what follows from that step's tokens (text, stops, log-probabilities, masks) "
            "and plans the next one. Answers stay the same. It pays if a core is free beside the threads of the "
            "kernels."),
        field<&C::sampler_metrics>(
            "Measure, of each token that is chosen, the entropy of the model's distribution and the "
            "token's log-probability (histograms of the metrics). Costs a sweep over the "
            "vocabulary for each token."),
        field<&C::data_parallelism_axis>(
            "Mesh axis that requests are distributed over: dp. Each of its ranks has the pages of its own sequences."),
        field<&C::esurge_name>("Name under which the model is served."),
        field<&C::reserve_tokens>("Number of tokens of the context kept free for the answer.", at_least(0)),
        field<&C::auto_truncate_prompt>("Truncate prompts that are too long instead of refusing them."),
        field<&C::auto_cap_new_tokens>("Lower max_new_tokens to what fits into the context."),
        field<&C::strict_context>("Refuse requests that do not fit into the context."),
        field<&C::truncate_mode>("Which end of a prompt that is too long is cut off."),
        field<&C::prefer_preserve_prompt>("Shorten the answer before truncating the prompt."),
        field<&C::decode_truncated_prompt>("Return the truncated prompt as text."),
        field<&C::destroy_pages_on_pause>("Free the KV cache while the engine is paused."),
        field<&C::detokenizer_max_states>("Maximum number of streams detokenized at once.", at_least(1)),
        field<&C::worker_startup_timeout>(
            "Seconds that the first rank waits for the others to have the model in memory (null: 600), and that the "
            "engine waits for tokenizer_endpoint and detokenizer_endpoint to answer (null: 15).",
            above(0)),
        field<&C::idle_reset_seconds>("Seconds of idleness after which the engine resets; null: never.", above(0)),
        field<&C::idle_reset_min_interval>("Minimum number of seconds between two such resets.", at_least(0)),
        field<&C::tokenizer_endpoint>(
            "Address of another process of this machine that encodes texts, unix:/path or tcp://127.0.0.1:PORT; null: "
            "this process does. Start it by easydel tokenize MODEL --serve ADDRESS."),
        field<&C::detokenizer_endpoint>(
            "The same for what decodes tokens; it may be the same address. Each token then waits for an answer of the "
            "other process. Give both, or neither."),
        field<&C::sampling_params_callback>("Function that changes the sampling parameters of a request; Python only.",
                                            python),
        field<&C::long_prefill_token_threshold>("Maximum number of tokens of one prompt prefilled in a step.",
                                                at_least(1)),
        field<&C::scheduling_policy>(
            "Which request is served first: fcfs, the one that arrived first; priority, the one "
            "with the lowest priority number, then the first."),
        field<&C::prefix_cache_path>(
            "Folder in which the prefix cache is kept when the engine stops, for the next one: with the same "
            "weights, formats and page_size. It has the texts that the engine read and wrote."),
        field<&C::speculative_model>(
            "Small model that drafts tokens, with the same vocabulary; null: drafts are looked "
            "up in the prompt and the answer. A folder, or a name on the Hub."),
        field<&C::num_speculative_tokens>("Maximum number of tokens drafted for a step of a sequence; 0: none. Drafts "
                                          "change the speed, never the tokens.",
                                          between(0, 64)),
        field<&C::prompt_lookup_min>("Minimum number of equal tokens before a draft that is looked up.", at_least(1)),
        field<&C::prompt_lookup_max>("Maximum number of these tokens; more of them are searched for first.",
                                     between(1, 64)),
        field<&C::extra_eos_token_ids>("Additional token ids that end an answer."),
        field<&C::extra_stops>("Additional strings that end an answer."),
        field<&C::silent_mode>("Log only what goes wrong, and what verbose and runner_verbose ask for."),
        field<&C::tool_parser>("Format in which the model writes tool calls."),
        field<&C::reasoning_parser>("Format in which the model writes its reasoning."),
        field<&C::ignore_stop_strings_in_reasoning>(
            "Stop strings end an answer only outside of its reasoning, which the conversation's reasoning_parser "
            "finds."),
        field<&C::distributed_mode>("The ranks are on several hosts. Where no launcher starts them, one process is "
                                    "started on each host, and the "
                                    "keys below say which rank it is."),
        field<&C::distributed_role>(
            "Role of this host: coordinator is rank 0, a worker any other; auto: by distributed_rank."),
        field<&C::distributed_service_name>("Name of the group of ranks; one that has another name is not let in."),
        field<&C::distributed_world_size>("Number of hosts; null: a launcher says it.", at_least(1)),
        field<&C::distributed_rank>("Index of this host, from 0; null: a launcher or the role says it.", at_least(0)),
        field<&C::distributed_control_port>(
            "Port that rank 0 listens on until the other hosts have joined, if no launcher starts them.",
            between(1, 65535)),
        field<&C::distributed_control_bind_host>(
            "Address that the first rank listens on for the others, if they are on several hosts."),
        field<&C::distributed_advertise_addr>(
            "Address of rank 0, to which the others connect, if they are on several hosts; null: MASTER_ADDR of a "
            "launcher. One like 127.0.0.1 says that all ranks are on this machine."),
        field<&C::distributed_auth_token>(
            "Secret that all ranks know. A rank proves that it knows it (HMAC-SHA256) before it is let in; what ranks "
            "send is not encrypted. Null: ranks that one launcher started agree on one."),
        field<&C::distributed_step_timeout_s>(
            "Seconds to wait for another rank within a step; all requests end with an error after that.", above(0)),
        field<&C::distributed_connect_timeout_s>("Seconds to wait for the other ranks to connect.", above(0)),
        field<&C::distributed_verify_sampling_digest>(
            "Compare the scores of ranks that compute the same after each step, from which they would choose other "
            "tokens if they differed; a difference ends all requests with an error."),
    };
  }
  void settle(config::Keys& keys);
};

}  // namespace easydel::esurge
