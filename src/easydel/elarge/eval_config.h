// The keys of the section `eval`, benchmark evaluation. Evaluation by tasks is not built yet.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "easydel/config/fields.h"

namespace easydel::elarge {

struct EvalConfig {
  std::optional<int64_t> num_fewshot;
  int64_t max_new_tokens = 8192;
  bool hard_max_new_tokens = false;
  bool enable_thinking = false;
  Value chat_template_args;
  std::optional<std::string> think_start_token, think_end_token;
  bool ignore_benchmark_eos_flags = false;
  double temperature = 0;
  double top_p = 0.95;
  Value sampling_params;
  bool normalize_math_answers = false;
  config::Many<std::string> math_answer_task_hints;
  std::optional<int64_t> code_eval_num_workers;
  std::optional<double> code_eval_timeout;
  std::optional<std::variant<int64_t, std::string>> batch_size;
  std::optional<int64_t> max_batch_size;
  std::optional<std::string> device, use_cache;
  std::optional<double> limit;
  bool cache_requests = false, rewrite_requests_cache = false, delete_requests_cache = false;
  bool check_integrity = false, write_out = false, log_samples = true;
  Value evaluation_tracker;
  std::optional<std::string> system_instruction;
  std::variant<bool, std::string> apply_chat_template = false;
  bool fewshot_as_multiturn = false;
  std::variant<std::string, Value> gen_kwargs = Value{};
  Value task_manager, verbosity;
  bool predict_only = false;
  Value samples;
  int64_t bootstrap_iters = 100000;
  std::optional<int64_t> random_seed = 0, numpy_random_seed = 1234, torch_random_seed = 1234,
                         fewshot_random_seed = 1234;
  bool confirm_run_unsafe_code = false;
  Value metadata;
  std::optional<std::string> include_path;
  bool include_defaults = true;
  bool use_tqdm = true;

  static constexpr auto doc = "Benchmark evaluation; its keys are checked, the evaluation is not built yet.";
  static constexpr auto fields() {
    using namespace config;
    constexpr auto python = not_built("a Python object in YAML");
    return std::tuple{
        field<&EvalConfig::num_fewshot>("Examples shown before each question; null: the task's.", at_least(0)),
        field<&EvalConfig::max_new_tokens>("Longest reply.", at_least(1)),
        field<&EvalConfig::hard_max_new_tokens>("That length also over the task's own."),
        field<&EvalConfig::enable_thinking>("Templates that think do."),
        field<&EvalConfig::chat_template_args>("More arguments of the chat template."),
        field<&EvalConfig::think_start_token>("Begins reasoning."),
        field<&EvalConfig::think_end_token>("Ends reasoning."),
        field<&EvalConfig::ignore_benchmark_eos_flags>("Stop as the model does, not as the task says."),
        field<&EvalConfig::temperature>("0: greedy.", at_least(0)),
        field<&EvalConfig::top_p>("Share of probability sampled from.", between(0, 1)),
        field<&EvalConfig::sampling_params>("More sampling parameters."),
        field<&EvalConfig::normalize_math_answers>("Compare answers as numbers."),
        field<&EvalConfig::math_answer_task_hints>("Tasks with such answers."),
        field<&EvalConfig::code_eval_num_workers>("Processes that run code.", at_least(1)),
        field<&EvalConfig::code_eval_timeout>("Seconds a piece of code may run.", above(0)),
        field<&EvalConfig::batch_size>("Requests together."),
        field<&EvalConfig::max_batch_size>("Most of them.", at_least(1)),
        field<&EvalConfig::device>("Device of the harness.", no_effect("the model runs where it is loaded")),
        field<&EvalConfig::use_cache>("File that keeps answers."),
        field<&EvalConfig::limit>("Examples per task: a number, or a share below 1; null: all.", above(0)),
        field<&EvalConfig::cache_requests>("Keep built requests."),
        field<&EvalConfig::rewrite_requests_cache>("Build kept requests anew."),
        field<&EvalConfig::delete_requests_cache>("Delete kept requests."),
        field<&EvalConfig::check_integrity>("Check the tasks first."),
        field<&EvalConfig::write_out>("Show some requests."),
        field<&EvalConfig::log_samples>("Keep every answer."),
        field<&EvalConfig::evaluation_tracker>("A tracker; Python only.", python),
        field<&EvalConfig::system_instruction>("The system message."),
        field<&EvalConfig::apply_chat_template>("Ask through the chat template; a text names one."),
        field<&EvalConfig::fewshot_as_multiturn>("Examples as a conversation."),
        field<&EvalConfig::gen_kwargs>("More generation arguments."),
        field<&EvalConfig::task_manager>("A task manager; Python only.", python),
        field<&EvalConfig::verbosity>("Log level of the harness."),
        field<&EvalConfig::predict_only>("Answer without scoring."),
        field<&EvalConfig::samples>("Which examples, by task."),
        field<&EvalConfig::bootstrap_iters>("Draws for standard errors.", at_least(0)),
        field<&EvalConfig::random_seed>("Seed."),
        field<&EvalConfig::numpy_random_seed>("Seed.", no_effect("one seed serves all")),
        field<&EvalConfig::torch_random_seed>("Seed.", no_effect("one seed serves all")),
        field<&EvalConfig::fewshot_random_seed>("Seed of the examples."),
        field<&EvalConfig::confirm_run_unsafe_code>("Allow tasks that run generated code."),
        field<&EvalConfig::metadata>("Kept with the results."),
        field<&EvalConfig::include_path>("Folder with more tasks."),
        field<&EvalConfig::include_defaults>("Know the standard tasks."),
        field<&EvalConfig::use_tqdm>("Show progress."),
    };
  }
};

}  // namespace easydel::elarge
