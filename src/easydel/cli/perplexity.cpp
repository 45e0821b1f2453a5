// `easydel perplexity`: how well a model predicts files of text. Windows and sums are those of lm-evaluation-harness.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/cli/commands.h"
#include "easydel/cli/model_session.h"
#include "easydel/text/unicode.h"

namespace easydel::cli {
namespace {

// Log-probabilities of the tokens of a text, and the text's own sizes.
struct Tally {
  int64_t tokens = 0, words = 0, bytes = 0;
  double sum = 0, squares = 0;  // of log-probabilities

  void add(double logprob) { ++tokens, sum += logprob, squares += logprob * logprob; }
  void add(const Tally& other) {
    tokens += other.tokens, words += other.words, bytes += other.bytes;
    sum += other.sum, squares += other.squares;
  }
  double mean() const { return tokens > 0 ? sum / double(tokens) : 0; }
  double perplexity() const { return std::exp(-mean()); }
  // Standard error of the perplexity, from that of the mean log-probability.
  double error() const {
    if (tokens < 2) return 0;
    const double variance = std::max(0.0, squares / double(tokens) - mean() * mean());
    return perplexity() * std::sqrt(variance / double(tokens - 1));
  }
  double per(int64_t parts) const { return parts > 0 ? std::exp(-sum / double(parts)) : 1; }
  double bits_per_byte() const { return bytes > 0 ? -sum / double(bytes) / std::log(2.0) : 0; }
};

// As the harness counts them: one more than there are runs of white space.
int64_t words_of(std::string_view text) {
  int64_t words = 1;
  bool in_space = false;
  for (size_t at = 0; at < text.size();) {
    const bool space = text::is_space(text::next_character(text, at));
    words += space && !in_space;
    in_space = space;
  }
  return words;
}

std::string figures(const Tally& tally) {
  char text[200];
  std::snprintf(text, sizeof text,
                "%lld tokens: perplexity %.4f +- %.4f; per word %.4f, per byte %.4f, %.4f bits per byte",
                static_cast<long long>(tally.tokens), tally.perplexity(), tally.error(), tally.per(tally.words),
                tally.per(tally.bytes), tally.bits_per_byte());
  return text;
}

std::string line_of(const std::string& file, const Tally& tally) {
  Value line = Value::map();
  line.set("file", Value::text(file));
  line.set("tokens", Value::integer(tally.tokens));
  line.set("words", Value::integer(tally.words));
  line.set("bytes", Value::integer(tally.bytes));
  line.set("logprob", Value::number(tally.sum));
  line.set("perplexity", Value::number(tally.perplexity()));
  line.set("perplexity_error", Value::number(tally.error()));
  line.set("word_perplexity", Value::number(tally.per(tally.words)));
  line.set("byte_perplexity", Value::number(tally.per(tally.bytes)));
  line.set("bits_per_byte", Value::number(tally.bits_per_byte()));
  return to_json(line);
}

Value checked(const std::string& file, const std::string& answer) {
  Value value = parse_json(answer);
  if (const Value* const error = value.find("error")) refuse(file, error->scalar);
  return value;
}

Tally measure(elarge::Session& session, const std::string& file, const PerplexityCommand& command,
              const elarge::LineSettings& settings) {
  const std::string text = text::replace_invalid(files::read(file));
  Value cut = Value::map(), windows;
  cut.set("text", Value::text(text));
  cut.set("windows", Value::boolean(true));
  if (command.stride) cut.set("stride", Value::integer(*command.stride));
  session.answer_lines({to_json(cut)}, settings,
                       [&](size_t, const std::string& answer) { windows = checked(file, answer); });
  std::vector<std::string> lines;
  for (const Value& window : windows.find("windows")->items) lines.push_back(to_json(window));
  Tally tally;
  size_t answered = 0;
  auto said = Clock::now();
  session.answer_lines(lines, settings, [&](size_t, const std::string& answer) {
    const Value scored = checked(file, answer);
    for (const Value& each : scored.find("token_logprobs")->items) tally.add(each.as_double().value());
    ++answered;
    if (seconds_since(said) < 5) return;
    said = Clock::now();
    char progress[160];
    std::snprintf(progress, sizeof progress, "%zu of %zu windows: perplexity %.4f +- %.4f", answered, lines.size(),
                  tally.perplexity(), tally.error());
    log::info(file, ": ", progress);
  });
  tally.words = words_of(text), tally.bytes = int64_t(text.size());
  return tally;
}

}  // namespace

int run_perplexity(const PerplexityCommand& command) {
  for (const std::string& file : command.files)
    if (!files::is_file(file)) refuse(file, "there is no such file", "give files of text");
  elarge::LineSettings settings;
  settings.where = "perplexity";
  settings.max_length = command.context;
  const ModelSession model = open_session(command);
  model.session->build_model();
  Tally all;
  for (const std::string& file : command.files) {
    const Tally tally = measure(*model.session, file, command, settings);
    all.add(tally);
    print(command.json ? line_of(file, tally) + "\n" : file + ": " + figures(tally) + "\n");
  }
  if (command.files.size() > 1 && !command.json) print("all: " + figures(all) + "\n");
  return 0;
}

}  // namespace easydel::cli
