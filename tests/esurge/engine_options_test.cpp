// Limits of an engine, and the errors of the section `esurge`.
#include "easydel/esurge/engine_options.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/data.h"

namespace easydel::test {
namespace {

using esurge::CacheGroup;
using esurge::CacheLayout;
using esurge::engine_options;
using esurge::EngineOptions;
using esurge::EsurgeConfig;
using esurge::measure_step_tokens;

EsurgeConfig read(const char* yaml) {
  EsurgeConfig config;
  config::read(parse_yaml(yaml), config, "esurge").throw_if_any();
  return config;
}
std::string problem(const char* yaml) {
  const std::string text = refusal([&] { read(yaml); });
  return text.substr(0, text.find("\n1 problem in esurge"));
}

// A page of 128 tokens takes 1 MiB in the full group and as much in the group of a window of 256 tokens.
CacheLayout layout(int64_t page_size = 128, bool window = false) {
  const int64_t bytes = page_size * (1 << 13);
  CacheLayout out{page_size, {{CacheGroup::Kind::full, bytes, 0}}, false};
  if (window) out.groups.push_back({CacheGroup::Kind::window, bytes, 256});
  return out;
}
constexpr int64_t gib = int64_t(1) << 30;

TEST(EngineOptions, TakeAShareOfTheFreeMemory) {
  const EngineOptions options = engine_options(read("{}"), {layout(), 4096}, {gib, "the control group"});
  EXPECT_EQ(options.max_model_len, 4096);
  EXPECT_EQ(options.budget.bytes, int64_t(0.8 * gib));
  EXPECT_EQ(options.scheduler.max_num_seqs, 32);
  EXPECT_EQ(options.scheduler.max_num_batched_tokens, 2048);
  EXPECT_TRUE(options.scheduler.prefix_caching);
  EXPECT_EQ(options.describe(),
            "context of 4096 tokens, up to 32 sequences at once, steps of up to 2048 tokens; "
            "KV cache: 819 MiB, 819 pages of 128 tokens (104832 tokens); 1.00 GiB are free (limited by the control "
            "group)");
}

TEST(EngineOptions, AreReportedLineByLine) {
  CacheLayout own = layout(128, true);
  own.groups.push_back({CacheGroup::Kind::chunk, 1 << 10, 64});
  own.groups.push_back({CacheGroup::Kind::state, 3 << 10, 0});
  EXPECT_EQ(engine_options(read("max_num_batched_tokens: 128"), {own, 8192}, {10 << 20, "the machine"}).report(),
            "context of 8192 tokens\n"
            "up to 32 sequences at once\n"
            "steps of up to 128 tokens\n"
            "KV cache: 8.00 MiB, 3 pages of 128 tokens (384 tokens), states of 3.00 KiB a sequence\n"
            "10.0 MiB are free (limited by the machine)\n"
            "the longest sequence that fits has 384 tokens\n"
            "1.00 MiB a page of layers that see all tokens\n"
            "1.00 MiB a page of layers that see the last 256 tokens\n"
            "1.00 KiB a page of layers that see their chunk of 64 tokens\n"
            "3.00 KiB of states for a sequence\n");
}

TEST(EngineOptions, TakeNoMoreThanAllSequencesNeed) {
  const EngineOptions options =
      engine_options(read("{max_num_seqs: 2, max_model_len: 1000, max_num_batched_tokens: 64}"), {layout(), 4096},
                     {8 * gib, "the machine"});
  EXPECT_EQ(options.budget.bytes, 2 * 8 << 20);
  EXPECT_TRUE(options.budget.limited_by_need);
  EXPECT_EQ(options.describe(),
            "context of 1000 tokens, up to 2 sequences at once, steps of up to 64 tokens; KV cache: 16.0 MiB, 16 pages "
            "of 128 tokens (2048 tokens); all sequences at their maximum length need no more");
  const EngineOptions greatest =
      engine_options(read("{max_num_seqs: 1048576, max_model_len: 1073741824, page_size: 1}"),
                     {layout(1), std::nullopt}, {8 * gib, "the machine"});
  EXPECT_EQ(greatest.budget.bytes, int64_t(0.8 * 8 * gib));
}

TEST(EngineOptions, SayWhichSequencesFitIfNotAllDo) {
  const EngineOptions options =
      engine_options(read("max_num_batched_tokens: 128"), {layout(), 8192}, {10 << 20, "the machine"});
  EXPECT_EQ(options.longest_sequence(), 8 * 128);
  EXPECT_TRUE(options.describe().ends_with("; the longest sequence that fits has 1024 tokens")) << options.describe();
  // Of the window's group a sequence holds at most ceil((256 + 128) / 128) + 1 = 4 pages.
  const EngineOptions windows =
      engine_options(read("max_num_batched_tokens: 128"), {layout(128, true), 8192}, {10 << 20, "the machine"});
  EXPECT_EQ(windows.longest_sequence(), 4 * 128);
}

TEST(EngineOptions, GiveTheSchedulerWhatTheSectionSays) {
  const EngineOptions options = engine_options(
      read(
          "{max_num_seqs: 7, max_num_batched_tokens: 100, long_prefill_token_threshold: 30, detokenizer_max_states: 9, "
          "scheduling_policy: priority, enable_prefix_caching: false, enable_window_aware_runtime_cap: true, "
          "overlap_execution: true, idle_reset_seconds: 5, idle_reset_min_interval: 6}"),
      {layout(), 4096}, {gib, ""});
  const esurge::SchedulerConfig& scheduler = options.scheduler;
  EXPECT_EQ(scheduler.max_num_seqs, 7);
  EXPECT_EQ(scheduler.max_num_batched_tokens, 100);
  EXPECT_EQ(scheduler.long_prefill_token_threshold, 30);
  EXPECT_EQ(scheduler.max_requests, 9);
  EXPECT_EQ(scheduler.policy, esurge::SchedulingPolicy::priority);
  EXPECT_FALSE(scheduler.prefix_caching);
  EXPECT_TRUE(scheduler.window_aware_admission);
  EXPECT_EQ(scheduler.steps_in_flight, 2);
  EXPECT_EQ(scheduler.idle_reset_seconds, 5);
  EXPECT_EQ(scheduler.idle_reset_min_interval, 6);
  EXPECT_EQ(engine_options(read("{}"), {layout(), 100}, {gib, ""}).scheduler.max_num_batched_tokens, 100);
}

TEST(EngineOptions, MeasureTheStepThatTheMachineComputesWell) {
  std::vector<int64_t> asked;
  // A step takes a fixed time and a time for each token.
  const auto measured = [&](const char* yaml, int64_t context, double fixed, int64_t memory = gib) {
    EngineOptions options = engine_options(read(yaml), {layout(), context}, {memory, ""});
    asked.clear();
    measure_step_tokens(options, [&](int64_t tokens) {
      asked.push_back(tokens);
      return fixed + double(tokens) * 1e-4;
    });
    EXPECT_EQ(options.step_tokens_measured, !asked.empty());
    EXPECT_EQ(options.describe().find("tokens (measured);") != std::string::npos, !asked.empty());
    return options.scheduler.max_num_batched_tokens;
  };
  EXPECT_EQ(measured("{}", 8192, 0.01), 1024) << "0.96 of the best rate";
  EXPECT_EQ(asked, (std::vector<int64_t>{64, 64, 128, 256, 512, 1024, 2048}));
  EXPECT_EQ(measured("{}", 8192, 0), 64);
  EXPECT_EQ(asked, (std::vector<int64_t>{64, 64, 128, 256})) << "twice without a gain";
  EXPECT_EQ(measured("{}", 300, 0.2), 256);
  EXPECT_EQ(measured("{}", 20, 10), 20);
  EXPECT_EQ(measured("{}", 8192, 0.49), 128);
  EXPECT_EQ(asked, (std::vector<int64_t>{64, 64, 128})) << "a step of half a second is long enough";
  EXPECT_EQ(measured("max_num_seqs: 100", 8192, 0), 200) << "all sequences, and as much of prompts";
  EXPECT_EQ(measured("{}", 8192, 0.01, 5 << 20), 512);
  EXPECT_EQ(asked, (std::vector<int64_t>{64, 64, 128, 256, 512})) << "there is room for four pages";
}

TEST(EngineOptions, RefuseWhatCannotBe) {
  EXPECT_EQ(problem("page_size: 0"),
            "esurge:1:12: page_size: 0 is out of range\n    expected an integer from 1 to 4096 (default 128)");
  EXPECT_EQ(problem("hbm_utilization: 0"),
            "esurge:1:18: hbm_utilization: 0 leaves no memory for the KV cache\n"
            "    expected a number above 0 and at most 1 (default 0.8)");
  EXPECT_EQ(problem("hbm_utilization: 1.2"),
            "esurge:1:18: hbm_utilization: 1.2 is out of range\n    expected a number from 0 to 1 (default 0.8)");
  EXPECT_EQ(problem("{max_model_len: 100, max_num_batched_tokens: 200}"),
            "esurge:1:46: max_num_batched_tokens: max_num_batched_tokens (200) cannot exceed max_model_len (100)");
  EXPECT_EQ(problem("{max_model_len: 100, reserve_tokens: 100}"),
            "esurge:1:38: reserve_tokens: 100 tokens of a context of 100 leave none for a prompt\n"
            "    lower esurge.reserve_tokens or raise esurge.max_model_len");
  EXPECT_EQ(problem("{tokenizer_endpoint: 'unix:/a'}"),
            "esurge: detokenizer_endpoint: is missing: tokenizer_endpoint is given\n"
            "    give both, or neither; both may be the same address");
  EXPECT_EQ(problem("{tokenizer_endpoint: 'tcp://127.0.0.1:7', detokenizer_endpoint: 'tcp://10.0.0.1:7'}"),
            "esurge:1:65: detokenizer_endpoint: 'tcp://10.0.0.1:7' is not an address of this machine\n"
            "    give unix:/path, or tcp://127.0.0.1:PORT; texts are sent as they are, so they stay on this machine");
  EXPECT_EQ(problem("{prompt_lookup_min: 5, prompt_lookup_max: 3}"),
            "esurge:1:21: prompt_lookup_min: prompt_lookup_min (5) must be <= prompt_lookup_max (3).");
  EXPECT_EQ(problem("extra_stops: ['']"),
            "esurge:1:14: extra_stops: an empty stop string would end every answer\n    take it out");
  EXPECT_EQ(problem("extra_eos_token_ids: [-1]"),
            "esurge:1:22: extra_eos_token_ids: -1 is not a token id\n    token ids are 0 or more");
  EXPECT_EQ(problem("scheduling_policy: lifo"),
            "esurge:1:20: scheduling_policy: unknown value 'lifo'\n    expected one of: fcfs, priority (default fcfs)");
  EXPECT_EQ(problem("{prefix_cache_path: a, enable_prefix_caching: false}"),
            "esurge:1:21: prefix_cache_path: there is no prefix cache with enable_prefix_caching: false\n"
            "    leave one out");
  EXPECT_EQ(problem("prefix_cache_path: ''"), "esurge:1:20: prefix_cache_path: is empty\n    give a folder, or null");
  EXPECT_EQ(problem("data_parallelism_axis: pd"),
            "esurge:1:24: data_parallelism_axis: the mesh has no axis 'pd'\n    did you mean 'dp'?");
  EXPECT_EQ(problem("tool_parser: hermez"),
            "esurge:1:14: tool_parser: 'hermez' is not a format of tool calls\n    did you mean 'hermes'?");
  EXPECT_EQ(
      problem("reasoning_parser: deepseek_r2"),
      "esurge:1:19: reasoning_parser: 'deepseek_r2' is not a format of reasoning\n    did you mean 'deepseek_r1'?");
  EXPECT_EQ(problem("speculative_model: a"),
            "esurge:1:20: speculative_model: drafts nothing with num_speculative_tokens: 0\n"
            "    set num_speculative_tokens, such as 4, or leave it out");
}

TEST(EngineOptions, RefuseLessMemoryThanAPageOfEachGroup) {
  const std::string text = refusal([&] {
    engine_options(read("{}"), {layout(128, true), 4096}, {2 << 20, "the machine"});
  });
  EXPECT_EQ(text,
            "esurge.hbm_utilization: 0.8 of 2.00 MiB free memory is 1.60 MiB; one page of each kind takes 2.00 MiB\n"
            "    raise esurge.hbm_utilization, lower esurge.page_size, or free memory");
  EXPECT_EQ(refusal([&] {
              engine_options(read("max_num_batched_tokens: 5000"), {layout(), 4096}, {gib, ""});
            }),
            "esurge.max_num_batched_tokens: max_num_batched_tokens (5000) cannot exceed max_model_len (4096)");
}

}  // namespace
}  // namespace easydel::test
