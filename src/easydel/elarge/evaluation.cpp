#include "easydel/elarge/evaluation.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/elarge/answer_cache.h"

namespace easydel::elarge {
namespace {

Value value_of(const std::optional<int64_t>& number) { return number ? Value::integer(*number) : Value(); }
Value value_of(const std::optional<double>& number) {
  if (!number) return {};
  return *number >= 1 ? Value::integer(int64_t(*number)) : Value::number(*number);
}
Value value_of(const std::optional<std::string>& text) { return text ? Value::text(*text) : Value(); }
Value value_of(const std::variant<bool, std::string>& either) {
  return std::holds_alternative<bool>(either) ? Value::boolean(std::get<bool>(either))
                                              : Value::text(std::get<std::string>(either));
}
Value list_of(const std::vector<std::string>& texts) {
  Value out = Value::list();
  for (const std::string& text : texts) out.items.push_back(Value::text(text));
  return out;
}

// The arguments of lm_eval.simple_evaluate.
Value arguments_of(const EvaluationPlan& plan) {
  const EvalConfig& c = plan.settings;
  Value out = Value::map();
  out.set("num_fewshot", value_of(plan.action.num_fewshot ? plan.action.num_fewshot : c.num_fewshot));
  out.set("limit", value_of(c.limit));
  out.set("samples", c.samples);
  out.set("bootstrap_iters", Value::integer(c.bootstrap_iters));
  out.set("check_integrity", Value::boolean(c.check_integrity));
  out.set("write_out", Value::boolean(c.write_out));
  out.set("log_samples", Value::boolean(c.log_samples));
  out.set("system_instruction", value_of(c.system_instruction));
  out.set("apply_chat_template", value_of(c.apply_chat_template));
  out.set("fewshot_as_multiturn", Value::boolean(c.fewshot_as_multiturn));
  if (std::holds_alternative<std::string>(c.gen_kwargs))
    out.set("gen_kwargs", Value::text(std::get<std::string>(c.gen_kwargs)));
  else
    out.set("gen_kwargs", std::get<Value>(c.gen_kwargs));
  out.set("predict_only", Value::boolean(c.predict_only));
  out.set("random_seed", value_of(c.random_seed));
  out.set("numpy_random_seed", value_of(c.numpy_random_seed));
  out.set("torch_random_seed", value_of(c.torch_random_seed));
  out.set("fewshot_random_seed", value_of(c.fewshot_random_seed));
  out.set("confirm_run_unsafe_code", Value::boolean(c.confirm_run_unsafe_code));
  out.set("cache_requests", Value::boolean(c.cache_requests));
  out.set("rewrite_requests_cache", Value::boolean(c.rewrite_requests_cache));
  out.set("delete_requests_cache", Value::boolean(c.delete_requests_cache));
  out.set("metadata", c.metadata);
  return out;
}

// What the adapter does with requests.
Value adapter_of(const EvaluationPlan& plan) {
  const EvalConfig& c = plan.settings;
  Value out = Value::map();
  out.set("chat_template_args", c.chat_template_args);
  out.set("enable_thinking", c.enable_thinking ? Value::boolean(*c.enable_thinking) : Value());
  out.set("think_start_token", value_of(c.think_start_token));
  out.set("think_end_token", value_of(c.think_end_token));
  out.set("ignore_benchmark_eos_flags", Value::boolean(c.ignore_benchmark_eos_flags));
  out.set("temperature", Value::number(c.temperature));
  out.set("top_p", Value::number(c.top_p));
  out.set("sampling_params", c.sampling_params);
  out.set("normalize_math_answers", Value::boolean(c.normalize_math_answers));
  out.set("math_answer_task_hints", list_of(c.math_answer_task_hints));
  out.set("seed", value_of(c.random_seed));
  return out;
}

Value preparation_of(const EvaluationPlan& plan, int64_t number) {
  const EvalConfig& c = plan.settings;
  Value out = Value::map(), code = Value::map(), message = Value::map();
  out.set("tasks", list_of(plan.action.tasks));
  out.set("include_path", value_of(c.include_path));
  out.set("include_defaults", Value::boolean(c.include_defaults));
  out.set("metadata", c.metadata);
  out.set("verbosity", c.verbosity);
  out.set("model_name", Value::text(plan.model_name));
  if (c.batch_size)
    out.set("batch_size", std::holds_alternative<int64_t>(*c.batch_size)
                              ? Value::integer(std::get<int64_t>(*c.batch_size))
                              : Value::text(std::get<std::string>(*c.batch_size)));
  out.set("evaluate", arguments_of(plan));
  out.set("model", adapter_of(plan));
  code.set("num_workers", value_of(c.code_eval_num_workers));
  code.set("timeout", c.code_eval_timeout ? Value::number(*c.code_eval_timeout) : Value());
  out.set("code_eval", code);
  message.set("prepare", out);
  message.set("evaluation", Value::integer(number));
  return message;
}

LineSettings line_settings(const EvaluationPlan& plan) {
  LineSettings out;
  out.where = "eval";
  const EvalConfig& c = plan.settings;
  if (c.batch_size && std::holds_alternative<int64_t>(*c.batch_size))
    out.batch = std::get<int64_t>(*c.batch_size);
  else if (c.max_batch_size)
    out.batch = *c.max_batch_size;
  out.max_new_tokens = c.max_new_tokens;
  out.hard_max_new_tokens = c.hard_max_new_tokens;
  return out;
}

// What the session says of its model.
Value about(Session& session, const LineSettings& settings, bool digests) {
  Value out;
  session.answer_lines({digests ? R"({"about": true, "digests": true})" : R"({"about": true})"}, settings,
                       [&](size_t, const std::string& answer) { out = parse_json(answer); });
  return out;
}

// "model_name/results_2026-01-31T12-00-00.000000.json", as the harness calls it.
std::string date_text() {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::tm local = {};
  ::localtime_r(&now.tv_sec, &local);
  char date[32], text[64];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H-%M-%S", &local);
  std::snprintf(text, sizeof text, "%s.%06ld", date, now.tv_nsec / 1000);
  return text;
}

// As the harness makes a folder's name of a model's: everything but letters, digits, - and _ becomes "__".
std::string folder_name(const std::string& model) {
  std::string out;
  for (const char c : model) {
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' || c == '.';
    out += plain ? std::string(1, c) : "__";
  }
  return out;
}

// "hellaswag: 100 documents in 4.1 s" of each task.
std::string times_text(const Value& seconds, const Value& documents) {
  std::string out;
  for (const auto& [task, time] : seconds.entries) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", time.as_double().value_or(0));
    out += str(task, ": ", counted(documents.find(task)->as_int().value_or(0), "document"), " in ", text, " s\n");
  }
  return out;
}

// Adds the results of a task to those of others.
void add_results(Value& all, const Value& part) {
  for (const auto& [key, value] : part.entries) {
    Value* const known = all.find(key);
    if (!known)
      all.set(key, value);
    else if (known->is_map() && value.is_map() && key != "config")
      for (const auto& [name, one] : value.entries) known->set(name, one);
  }
}

// `date`: as date_text() has it; an evaluation has one.
void write_results(const std::string& path, const Value& document, const std::string& date) {
  if (path.ends_with(".json")) {
    files::write(path, to_json(document, 2) + "\n");
    log::info("wrote ", path);
    return;
  }
  const Value* const name = document.find("model_name");
  const std::filesystem::path folder = std::filesystem::path(path) / folder_name(name ? name->scalar : "model");
  files::make_directories(folder);
  Value results = document;
  if (const Value* const samples = document.find("samples"); samples && samples->is_map()) {
    for (const auto& [task, lines] : samples->entries) {
      std::string text;
      for (const Value& line : lines.items) text += to_json(line) + "\n";
      files::write(folder / str("samples_", task, "_", date, ".jsonl"), text);
    }
    std::erase_if(results.entries, [](const auto& entry) { return entry.first == "samples"; });
  }
  const std::filesystem::path file = folder / str("results_", date, ".json");
  files::write(file, to_json(results, 2) + "\n");
  log::info("wrote ", file.string());
}

// The key `easydel` of a document of results.
Value facts_of(const Value& model, const HarnessPython& python) {
  Value out = Value::map();
  for (const char* key :
       {"version", "order", "isa", "weights_digest", "tokenizer_digest", "template_digest", "training_template_digest"})
    if (const Value* const fact = model.find(key)) out.set(key, *fact);
  out.set("lm_eval", Value::text(python.version));
  return out;
}

// Warns if conversations are formatted otherwise than those that the model was trained on.
void compare_templates(const EvaluationPlan& plan, const Value& model) {
  const auto& asked = plan.settings.apply_chat_template;
  if (const bool* const on = std::get_if<bool>(&asked); on && !*on) return;
  const Value *const now = model.find("chat_template"), *const trained = model.find("training_template");
  if (!now || !trained || now->scalar == trained->scalar) return;
  const std::string &before = trained->scalar, &used = now->scalar;
  const auto at = size_t(std::ranges::mismatch(before, used).in1 - before.begin());
  const auto line_at = [at](const std::string& text) {
    const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    return text.substr(begin, text.find('\n', at) - begin);
  };
  log::warning(plan.where, ": the chat template is not the one that the model was trained with; line ",
               std::count(before.begin(), before.begin() + std::ptrdiff_t(at), '\n') + 1, " is '", line_at(used),
               "', and was '", line_at(before), "'");
}

}  // namespace

Evaluation::Evaluation(EvaluationPlan plan, std::shared_ptr<Harness> harness, bool first_rank)
    : plan_(std::move(plan)), harness_(std::move(harness)) {
  if (!first_rank) return;
  const bool bars = plan_.settings.use_tqdm && ::isatty(STDERR_FILENO) != 0;
  if (!harness_) harness_ = std::make_shared<Harness>(plan_.where, bars);
  number_ = harness_->new_number();
  prepare();
}

void Evaluation::prepare() {
  HarnessProcess& process = harness_->process(plan_.where);
  if (prepared_ == harness_->starts()) return;
  const Value ready = process.ask(preparation_of(plan_, number_), "ready");
  names_.clear();
  for (const Value& name : ready.find("names")->items) names_.push_back(name.scalar);
  prepared_ = harness_->starts();
}

Value Evaluation::run(Session& session, const EvaluationRun& how) {
  bool stopped = false;
  Value document;
  try {
    document = session.on_first_rank([&] { return run_here(session, how); });
  } catch (const UserError&) {
    stopped = how.stop && how.stop->load();
    if (!stopped) throw;
  }
  if (stopped) throw Stopped();
  return document;
}

Value Evaluation::run_here(Session& session, const EvaluationRun& how) {
  prepare();
  HarnessProcess& process = harness_->process(plan_.where);
  LineSettings settings = line_settings(plan_);
  settings.stop = how.stop;
  settings.engine = how.engine;
  const auto begin = Clock::now();
  const Value model = about(session, settings, how.digests || plan_.settings.use_cache);
  compare_templates(plan_, model);
  std::optional<AnswerCache> cache;
  if (plan_.settings.use_cache) {
    std::string key;
    for (const char* part : {"weights_digest", "tokenizer_digest", "template_digest", "dtype", "max_length", "order"})
      key += to_json(*model.find(part)) + " ";
    cache.emplace(*plan_.settings.use_cache, str(key, settings.max_new_tokens, settings.hard_max_new_tokens));
  }
  double answering = 0;
  size_t cached = 0, asked = 0, answered = 0;
  const auto answer = [&](const std::vector<std::string>& lines, const HarnessProcess::GiveAnswer& give) {
    const auto start = Clock::now();
    std::vector<std::string> open;
    std::vector<size_t> numbers;
    asked += lines.size();
    if (how.on_asked) how.on_asked(int64_t(lines.size()));
    const auto give_one = [&](size_t line, const std::string& text) {
      give(line, text), ++answered;
      if (how.on_answer) how.on_answer();
    };
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string* const known = cache ? cache->find(lines[i]) : nullptr;
      if (known) {
        give_one(i, *known), ++cached;
      } else {
        open.push_back(lines[i]), numbers.push_back(i);
      }
    }
    session.answer_lines(open, settings, [&](size_t line, const std::string& text) {
      if (cache) cache->add(open[line], text);
      give_one(numbers[line], text);
    });
    if (answered < asked) refuse(plan_.where, "was stopped before all requests were answered");
    answering += seconds_since(start);
  };
  Value message = Value::map();
  message.set("run", Value::map());
  message.set("evaluation", Value::integer(number_));
  Value finished = Value::map();
  std::vector<std::string> unfinished = names_;
  const Value results = process.ask(message, "results", answer, [&](const Value& news) {
    const Value* const task = news.find("task");
    if (!task) return;
    log::info("eval: ", task->find("name")->scalar, " took ", task->find("seconds")->as_double().value_or(0), " s");
    std::erase(unfinished, task->find("name")->scalar);
    const Value* const part = task->find("results");
    if (!how.on_finished || !part || unfinished.empty()) return;
    add_results(finished, *part);
    Value document = finished, own = facts_of(model, harness_->python());
    own.set("unfinished", list_of(unfinished));
    document.set("easydel", std::move(own));
    document.set("model_name", Value::text(plan_.model_name));  // names the folder
    how.on_finished(document);
  });
  table_ = results.find("table")->scalar;
  if (const Value* const groups = results.find("groups"); groups && !groups->scalar.empty())
    table_ += "\n" + groups->scalar;
  Value document = *results.find("document"), facts = facts_of(model, harness_->python());
  if (const Value* const times = results.find("seconds")) {
    table_ += "\n" + times_text(*times, *results.find("items"));
    facts.set("seconds", *times);
  }
  document.set("easydel", std::move(facts));
  const double seconds = seconds_since(begin);
  log::info("eval: ", counted(int64_t(asked), "request"), " in ", seconds, " s",
            cached > 0 ? str(", ", cached, " of them from ", *plan_.settings.use_cache) : std::string(),
            "; the harness' own share is ", int64_t(100 * std::max(0.0, 1 - answering / std::max(seconds, 1e-9))),
            " %");
  return document;
}

Value Evaluation::report(Session& session, const Output& out) {
  EvaluationRun how;
  const std::string date = date_text();
  const auto write = [&](const Value& document) { write_results(*plan_.action.output_path, document, date); };
  if (plan_.action.output_path && harness_) how.on_finished = write;
  Value document = run(session, how);
  if (how.on_finished) write(document);
  if (plan_.action.print_results && out) out(table_ + "\n");
  return document;
}

const Value* metric_of(const Value& document, const std::string& task, const std::string& metric) {
  const Value* const results = document.find("results");
  const Value* const own = results ? results->find(task) : nullptr;
  if (!own || !own->is_map()) return nullptr;
  if (const Value* const exact = own->find(metric)) return exact;
  if (const Value* const plain = own->find(metric + ",none")) return plain;
  for (const auto& [name, value] : own->entries)
    if (name.starts_with(metric + ",")) return &value;
  return nullptr;
}

}  // namespace easydel::elarge
