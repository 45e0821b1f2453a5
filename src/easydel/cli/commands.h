// The commands of the program; command_line.cpp parses their options. Each returns the exit status and throws UserError
// for errors that the user can fix. Results go to standard output, everything else to standard error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/elarge/core.h"
#include "easydel/text/constrain/constraint_flags.h"

namespace easydel::cli {

struct RunOptions {
  std::string command = "elarge";  // its name in errors
  std::string file;
  std::vector<std::string> set;  // "trainer.learning_rate=1e-4"
  bool dry_run = false;
  int ranks = 0;  // number of ranks; 0: from the environment
};
int run_elarge(const RunOptions& options);
int run_validate(const RunOptions& options);  // only checks
// Reads and checks the run without running it; the launcher does so before it starts ranks.
void check_elarge(const RunOptions& options);

struct ModelOptions {
  std::string model;  // folder, or a name on the Hugging Face Hub
  std::string tokenizer;
  std::string dtype = "auto";
  std::string device = "auto";
  // Keys of generation::GenerationConfig and their YAML values: {"temperature", "0.7"}.
  std::vector<std::pair<std::string, std::string>> generation;
  std::string negative_prompt;
  std::vector<std::string> set;  // keys of a run: "quantization.method=nf4"
  std::string chat_template;     // file that replaces the tokenizer's template; empty: none
  std::string adapter;           // folder of an adapter over the model; empty: none
  bool random_weights = false;   // generate from random values where the folder has no weights
  std::string server, key_file;  // address of a server that answers instead, and the file with its API key
};
struct GenerateOptions : ModelOptions {
  std::vector<std::string> prompts;
  std::string prompts_file;  // lines of text, or JSON Lines; empty: none. Without prompts, standard input is the prompt
  bool chat = false;         // wrap each prompt as a user message
  bool jsonl = false;
  bool echo = true;                  // print the prompt before its continuation
  bool stats = false;                // print tokens per second
  int64_t batch = 16;                // maximum number of sequences generated together
  std::string engine = "generator";  // or "esurge"
  text::constrain::ConstraintFlags constraint;
};
int run_generate(const GenerateOptions& options);

struct ChatOptions : ModelOptions {
  std::string system;
};
int run_chat(const ChatOptions& options);

struct ScoreCommand : ModelOptions {
  std::string lines = "-";  // JSON Lines file; -: standard input
  elarge::LineSettings settings;
};
// Answers each line (docs/evaluation.md) in order. An empty line asks for the answers to the lines before it.
int run_score(const ScoreCommand& command);

struct ServeOptions : ModelOptions {
  std::vector<std::string> models;                        // folders or names; where there are several, NAME=DIR
  std::vector<std::pair<std::string, std::string>> keys;  // of the action `serve` and their YAML values
  std::string env_file;                                   // file with lines EASYDEL_SERVE_KEY=VALUE; empty: none
};
int run_serve(ServeOptions options);

struct PerplexityCommand : ModelOptions {
  std::vector<std::string> files;
  std::optional<int64_t>
      stride;           // windows begin so many tokens apart; nothing: each token predicted once, as the harness
  int64_t context = 0;  // tokens of a window; 0: the model's positions
  bool json = false;
  std::string compare;                   // a second model; empty: none
  std::vector<std::string> compare_set;  // keys of its run
};
int run_perplexity(const PerplexityCommand& command);

struct EvalCommand : ModelOptions {
  std::vector<std::string> tasks;  // names, also several in one, separated by commas
  std::optional<int64_t> num_fewshot;
  std::string output, engine = "auto";
  std::vector<std::string> compare;  // two files of results
  double tolerance = 0;
};
// The action eval without a file, or the difference between two results.
int run_eval(const EvalCommand& command);

struct ExportOptions {
  std::string model, format = "gguf", dtype = "auto", output;
  std::string tokenizer;  // empty: the model's own
  std::string pre;        // name of the pre-tokenizer for GGUF, if it cannot be detected
  std::string max_shard_size = "5GiB";
};
int run_export(const ExportOptions& options);

struct MergeOptions {
  std::string model, output, dtype = "auto";
  std::vector<std::string> adapters;  // DIR, or DIR:WEIGHT
  std::string base = "trained";       // lora.merge_base
  bool to_codes = false;
  std::vector<std::string> set;  // quantization.*
};
int run_merge(const MergeOptions& options);

struct DescribeModelOptions {
  std::string model;
  bool parameters = false;  // list every tensor instead of grouping by layer
  bool json = false;
};
int run_describe_model(const DescribeModelOptions& options);
// Of a folder with adapter_config.json. UserError as read_adapter_config, or if it has no weights.
int describe_adapter(const std::filesystem::path& folder, const DescribeModelOptions& options);
// "model.layers.17.mlp.up_proj.weight" -> "model.layers.*.mlp.up_proj.weight"
std::string without_index(const std::string& name);
// The limits of the engine that `serve` would have with the same flags.
int run_describe_engine(const ModelOptions& options);
struct DescribeMeshOptions {
  std::string file;
  int64_t devices = 0, hosts = 1, rank = 0;
};
int run_describe_mesh(const DescribeMeshOptions& options);
struct DescribeRunOptions {
  std::string folder;  // of the run, or of one of its checkpoints
  std::string other;   // of another run to compare with; empty: none
};
int run_describe_run(const DescribeRunOptions& options);
// The keys at and below `path` ("trainer", "mixture.informs"); empty: all.
int run_describe_keys(const std::string& path, bool markdown);
int run_config_schema();

struct TokenizeOptions {
  std::string tokenizer;             // a folder, a file or a name
  std::optional<std::string> text;   // nothing: standard input
  std::optional<std::string> serve;  // an address: answer the lines of probe tokenize there until SIGINT or SIGTERM
  bool no_special = false;
  bool tokens = false;  // a line per token: its id, the token in the vocabulary, the text it stands for
};
int run_tokenize(const TokenizeOptions& request);
int run_detokenize(const std::string& tokenizer, const std::vector<int64_t>& ids, bool skip_special);
struct RenderCommand {
  std::string source;            // a folder with a tokenizer, or a template file
  std::string messages = "-";    // JSON: the list of messages, or a map with "messages"
  std::string tools;             // JSON file with the tools; empty: none
  std::vector<std::string> set;  // variables of the template: "enable_thinking=false"
  bool generation_prompt = true, ids = false, mask = false;
  bool about = false;  // describe the template instead of rendering
};
// Prints the text; with `ids` the token ids; with `mask` the text of the assistant in colour, or between marks without
// a colour terminal.
int run_render(const RenderCommand& command);

// docs/keys.md.
std::string keys_markdown();

// What commands share.
void print(std::string_view text);                // to standard output, flushed
std::string read_input(const std::string& file);  // "-": standard input

}  // namespace easydel::cli
