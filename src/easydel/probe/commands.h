// The commands `easydel probe ...` without their options, which cli parses. Each writes its results to `out`, returns
// the exit status and throws UserError for errors that the user can fix. A face: no torch.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "easydel/elarge/core.h"
#include "easydel/text/constrain/constraint_flags.h"

namespace easydel::probe {

using elarge::Output;

struct LogitsCommand {
  std::string dtype = "fp32";
  std::string model, inputs, output, trace, device = "auto";
  std::vector<std::string> set;       // keys of a run: of its quantization, and how attention and experts are computed
  std::vector<std::string> adapters;  // folders
  bool merged = false;
};
int run_logits(const LogitsCommand& command);
struct EngineCommand {
  std::string model, lines = "-", draft, chat_template;
  std::vector<std::string> set;  // keys of a run
  std::optional<int64_t> pages;
  std::vector<std::string> adapters;  // NAME=FOLDER
};
int run_engine(const EngineCommand& command, const Output& out);
struct RolloutCommand {
  std::string model, lines = "-", dtype = "fp32";
  double temperature = 1, top_p = 1;
  int64_t top_k = 0, max_new_tokens = 64, group = 1, batch = 16;
  uint64_t seed = 0;
};
int run_rollout(const RolloutCommand& command, const Output& out);
struct ReplayCommand {
  std::string test_case, root, output, params, generations;
};
int run_replay(const ReplayCommand& command);
// `lines`: a file of JSON Lines, or "-".
int run_tokenize(const std::string& tokenizer, const std::string& lines, const Output& out);
struct ToolsCommand {
  std::string parser, reasoning_parser, chat_template, lines = "-";
  bool stream = false;
};
int run_tools(const ToolsCommand& command, const Output& out);
struct ConstrainCommand {
  std::string tokenizer, lines = "-";
  text::constrain::ConstraintFlags constraint;
};
int run_constrain(const ConstrainCommand& command, const Output& out);
int run_render(const std::string& chat_template, const std::string& lines, const Output& out);
// 1 where `check` and a case failed.
int run_vectors(const std::vector<std::string>& files, bool check, const Output& out);

}  // namespace easydel::probe
