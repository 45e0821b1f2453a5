// `easydel probe ...`, `tokenize`, `detokenize`.
#include <fstream>
#include <iostream>

#include "easydel/base/error.h"
#include "easydel/cli/commands.h"
#include "easydel/cli/overrides.h"
#include "easydel/elarge/core.h"
#include "easydel/hub/resolve.h"
#include "easydel/text/probe.h"
#include "easydel/text/probe_tools.h"
#include "easydel/text/unicode.h"

namespace easydel::cli {
namespace {

// Answers every line of a file of JSON Lines; empty lines are passed over.
template <class Answer>
int answer_lines(const std::string& name, Answer answer) {
  std::ifstream file;
  if (name != "-") {
    file.open(name);
    if (!file) refuse(name, "cannot be read", "give a file of JSON Lines, or - for standard input");
  }
  std::istream& in = name == "-" ? std::cin : file;
  std::string line, out;
  std::ios::sync_with_stdio(false);
  while (std::getline(in, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    out += answer(line);
    out += '\n';
    if (out.size() > size_t{1} << 16 || in.rdbuf()->in_avail() <= 0) {
      print(out);
      out.clear();
    }
  }
  print(out);
  return 0;
}

}  // namespace

std::filesystem::path tokenizer_path(const std::string& name) {
  return hub::is_on_hub(name) ? hub::resolve_model(name, "tokenizer") : hub::expand_home(name);
}

int run_probe_logits(const ProbeLogitsOptions& options) {
  elarge::ProbeLogits probe{hub::resolve_model(options.model, "probe logits"), options.inputs, options.output,
                            std::nullopt, options.device};
  probe.dtype = options.dtype;
  if (!options.trace.empty()) probe.trace = options.trace;
  for (const elarge::Override& given : overrides_of(options.set))
    if (!given.path.starts_with("quantization") && given.path != "base_config.values.attn_mechanism" &&
        given.path != "base_config.values.moe_method")
      refuse("--set " + given.path, "has no effect on probe logits",
             "base_config.values.attn_mechanism, base_config.values.moe_method and quantization.* have");
  Value document = Value::map(), model = Value::map();
  model.set("name_or_path", Value::text(options.model));
  document.set("model", model);
  const elarge::Config config = configuration(document, options.set);
  const elarge::BaseValues& values = config.base_config.values;
  probe.quantization = config.quantization;
  probe.attention = config::Codec<elarge::AttentionMechanism>::write(values.attn_mechanism).scalar;
  probe.moe_method = config::Codec<elarge::MoeMethod>::write(values.moe_method).scalar;
  elarge::core().probe_logits(probe);
  return 0;
}

int run_probe_replay(const ProbeReplayOptions& options) {
  elarge::ProbeReplay probe{options.test_case, options.root, options.output, std::nullopt};
  if (!options.params.empty()) probe.parameters = options.params;
  elarge::core().probe_replay(probe);
  return 0;
}

int run_probe_tokenize(const std::string& tokenizer, const std::string& lines) {
  const text::TokenizeProbe probe(tokenizer_path(tokenizer));
  return answer_lines(lines, [&](const std::string& line) { return probe.answer(line); });
}

int run_probe_render(const std::string& chat_template, const std::string& lines) {
  text::RenderProbe probe(chat_template);
  return answer_lines(lines, [&](const std::string& line) { return probe.answer(line); });
}

int run_probe_tools(const ProbeToolsOptions& options) {
  const text::ToolsProbe probe({options.parser, options.reasoning_parser, options.chat_template, options.stream});
  return answer_lines(options.lines, [&](const std::string& line) { return probe.answer(line); });
}

int run_tokenize(const std::string& tokenizer, const std::optional<std::string>& text, bool special, bool tokens) {
  const auto loaded = text::Tokenizer::load(tokenizer_path(tokenizer));
  const std::string given = text ? *text : read_input("-");
  const text::EncodeOptions options{.add_special_tokens = special};
  std::string out;
  if (!tokens) {
    for (const text::TokenId id : loaded->encode(given, options)) out += (out.empty() ? "" : " ") + std::to_string(id);
    return print(out + "\n"), 0;
  }
  const std::string whole = text::replace_invalid(given);
  const std::u32string characters = text::to_utf32(whole);  // offsets count these
  const text::Encoding encoded = loaded->encode_full(whole, std::nullopt, options);
  for (size_t i = 0; i < encoded.ids.size(); ++i) {
    const auto [begin, end] = encoded.offsets[i];
    const auto part =
        std::u32string_view(characters).substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    out += str(encoded.ids[i], "\t", encoded.tokens[i], "\t", to_json(Value::text(text::to_utf8(part))), "\n");
  }
  return print(out), 0;
}

int run_detokenize(const std::string& tokenizer, const std::vector<int64_t>& ids, bool skip_special) {
  const auto loaded = text::Tokenizer::load(tokenizer_path(tokenizer));
  std::vector<text::TokenId> narrow;
  for (const int64_t id : ids) {
    if (id < 0 || id > INT32_MAX || loaded->token_of(static_cast<text::TokenId>(id)).empty())
      refuse(std::to_string(id), "no such token", str("ids go from 0 to ", loaded->vocabulary_size() - 1));
    narrow.push_back(static_cast<text::TokenId>(id));
  }
  return print(loaded->decode(narrow, skip_special) + "\n"), 0;
}

}  // namespace easydel::cli
