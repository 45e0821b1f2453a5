// The keys of the section `eval`, benchmark evaluation. Evaluation by tasks is not built yet.
#pragma once

#include <array>
#include <optional>
#include <string>
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

  static constexpr auto doc = "Benchmark evaluation. It is not built yet; its keys are only checked.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    constexpr auto python = not_built("a Python object in YAML");
    return std::array{
        field<&C::num_fewshot>("Number of solved examples shown before each question; null: the task's own.",
                               at_least(0)),
        field<&C::max_new_tokens>("Maximum number of tokens in an answer.", at_least(1)),
        field<&C::hard_max_new_tokens>("Apply max_new_tokens even where the task sets its own limit."),
        field<&C::enable_thinking>("Turn on reasoning in chat templates that support it."),
        field<&C::chat_template_args>("Additional arguments for the chat template."),
        field<&C::think_start_token>("Token that begins the reasoning."),
        field<&C::think_end_token>("Token that ends the reasoning."),
        field<&C::ignore_benchmark_eos_flags>("Stop at the model's own end tokens instead of the task's."),
        field<&C::temperature>("Sampling temperature; 0: greedy.", at_least(0)),
        field<&C::top_p>("Sample from the smallest set of tokens whose probabilities add up to this.", between(0, 1)),
        field<&C::sampling_params>("Additional sampling parameters."),
        field<&C::normalize_math_answers>("Compare mathematical answers by value instead of as text."),
        field<&C::math_answer_task_hints>("Tasks with mathematical answers."),
        field<&C::code_eval_num_workers>("Number of processes that run generated code.", at_least(1)),
        field<&C::code_eval_timeout>("Seconds that generated code may run.", above(0)),
        field<&C::batch_size>("Number of requests in a batch."),
        field<&C::max_batch_size>("Maximum batch size if batch_size is auto.", at_least(1)),
        field<&C::device>("Device of the harness.", no_effect("the model runs where it is loaded")),
        field<&C::use_cache>("File that stores answers for later runs."),
        field<&C::limit>("Number of examples of each task, or their share if below 1; null: all.", above(0)),
        field<&C::cache_requests>("Cache the requests built from the tasks."),
        field<&C::rewrite_requests_cache>("Build cached requests again."),
        field<&C::delete_requests_cache>("Delete cached requests."),
        field<&C::check_integrity>("Test the tasks before the run."),
        field<&C::write_out>("Print some of the requests."),
        field<&C::log_samples>("Store every answer with the results."),
        field<&C::evaluation_tracker>("Tracker object; Python only.", python),
        field<&C::system_instruction>("System message."),
        field<&C::apply_chat_template>("Format questions with the chat template; a string names the template."),
        field<&C::fewshot_as_multiturn>("Show the solved examples as a conversation."),
        field<&C::gen_kwargs>("Additional generation arguments."),
        field<&C::task_manager>("Task manager object; Python only.", python),
        field<&C::verbosity>("Log level of the harness."),
        field<&C::predict_only>("Generate answers without scoring them."),
        field<&C::samples>("Indices of the examples to run, by task."),
        field<&C::bootstrap_iters>("Number of bootstrap samples for standard errors.", at_least(0)),
        field<&C::random_seed>("Random seed."),
        field<&C::numpy_random_seed>("Random seed of NumPy.", no_effect("random_seed is used for everything")),
        field<&C::torch_random_seed>("Random seed of PyTorch.", no_effect("random_seed is used for everything")),
        field<&C::fewshot_random_seed>("Random seed for choosing the solved examples."),
        field<&C::confirm_run_unsafe_code>("Allow tasks that run generated code on this machine."),
        field<&C::metadata>("Additional data stored with the results."),
        field<&C::include_path>("Folder with additional tasks."),
        field<&C::include_defaults>("Include the standard tasks."),
        field<&C::use_tqdm>("Show a progress bar."),
    };
  }
};

}  // namespace easydel::elarge
