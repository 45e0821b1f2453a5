// The keys of the section `eval`: how benchmark tasks are evaluated (elarge/evaluation.h).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/config/paths.h"

namespace easydel::elarge {

struct EvalConfig {
  std::optional<int64_t> num_fewshot;
  int64_t max_new_tokens = 8192;
  bool hard_max_new_tokens = false;
  std::optional<bool> enable_thinking;
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

  static constexpr auto doc = "Benchmark evaluation with lm-evaluation-harness.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    constexpr auto python = not_built("a Python object in YAML");
    return std::array{
        field<&C::num_fewshot>("Number of solved examples shown before each question; null: the task's own.",
                               at_least(0)),
        field<&C::max_new_tokens>(
            "Maximum number of tokens in an answer where the task sets no limit; no more than the "
            "context leaves.",
            at_least(1)),
        field<&C::hard_max_new_tokens>("Apply max_new_tokens even where the task sets its own limit."),
        field<&C::enable_thinking>(
            "Turn reasoning on or off in chat templates that support it; null: as the template has it."),
        field<&C::chat_template_args>("Additional arguments for the chat template."),
        field<&C::think_start_token>("Token that begins the reasoning; what follows it is no part of the answer."),
        field<&C::think_end_token>("Token that ends the reasoning; the answer is what follows it."),
        field<&C::ignore_benchmark_eos_flags>(
            "End answers at the model's own end tokens only, not at the task's stop strings."),
        field<&C::temperature>("Sampling temperature of tasks that do not sample by themselves; 0: greedy.",
                               at_least(0)),
        field<&C::top_p>("Sample from the smallest set of tokens whose probabilities add up to this.", between(0, 1)),
        field<&C::sampling_params>(
            "Generation keys that replace the task's, such as {top_k: 20, repetition_penalty: 1.1}."),
        field<&C::normalize_math_answers>("Add '#### N' with the last number, or with what \\boxed{} holds, to answers "
                                          "of math_answer_task_hints, if they "
                                          "have no such line."),
        field<&C::math_answer_task_hints>("Parts of the names of tasks with mathematical answers."),
        field<&C::code_eval_num_workers>("Number of processes that run generated code.", at_least(1)),
        field<&C::code_eval_timeout>("Seconds that generated code may run.", above(0)),
        field<&C::batch_size>("Maximum number of requests computed together; auto: as many as fill a pass. Changes "
                              "speed and memory only."),
        field<&C::max_batch_size>("Maximum batch size if batch_size is auto.", at_least(1)),
        field<&C::device>("Device of the harness.", no_effect("the model runs where it is loaded")),
        field<&C::use_cache>(
            "File that stores answers, so that a stopped evaluation goes on where it was. Answers of other weights, "
            "tokenizers or templates are never used."),
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
        field<&C::random_seed>("Random seed of the harness, and of sampled answers."),
        field<&C::numpy_random_seed>("Random seed of NumPy in the harness."),
        field<&C::torch_random_seed>("Random seed of PyTorch in the harness."),
        field<&C::fewshot_random_seed>("Random seed for choosing the solved examples."),
        field<&C::confirm_run_unsafe_code>("Allow tasks that run generated code on this machine."),
        field<&C::metadata>("Additional data stored with the results."),
        field<&C::include_path>("Folder with YAML files of additional tasks."),
        field<&C::include_defaults>("Include the standard tasks."),
        field<&C::use_tqdm>("Show a progress bar."),
    };
  }
  void settle(config::Keys& keys) {
    if (limit && !samples.is_null())
      keys.refuse("samples", "limit and samples cannot be given together", "give one of them");
    config::expand_path(include_path, keys, "include_path");
    config::expand_path(use_cache, keys, "use_cache");
    if (enable_thinking.value_or(false) && !think_end_token)
      keys.refuse("think_end_token", "enable_thinking needs the token that ends the reasoning",
                  "for example '</think>'");
    if (batch_size && std::holds_alternative<std::string>(*batch_size) &&
        !std::get<std::string>(*batch_size).starts_with("auto"))
      keys.refuse("batch_size", "is neither a number nor auto");
  }
};

}  // namespace easydel::elarge
