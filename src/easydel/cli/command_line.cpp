// The only file that includes CLI11, which takes seconds to compile.
#include "easydel/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <new>
#include <sstream>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/cli/arguments.h"
#include "easydel/cli/command_tree.h"
#include "easydel/cli/command_words.h"
#include "easydel/cli/commands.h"
#include "easydel/cli/data.h"
#include "easydel/cli/doctor.h"
#include "easydel/cli/launch.h"
#include "easydel/cli/quantize.h"
#include "easydel/elarge/core.h"
#include "easydel/generation/generation_config.h"
#include "easydel/kernels/executor.h"
#include "easydel/kernels/isa.h"
#include "easydel/probe/commands.h"
#include "easydel/server/serve_config.h"

namespace easydel::cli {
namespace {

constexpr int user_error = 2, kBug = 70, kSignal = 128;

struct Options {
  int nproc = 1;
  bool quiet = false, version = false;
  RunOptions run;
  GenerateOptions generate;
  ChatOptions chat;
  ServeOptions serve;
  probe::LogitsCommand logits;
  probe::EngineCommand engine;
  probe::RolloutCommand rollout;
  probe::ReplayCommand replay;
  ScoreCommand score;
  EvalCommand eval;
  PerplexityCommand perplexity;
  ExportOptions export_;
  QuantizeOptions quantize;
  MergeOptions merge;
  DescribeModelOptions model;
  ModelOptions engine_model;
  DescribeMeshOptions mesh;
  DescribeRunOptions run_folder;
  DataCommand data;
  std::vector<std::string> files, plugins;
  probe::ToolsCommand tools;
  probe::ConstrainCommand constrain;
  RenderCommand render;
  std::string tokenizer, chat_template, lines = "-", keys, shell;
  TokenizeOptions tokenize;
  std::vector<int64_t> ids;
  bool check = false, markdown = false, skip_special = false;
  std::function<int()> command;  // the command that was requested
};

template <class T>
CLI::Option* add_optional(CLI::App* app, const std::string& flags, std::optional<T>& out, const std::string& doc) {
  return app->add_option_function<T>(
      flags, [&out](const T& value) { out = value; }, doc);
}

void add_constraint_flags(CLI::App* app, text::constrain::ConstraintFlags& out, const std::string& schema_flag,
                          const std::string& group) {
  add_optional(app, schema_flag, out.json_schema, "File with a JSON schema that the text satisfies")->group(group);
  app->add_flag("--json-object", out.json_object, "The text is a JSON object")->group(group);
  add_optional(app, "--regex", out.regex, "Regular expression that the whole text matches")->group(group);
  add_optional(app, "--grammar", out.grammar, "File with a grammar (GBNF) that the text follows")->group(group);
  app->add_option("--choice", out.choices, "Text to choose (may be repeated)")->allow_extra_args(false)->group(group);
  app->add_option(
         "--after", out.after,
         "Text or special token after which the constraint holds, such as </think>; all else is free text (may "
         "be repeated)")
      ->allow_extra_args(false)
      ->group(group);
  app->add_flag("--after-required", out.after_required, "Do not end before the first text of --after")->group(group);
  app->add_flag("--after-ends", out.after_ends, "End with what has followed a text of --after")->group(group);
}

// What every command with a loaded model takes.
void add_setting_flags(CLI::App* app, ModelOptions& options) {
  app->add_option("--tokenizer", options.tokenizer, "Tokenizer folder; default: the model's own");
  app->add_option("--dtype", options.dtype, "Dtype of the computation: auto (the checkpoint's), fp32, bf16");
  app->add_option("--device", options.device, "Device: auto, cpu or gpu");
  app->add_option("--set", options.set,
                  "Set a key of the configuration: --set quantization.method=nf4 (YAML; may be repeated)")
      ->allow_extra_args(false);
  app->add_option("--template", options.chat_template, "Chat template file; default: the tokenizer's template");
  app->add_option(
      "--adapter", options.adapter,
      "Folder of a LoRA adapter over the model, or a name in the section adapters (--set adapters.NAME=FOLDER)");
  app->add_flag("--random-weights", options.random_weights, "Use random weights if the folder has none (for tests)");
}

void add_folder_flags(CLI::App* app, ModelOptions& options, bool required = true) {
  app->add_option("model", options.model, "Model folder, or a name on the Hugging Face Hub (owner/name)")
      ->required(required);
  add_setting_flags(app, options);
}

// One flag per key of a table, so that the command line can say all that YAML can.
void add_key_flags(CLI::App* app, const config::Section& section, const std::string& group,
                   std::vector<std::pair<std::string, std::string>>& out) {
  for (const config::Key& key : section.keys) {
    std::string flag = "--" + key.name;
    for (const std::string& alias : key.aliases) flag += ",--" + alias;
    std::ranges::replace(flag, '_', '-');
    if (key.name == "max_new_tokens") flag = "-n," + flag;
    if (key.name == "temperature") flag = "-t," + flag;
    const bool yes_or_no = key.expects == "true or false";  // --do-sample alone is true
    const auto take = [&out, yes_or_no, name = key.name](const std::vector<std::string>& values) {
      for (const std::string& value : values) out.emplace_back(name, yes_or_no && value.empty() ? "true" : value);
      if (values.empty()) out.emplace_back(name, "true");
    };
    const bool works = key.not_built.empty() && key.no_effect.empty();
    CLI::Option* const option = app->add_option_function<std::vector<std::string>>(flag, take, key.doc)
                                    ->allow_extra_args(false)
                                    ->type_name("")
                                    ->group(works ? group : "");
    if (yes_or_no) option->expected(0, 1);
  }
}

void add_model_flags(CLI::App* app, ModelOptions& options) {
  add_folder_flags(app, options, false);
  app->add_option("--server", options.server,
                  "Address of a server that answers instead (http://HOST:PORT, unix:/path); MODEL is its name there");
  app->add_option("--key-file", options.key_file, "File with the API key for --server");
  add_key_flags(app, config::section_of<generation::GenerationConfig>(),
                "Generation (defaults come from the model's generation_config.json)", options.generation);
  app->add_option("--negative-prompt", options.negative_prompt,
                  "Negative prompt for classifier-free guidance; needs --guidance-scale");
}

CLI::App* add_command(CLI::App& parent, Options& options, const std::string& name, const std::string& doc,
                      const std::string& group, std::function<int()> command) {
  CLI::App* const app = parent.add_subcommand(name, doc);
  if (!group.empty()) app->group(group);
  app->fallthrough();
  app->allow_extras();  // unknown words are refused below, with a suggestion
  app->callback([&options, command] { options.command = command; });
  return app;
}

CommandEntry entry_of(const CLI::App& app) {
  CommandEntry out{app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    OptionEntry& entry = out.options.emplace_back();
    for (const std::string& name : option->get_snames()) entry.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) entry.names.push_back("--" + name);
    entry.argument = option->get_name(true);
    entry.doc = option->get_description();
    entry.takes_value = option->get_items_expected_max() > 0;
    entry.hidden = option->get_group().empty();
  }
  for (const CLI::App* child : app.get_subcommands({}))
    if (!child->get_group().empty()) out.commands.push_back(entry_of(*child));
  return out;
}

void add_probes(CLI::App& app, Options& o, const std::string& group) {
  CLI::App* const probes =
      app.add_subcommand("probe", "Compare with other implementations, by files of recorded cases");
  probes->group(group);
  probes->require_subcommand(1);
  probes->fallthrough();
  CLI::App* one = add_command(*probes, o, "logits", "Compute logits, loss and gradients of recorded inputs", "",
                              [&o] { return probe::run_logits(o.logits); });
  one->add_option("model", o.logits.model, "Model folder")->required();
  one->add_option("--inputs", o.logits.inputs, "Safetensors file to read the inputs from")->required();
  one->add_option("--output", o.logits.output, "Safetensors file to write")->required();
  one->add_option("--trace", o.logits.trace, "Safetensors file to write named intermediate tensors to");
  one->add_option("--device", o.logits.device, "Device: auto, cpu or gpu");
  one->add_option("--dtype", o.logits.dtype, "Dtype of the computation: fp32, bf16, auto (the checkpoint's)");
  one->add_option("--set", o.logits.set,
                  "Set a key of the configuration: quantization.*, base_config.values.attn_mechanism or moe_method")
      ->allow_extra_args(false);
  one->add_option("--adapter", o.logits.adapters, "LoRA adapter's folder (may be repeated)")->allow_extra_args(false);
  one->add_flag("--merged", o.logits.merged, "Merge the adapter into the weights first");
  one = add_command(*probes, o, "engine", "Answer the requests of a file with the engine", "",
                    [&o] { return probe::run_engine(o.engine, print); });
  one->add_option("model", o.engine.model, "Model folder")->required();
  one->add_option("--jsonl", o.engine.lines, "JSON Lines file to read; -: standard input");
  one->add_option("--set", o.engine.set, "Set a key of the configuration: esurge.page_size=16")
      ->allow_extra_args(false);
  one->add_option("--pages", o.engine.pages, "Number of pages of each kind, instead of what the free memory allows");
  one->add_option("--draft", o.engine.draft, "Model folder of a draft model");
  one->add_option("--adapter", o.engine.adapters, "NAME=FOLDER of an adapter that lines may name")
      ->allow_extra_args(false);
  one->add_option("--template", o.engine.chat_template, "Chat template file; default: the tokenizer's template");
  one = add_command(*probes, o, "rollout", "Sample completions as training does, and score them by its forward", "",
                    [&o] { return probe::run_rollout(o.rollout, print); });
  one->add_option("model", o.rollout.model, "Model folder")->required();
  one->add_option("--jsonl", o.rollout.lines, "JSON Lines file with prompts or prompt_token_ids; -: standard input");
  one->add_option("--temperature", o.rollout.temperature, "Temperature; 0: the likeliest token")
      ->check(CLI::NonNegativeNumber);
  one->add_option("--top-p", o.rollout.top_p, "Sample from the smallest set of tokens of this probability")
      ->check(CLI::Range(0.0, 1.0));
  one->add_option("--top-k", o.rollout.top_k, "Sample from this many of the likeliest tokens; 0: all")
      ->check(CLI::NonNegativeNumber);
  one->add_option("--max-new-tokens", o.rollout.max_new_tokens, "Tokens of a completion")->check(CLI::PositiveNumber);
  one->add_option("--group", o.rollout.group, "Completions per prompt")->check(CLI::PositiveNumber);
  one->add_option("--batch", o.rollout.batch, "Sequences that are decoded, and scored, together")
      ->check(CLI::PositiveNumber);
  one->add_option("--seed", o.rollout.seed, "Seed of the draws");
  one->add_option("--dtype", o.rollout.dtype, "Dtype of the computation: fp32, bf16, auto (the checkpoint's)");
  one = add_command(*probes, o, "replay", "Repeat a recorded training run with the trainer", "",
                    [&o] { return probe::run_replay(o.replay); });
  one->add_option("case", o.replay.test_case, "JSON file of the case")->required();
  one->add_option("--root", o.replay.root, "Folder with the models and batches")->required();
  one->add_option("--output", o.replay.output, "JSON Lines file to write, one line per step")->required();
  one->add_option("--params", o.replay.params, "JSON file to write sums of the parameters to after the last step");
  one->add_option("--generations", o.replay.generations,
                  "JSON Lines file to write the advantages of the recorded generations to");
  one = add_command(*probes, o, "tokenize", "Tokenize and detokenize the texts of a file", "",
                    [&o] { return probe::run_tokenize(o.tokenizer, o.lines, print); });
  one->add_option("--tokenizer", o.tokenizer, "Tokenizer folder or tokenizer.json")->required();
  one->add_option("--jsonl", o.lines, "JSON Lines file to read; -: standard input");
  one = add_command(*probes, o, "render", "Render the conversations of a file with chat templates", "",
                    [&o] { return probe::run_render(o.chat_template, o.lines, print); });
  one->add_option("--template", o.chat_template, "Template file; default: each line has its own template");
  one->add_option("--jsonl", o.lines, "JSON Lines file to read; -: standard input");
  one = add_command(*probes, o, "vectors", "Run recorded cases of EasyDeL, TRL and others", "",
                    [&o] { return probe::run_vectors(o.files, o.check, print); });
  one->add_option("files", o.files, "Files of recorded cases: easydel_vectors/*.json, trl_goldens/*/*.json")
      ->required();
  one->add_flag("--check", o.check, "Compare with the recorded results; exit status 1 if a case fails");
  one = add_command(*probes, o, "tools", "Parse tool calls and reasoning in the answers of a file", "",
                    [&o] { return probe::run_tools(o.tools, print); });
  one->add_option("--parser", o.tools.parser, "Format of tool calls; auto: detected from the template")->required();
  one->add_option("--reasoning-parser", o.tools.reasoning_parser, "Format of reasoning");
  one->add_option("--template", o.tools.chat_template, "Template file");
  one->add_option("--jsonl", o.tools.lines, "JSON Lines file to read; -: standard input");
  one->add_flag("--stream", o.tools.stream, "Parse each answer as a stream, character by character");
  one = add_command(*probes, o, "constrain", "Check the texts of a file against constrained output", "",
                    [&o] { return probe::run_constrain(o.constrain, print); });
  one->add_option("--tokenizer", o.constrain.tokenizer, "Tokenizer folder or tokenizer.json")->required();
  add_constraint_flags(one, o.constrain.constraint, "--json-schema,--schema", "OPTIONS");
  one->add_option("--jsonl", o.constrain.lines, "JSON Lines file to read; -: standard input");
}

void add_data_commands(CLI::App& app, Options& o, const std::string& group) {
  CLI::App* const parent = app.add_subcommand("data", "Show, check and count the data of a run (docs/data.md)");
  parent->group(group);
  parent->require_subcommand(1);
  parent->fallthrough();
  const auto add = [&](const std::string& name, const std::string& doc, int (*run)(const DataCommand&)) {
    CLI::App* const one = add_command(*parent, o, name, doc, "", [&o, name, run] {
      o.data.command = name;
      return run(o.data);
    });
    one->add_option("file,-c,--config", o.data.file, "YAML or JSON file of the run");
    one->add_option("--set", o.data.set, "Set a key of the configuration (YAML; may be repeated)")
        ->allow_extra_args(false);
    return one;
  };
  CLI::App* one =
      add("show", "Show rows as the model sees them: which tokens are learned, special, cut", run_data_show);
  one->add_option("--inform", o.data.inform, "Number (from 0) or name of the inform; default: the first");
  one->add_option("--row", o.data.row, "Number of the row (from 0), or its place, for example train.jsonl:17");
  add_optional(one, "--random", o.data.random, "Choose the row at random with this seed");
  one->add_option("--count", o.data.count, "Number of rows to show")->check(CLI::Range(1, 1 << 30));
  one->add_flag("--packed", o.data.packed, "Show packed rows");
  add_optional(one, "--epoch", o.data.epoch, "Number rows in the order of this epoch (from 0)");
  one->add_flag("--tokens", o.data.tokens, "Print a line per token: its id, the token, its text, what becomes of it");
  one->add_flag("--html", o.data.html, "Print an HTML page");
  one->add_flag("--json", o.data.json, "Print one JSON object per row: where, tokens, labels, lengths, weights");
  one = add("check", "Find every bad row; exit status 1 if there are any", run_data_check);
  one->add_option("--report", o.data.report, "JSON Lines file to write all bad rows to");
  one = add("stats", "Count rows, tokens, lengths, duplicates, and what packing would do", run_data_stats);
  one->add_option("--output", o.data.output, "SVG file to draw the lengths into");
  one->add_flag("--json", o.data.json, "Print JSON");
  one = add("order", "Print which rows each update learns from", run_data_order);
  one->add_option("--steps", o.data.steps, "Updates to print, for example 100..120; the first is 1")->required();
  add("prepare", "Tokenize the data into a token store, which runs map later", run_data_prepare);
  add("save", "Write what mixture.save asks for, without a run", run_data_save);
  one = add_command(*parent, o, "cache", "List, verify or remove token stores", "",
                    [&o] { return run_data_cache(o.data); });
  one->add_option("--cache-dir", o.data.cache, "Folder of the stores (mixture.cache_dir)");
  one->add_option("store", o.data.store, "Key of a store; default: all");
  one->add_flag("--verify", o.data.verify,
                "Read the stores whole and compare their hashes; exit status 1 if one differs");
  one->add_flag("--remove", o.data.remove, "Remove the stores");
}

void add_commands(CLI::App& app, Options& o) {
  const std::string work = "Commands", look = "Inspecting", compare = "Comparing and converting";
  CLI::App* one = nullptr;
  for (const char* name : {"elarge", "run"}) {
    const bool alias = std::string_view(name) == "run";
    one = add_command(app, o, name, alias ? "Same as elarge" : "Run a YAML file: train, generate, ...", work,
                      [&o] { return run_elarge(o.run); });
    one->add_option("file,-c,--config", o.run.file, "YAML or JSON file of the run");
    one->add_option("--set", o.run.set,
                    "Set a key of the configuration: --set trainer.learning_rate=1e-4 (YAML; may be repeated)")
        ->allow_extra_args(false);
    one->add_flag("--dry-run,--dry_run", o.run.dry_run,
                  "Print the actions and the whole configuration without running them");
  }
  one = add_command(app, o, "validate", "Check a YAML file without running it", work,
                    [&o] { return o.run.command = "validate", run_validate(o.run); });
  one->add_option("file,-c,--config", o.run.file, "YAML or JSON file of the run");
  one->add_option("--set", o.run.set, "Set a key of the configuration (YAML; may be repeated)")
      ->allow_extra_args(false);
  one = add_command(app, o, "generate", "Generate text that continues a prompt", work,
                    [&o] { return run_generate(o.generate); });
  add_model_flags(one, o.generate);
  one->add_option("-p,--prompt", o.generate.prompts, "Prompt to continue (may be repeated); default: standard input")
      ->allow_extra_args(false);
  one->add_option("--prompts-file", o.generate.prompts_file,
                  "File with a prompt on each line: text, or JSON Lines with 'prompt' or 'messages' (.jsonl); -: "
                  "standard input");
  one->add_flag("--chat", o.generate.chat, "Wrap each prompt as a user message with the chat template");
  one->add_flag("--jsonl", o.generate.jsonl, "Print one JSON object per result, as soon as it is complete");
  one->add_flag("!--no-echo", o.generate.echo, "Do not print the prompt before its continuation");
  one->add_flag("--stats", o.generate.stats, "Print tokens per second to standard error");
  one->add_option("--engine", o.generate.engine, "What generates: generator (the plain loop) or esurge (the engine)");
  one->add_option("--batch", o.generate.batch,
                  "Maximum number of sequences generated together; more are faster and need more memory")
      ->check(CLI::Range(1, 4096));
  add_constraint_flags(one, o.generate.constraint, "--json-schema", "Constrained output (docs/constrained_output.md)");
  one = add_command(app, o, "chat", "Chat with a model", work, [&o] { return run_chat(o.chat); });
  add_model_flags(one, o.chat);
  one->add_option("--system", o.chat.system, "System message");
  one = add_command(app, o, "serve", "Serve a model over an OpenAI-compatible HTTP API", work,
                    [&o] { return run_serve(o.serve); });
  one->add_option("model,--model", o.serve.models,
                  "Model folder, or a name on the Hugging Face Hub; for several models --model NAME=DIR for each");
  add_setting_flags(one, o.serve);
  one->add_option("--env-file", o.serve.env_file, "File with lines EASYDEL_SERVE_KEY=VALUE (docs/serving.md)");
  add_key_flags(one, config::section_of<server::ServeConfig>(), "Server (docs/serving.md)", o.serve.keys);

  one = add_command(app, o, "score", "Log-probabilities of given continuations, as JSON Lines", work,
                    [&o] { return run_score(o.score); });
  add_folder_flags(one, o.score);
  one->add_option("--jsonl", o.score.lines, "JSON Lines file to read; -: standard input");
  one->add_option("--max-length", o.score.settings.max_length,
                  "Tokens that the model reads of a request; 0: its positions")
      ->check(CLI::NonNegativeNumber);
  one->add_option("--batch", o.score.settings.batch,
                  "Maximum number of requests computed together; 0: as many as fill a pass")
      ->check(CLI::NonNegativeNumber);
  add_optional(one, "--prefix-token-id", o.score.settings.prefix_token_id,
               "Token that an empty context is; default: BOS, else EOS");
  one->add_flag("!--no-share", o.score.settings.share, "Compute beginnings again for each request that has them");
  one->add_flag("--engine", o.score.settings.engine,
                "Generate by the engine, which answers many prompts at once; the texts are the same");

  one = add_command(app, o, "eval", "Evaluate a model on benchmark tasks with lm-evaluation-harness", work,
                    [&o] { return run_eval(o.eval); });
  add_folder_flags(one, o.eval, false);
  one->add_option("--tasks", o.eval.tasks, "Names of tasks, separated by commas (may be repeated)")
      ->allow_extra_args(false);
  add_optional(one, "--num-fewshot", o.eval.num_fewshot,
               "Solved examples before each question; default: the task's own");
  one->add_option("--engine", o.eval.engine, "What generates answers: auto or esurge");
  one->add_option("-o,--output", o.eval.output, "JSON file, or folder, to write the results to");
  one->add_option("--compare", o.eval.compare, "Show the difference between two files of results")->expected(2);
  one->add_option("--tolerance", o.eval.tolerance, "With --compare: exit status 1 if a metric differs by more")
      ->check(CLI::NonNegativeNumber);

  one = add_command(app, o, "perplexity", "How well a model predicts files of text", work,
                    [&o] { return run_perplexity(o.perplexity); });
  add_folder_flags(one, o.perplexity);
  one->add_option("files", o.perplexity.files, "Files of text")->required();
  add_optional(one, "--stride", o.perplexity.stride,
               "Tokens from one window's begin to the next; default: windows with disjoint predictions");
  one->add_option("--context", o.perplexity.context, "Tokens of a window; 0: the model's positions")
      ->check(CLI::NonNegativeNumber);
  one->add_flag("--json", o.perplexity.json, "Print a JSON object for each file");
  one->add_option("--compare", o.perplexity.compare,
                  "A second model, also the same folder with --compare-set: how its predictions differ");
  one->add_option("--compare-set", o.perplexity.compare_set,
                  "Set a key of the second model's configuration: --compare-set quantization.method=nf4")
      ->allow_extra_args(false);

  one = add_command(app, o, "export", "Convert a model to GGUF or safetensors", work,
                    [&o] { return run_export(o.export_); });
  one->add_option("model", o.export_.model, "Model folder, .gguf file, or a name on the Hugging Face Hub (owner/name)")
      ->required();
  one->add_option("--format", o.export_.format, "gguf, or safetensors (a Hugging Face model folder)");
  one->add_option("--dtype", o.export_.dtype,
                  "Dtype of the weights: auto (the checkpoint's), f32, f16, bf16; gguf only: q8_0, q4_0");
  one->add_option("-o,--output", o.export_.output, "File (gguf) or folder (safetensors) to write")->required();
  one->add_option("--max-shard-size", o.export_.max_shard_size, "Maximum size of a safetensors file: 500MB, 2GiB")
      ->capture_default_str();
  one->add_option("--tokenizer", o.export_.tokenizer, "Tokenizer folder; default: the model's own");
  one->add_option("--pre", o.export_.pre, "Name of the pre-tokenizer for GGUF; needed only if it cannot be detected");

  one = add_command(app, o, "quantize", "Quantize a model to 4 or 8 bits", work,
                    [&o] { return run_quantize(o.quantize); });
  one->add_option("model", o.quantize.model, "Model folder, or a name on the Hugging Face Hub (owner/name)")
      ->required();
  one->add_option("--to", o.quantize.to,
                  "nf4, fp4 (bitsandbytes' files); int8, w4a16, fp8, mxfp4 (compressed-tensors'); q4_0, q8_0 (GGUF)")
      ->capture_default_str();
  one->add_option("-o,--out,--output", o.quantize.output, "Folder (q4_0, q8_0: file) to write")->required();
  one->add_option("--pattern", o.quantize.pattern,
                  "Regular expression that the paths of quantized layers match; default: all but the output layer");
  one->add_option("--text", o.quantize.texts, "Held-out text: print how its perplexity changes (may be repeated)")
      ->allow_extra_args(false);
  one->add_option("--max-shard-size", o.quantize.max_shard_size, "Maximum size of a safetensors file: 500MB, 2GiB")
      ->capture_default_str();

  one = add_command(app, o, "merge", "Merge LoRA adapters into a model", work, [&o] { return run_merge(o.merge); });
  one->add_option("model", o.merge.model, "Model folder, or a name on the Hugging Face Hub (owner/name)")->required();
  one->add_option("--adapter", o.merge.adapters, "Folder; DIR:0.5 adds a half")->required()->allow_extra_args(false);
  one->add_option("-o,--out,--output", o.merge.output, "Folder to write")->required();
  one->add_option("--dtype", o.merge.dtype, "Dtype of the saved weights: auto (the model's), fp32, bf16");
  one->add_option("--merge-base", o.merge.base, "Over codes: trained (the decoded ones), or original (those before)");
  one->add_flag("--merge-to-codes", o.merge.to_codes, "Round the merged weights to codes of the same format again");
  one->add_option("--set", o.merge.set, "The codes of the training: quantization.*")->allow_extra_args(false);
  add_data_commands(app, o, look);
  CLI::App* const describe =
      app.add_subcommand("describe", "Describe a model, an engine, a mesh, a training run or a key");
  describe->group(look);
  describe->require_subcommand(1);
  describe->fallthrough();
  one = add_command(*describe, o, "model", "Show family, sizes, parameters and files of a model", "",
                    [&o] { return run_describe_model(o.model); });
  one->add_option("model", o.model.model, "Model folder")->required();
  one->add_flag("--parameters", o.model.parameters, "List every tensor instead of grouping by layer");
  one->add_flag("--json", o.model.json, "Print JSON");
  one = add_command(*describe, o, "engine", "Load a model and show the limits of an engine over it", "",
                    [&o] { return run_describe_engine(o.engine_model); });
  add_folder_flags(one, o.engine_model);
  one = add_command(*describe, o, "mesh", "Show how the model of a run is sharded, without starting any ranks", "",
                    [&o] { return run_describe_mesh(o.mesh); });
  one->add_option("file", o.mesh.file, "YAML or JSON file of the run")->required();
  one->add_option("--devices", o.mesh.devices, "Number of ranks")->required()->check(CLI::Range(1, 1 << 20));
  one->add_option("--hosts", o.mesh.hosts, "Number of hosts; for sharding.dcn_axis_dims")
      ->check(CLI::Range(1, 1 << 20));
  one->add_option("--rank", o.mesh.rank, "Rank whose shards are shown")->check(CLI::Range(0, 1 << 20));
  one = add_command(*describe, o, "run", "Show what a training run was and its losses, or in what two runs differ", "",
                    [&o] { return run_describe_run(o.run_folder); });
  one->add_option("folder", o.run_folder.folder, "Folder of the run, with metrics.jsonl")->required();
  one->add_option("other", o.run_folder.other, "Folder of a run to compare with");
  one = add_command(*describe, o, "keys", "Explain the keys of a run", "",
                    [&o] { return run_describe_keys(o.keys, o.markdown); });
  one->add_option("path", o.keys, "Section or key, for example trainer or mixture.informs; default: all");
  one->add_flag("--markdown", o.markdown, "Print a Markdown page");
  add_command(app, o, "config-schema", "Print the JSON Schema of a run, for editors", look,
              [] { return run_config_schema(); });
  add_command(app, o, "doctor", "Show what this machine can do, and warn about problems", look,
              [] { return doctor(); });
  one = add_command(app, o, "completion", "Print a script that completes commands and options in a shell", look,
                    [&o, &app] { return print(completion_script(entry_of(app), o.shell)), 0; });
  one->add_option("shell", o.shell, "bash, zsh or fish")->required();
  add_command(app, o, "man", "Print the manual page, for man -l -", look,
              [&app] { return print(man_page(entry_of(app), EASYDEL_VERSION)), 0; });
  add_command(app, o, "version", "Print the version", look, [] { return print("easydel " EASYDEL_VERSION "\n"), 0; });
  add_probes(app, o, compare);
  one = add_command(app, o, "tokenize", "Print the token ids of a text", compare,
                    [&o] { return run_tokenize(o.tokenize); });
  one->add_option("tokenizer", o.tokenize.tokenizer, "Tokenizer folder or tokenizer.json")->required();
  add_optional(one, "text", o.tokenize.text, "Text to tokenize; default: standard input");
  one->add_flag("--no-special", o.tokenize.no_special, "Do not add special tokens such as BOS and EOS");
  one->add_flag("--tokens", o.tokenize.tokens, "Print a line per token: its id, the token, the text it stands for");
  add_optional(one, "--serve", o.tokenize.serve,
               "Answer the lines of probe tokenize at unix:/path or tcp://127.0.0.1:PORT (0: any) instead");
  one = add_command(app, o, "detokenize", "Print the text of token ids", compare,
                    [&o] { return run_detokenize(o.tokenizer, o.ids, o.skip_special); });
  one->add_option("tokenizer", o.tokenizer, "Tokenizer folder or tokenizer.json")->required();
  one->add_option("ids", o.ids, "Token ids")->required();
  one->add_flag("--skip-special", o.skip_special, "Leave out special tokens");
  one = add_command(app, o, "render", "Format a conversation with a chat template", compare,
                    [&o] { return run_render(o.render); });
  one->add_option("source", o.render.source, "Model folder with a chat template, or a template file")->required();
  one->add_option("messages", o.render.messages, "JSON file with the list of messages; -: standard input");
  one->add_option("--tools", o.render.tools, "JSON file with the list of tools");
  one->add_option("--set", o.render.set,
                  "Set a variable of the template: --set enable_thinking=false (YAML; may be repeated)")
      ->allow_extra_args(false);
  one->add_flag("!--no-generation-prompt", o.render.generation_prompt, "Do not add the beginning of the answer");
  one->add_flag("--ids", o.render.ids, "Print token ids instead of text");
  one->add_flag("--mask", o.render.mask, "Mark the tokens of the assistant");
  one->add_flag("--about", o.render.about, "Show what the template supports and how answers are parsed");
}

// The innermost command that was given.
CLI::App* deepest(CLI::App* app) {
  for (CLI::App* child : app->get_subcommands()) return deepest(child);
  return app;
}

std::string full_name(const CLI::App* app) {
  return app->get_parent() ? full_name(app->get_parent()) + " " + app->get_name() : app->get_name();
}

KnownWords known_words(const CLI::App* app) {
  KnownWords out{full_name(app), {}, {}};
  for (const CLI::App* at = app; at; at = at->get_parent())
    for (const CLI::Option* option : at->get_options())
      for (const std::string& name : option->get_lnames())
        if (!option->get_group().empty() && std::ranges::find(out.options, "--" + name) == out.options.end())
          out.options.push_back("--" + name);
  for (const CLI::App* child : app->get_subcommands({})) out.commands.push_back(child->get_name());
  return out;
}

// Refuses the words that no command took.
void refuse_rest(CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> rest = app.remaining(true);
  std::erase(rest, "--");
  if (rest.empty()) return;
  const CLI::App* at = deepest(&app);
  // A word before a command stands where a command is expected: `easydel describe modle model`.
  const auto place = [&](const std::string& word) { return std::ranges::find(words, word); };
  if (at->get_parent() && !rest[0].starts_with("-") && place(rest[0]) < place(at->get_name())) at = at->get_parent();
  refuse_word(known_words(at), rest[0]);
}

// Loads the plug-ins of the command line and of the environment (paths separated by colons).
void load_plugins(std::vector<std::string> files) {
  const char* const more = std::getenv("EASYDEL_PLUGINS");
  std::istringstream list(more ? more : "");
  for (std::string file; std::getline(list, file, ':');)
    if (!file.empty()) files.push_back(file);
  for (const std::string& file : files) elarge::core().load_plugin(file);
}

int run_command(int argc, char** argv) {
  Options options;
  CLI::App app("Load, train and run Hugging Face models. Documentation: README.md", "easydel");
  app.set_help_flag("-h,--help", "Print this help");
  app.set_help_all_flag("--help-all", "Print the help of all commands")->group("");
  app.add_option("--nproc", options.nproc, "Number of ranks to run on this machine")->check(CLI::Range(1, 4096));
  app.add_option("--plugin", options.plugins, "Shared library with additional model families (may be repeated)")
      ->allow_extra_args(false);
  app.add_flag("-q,--quiet", options.quiet, "Print only results, warnings and errors");
  app.add_flag("--version", options.version, "Print the version")->group("");
  app.allow_extras();
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);
  add_commands(app, options);
  const std::vector<std::string> words = with_command(argc, argv);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // as CLI11 takes them
  } catch (const CLI::Success& done) {                                  // --help
    refuse_rest(app, words);
    std::ostringstream text;
    const int status = app.exit(done, text, std::cerr);
    return print(text.str()), status;
  } catch (const CLI::ParseError& error) {
    refuse_rest(app, words);
    refuse_arguments(known_words(deepest(&app)), error.what());
  }
  CLI::App* const at = deepest(&app);
  refuse_rest(app, words);
  if (options.version) return print("easydel " EASYDEL_VERSION "\n"), 0;
  if (!options.command) return print(app.help()), 0;
  log::enabled(log::Level::info);  // reports wrong environment variables before anything else is done
  kernels::allowed_threads();
  kernels::choose_isa(std::getenv("EASYDEL_ISA") ? std::getenv("EASYDEL_ISA") : "");
  if (options.quiet) log::set_level(log::Level::warning);
  load_plugins(options.plugins);
  if (options.nproc > 1) options.run.ranks = options.nproc;
  if (options.nproc > 1 && at->get_name() != "validate") {
    const bool elarge = at->get_name() == "elarge" || at->get_name() == "run";
    if (!elarge && !ranks_can(full_name(at)))
      refuse("--nproc", full_name(at) + " on several ranks is not built yet",
             "built: elarge (run), generate, probe engine, serve, validate");
    if (elarge) check_elarge(options.run);
    return launch({.ranks = options.nproc, .arguments = without_nproc(argc, argv), .program = {}});
  }
  return options.command();
}

}  // namespace

int run(int argc, char** argv) {
  try {
    return run_command(argc, argv);
  } catch (const UserError& error) {
    std::cerr << error.what() << "\n";
    return user_error;
  } catch (const elarge::Interrupted& interrupted) {
    return kSignal + interrupted.signal;
  } catch (const Bug& bug) {
    std::cerr << "bug: " << bug.what() << "\n    this is a mistake of the program, not yours; please report it\n";
    return kBug;
  } catch (const std::bad_alloc&) {
    std::cerr << "out of memory\n    use a smaller batch, a shorter max_length, or bf16\n";
    return kBug;
  } catch (const std::exception& error) {
    std::cerr << "bug: " << error.what() << "\n    this is a mistake of the program, not yours; please report it\n";
    return kBug;
  }
}

}  // namespace easydel::cli
