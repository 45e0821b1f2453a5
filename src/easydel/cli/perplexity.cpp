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
#include "easydel/text/tokenizers/tokenizer.h"
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

Value value_of(const std::string& file, const Tally& tally) {
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
  return line;
}

Value checked(const std::string& file, const std::string& answer) {
  Value value = parse_json(answer);
  if (const Value* const error = value.find("error")) refuse(file, error->scalar);
  return value;
}

// A token whose prediction the second model changes most.
struct WorstToken {
  double divergence = 0, logprob = 0, other_logprob = 0;
  size_t at = 0;  // its number among the tokens of the file that are predicted
  int64_t id = 0, top = 0, other_top = 0;
};

// How a second model's predictions differ.
struct Difference {
  Tally other;
  double divergence = 0, squares = 0;  // sums
  int64_t same_tops = 0;
  std::vector<WorstToken> worst;  // first

  static constexpr size_t shown = 5;

  void add(const WorstToken& token) {
    other.add(token.other_logprob);
    divergence += token.divergence, squares += token.divergence * token.divergence;
    same_tops += token.top == token.other_top;
    const auto less = [](const WorstToken& a, const WorstToken& b) { return a.divergence > b.divergence; };
    worst.insert(std::ranges::upper_bound(worst, token, less), token);
    if (worst.size() > shown) worst.pop_back();
  }
  double mean() const { return other.tokens > 0 ? divergence / double(other.tokens) : 0; }
  double error() const {
    if (other.tokens < 2) return 0;
    const double variance = std::max(0.0, squares / double(other.tokens) - mean() * mean());
    return std::sqrt(variance / double(other.tokens - 1));
  }
  double agreement() const { return other.tokens > 0 ? double(same_tops) / double(other.tokens) : 1; }
};

std::string figures(const Difference& difference) {
  char text[200];
  std::snprintf(text, sizeof text,
                "perplexity %.4f +- %.4f; mean KL %.6f +- %.6f; the most likely token is the same for %.2f %%",
                difference.other.perplexity(), difference.other.error(), difference.mean(), difference.error(),
                100 * difference.agreement());
  return text;
}

// A file as windows, and the figures of its tokens so far.
struct Measured {
  Tally tally;
  std::optional<Difference> difference;  // with --compare
};

class Measurement {
 public:
  Measurement(elarge::Session& session, elarge::Session* other, const PerplexityCommand& command)
      : session_(session), other_(other), command_(command) {
    settings_.where = "perplexity";
    settings_.max_length = command.context;
  }

  Measured of(const std::string& file) {
    const std::string text = text::replace_invalid(files::read(file));
    const std::vector<std::string> windows = windows_of(file, text);
    Measured out;
    size_t answered = 0;
    auto said = Clock::now();
    const auto tell = [&] {
      ++answered;
      if (seconds_since(said) < 5) return;
      said = Clock::now();
      const std::string so_far = out.difference ? figures(*out.difference) : "";
      char progress[160];
      std::snprintf(progress, sizeof progress, "%zu of %zu windows: perplexity %.4f +- %.4f", answered, windows.size(),
                    out.tally.perplexity(), out.tally.error());
      log::info(file, ": ", progress, so_far.empty() ? "" : "; the other model: " + so_far);
    };
    if (other_) {
      out.difference.emplace();
      elarge::core().compare_predictions(session_, *other_, windows, [&](size_t window, const std::string& answer) {
        add(parse_json(windows[window]), parse_json(answer), out);
        tell();
      });
    } else {
      session_.answer_lines(windows, settings_, [&](size_t, const std::string& answer) {
        const Value scored = checked(file, answer);
        for (const Value& each : scored.find("token_logprobs")->items) out.tally.add(each.as_double().value());
        tell();
      });
    }
    out.tally.words = words_of(text), out.tally.bytes = int64_t(text.size());
    if (out.difference) out.difference->other.words = out.tally.words, out.difference->other.bytes = out.tally.bytes;
    return out;
  }

 private:
  std::vector<std::string> windows_of(const std::string& file, const std::string& text) {
    Value cut = Value::map(), windows;
    cut.set("text", Value::text(text));
    cut.set("windows", Value::boolean(true));
    if (command_.stride) cut.set("stride", Value::integer(*command_.stride));
    session_.answer_lines({to_json(cut)}, settings_,
                          [&](size_t, const std::string& answer) { windows = checked(file, answer); });
    std::vector<std::string> lines;
    for (const Value& window : windows.find("windows")->items) lines.push_back(to_json(window));
    return lines;
  }

  static void add(const Value& window, const Value& answer, Measured& out) {
    const std::vector<Value>& ids = window.find("continuation_ids")->items;
    const auto number = [&](const char* key, size_t i) { return answer.find(key)->items[i].as_double().value(); };
    for (size_t i = 0; i < ids.size(); ++i) {
      WorstToken token{number("divergences", i), number("logprobs", i), number("other_logprobs", i),
                       size_t(out.tally.tokens), ids[i].as_int().value()};
      token.top = int64_t(number("tops", i)), token.other_top = int64_t(number("other_tops", i));
      out.tally.add(token.logprob);
      out.difference->add(token);
    }
  }

  elarge::Session& session_;
  elarge::Session* other_;
  const PerplexityCommand& command_;
  elarge::LineSettings settings_;
};

std::string shown_token(const text::Tokenizer& tokenizer, int64_t id) {
  return to_json(Value::text(tokenizer.decode(std::vector<text::TokenId>{text::TokenId(id)}, false)));
}

std::string difference_lines(const std::string& name, const Difference& difference, const text::Tokenizer& tokenizer) {
  std::string out = "  " + name + ": " + figures(difference) + "\n";
  for (const WorstToken& token : difference.worst) {
    char numbers[120];
    std::snprintf(numbers, sizeof numbers, "KL %.4f, p %.4f and %.4f", token.divergence, std::exp(token.logprob),
                  std::exp(token.other_logprob));
    out += str("    token ", token.at, " ", shown_token(tokenizer, token.id), ": ", numbers, "; most likely ",
               shown_token(tokenizer, token.top), " and ", shown_token(tokenizer, token.other_top), "\n");
  }
  return out;
}

Value worst_list(const Difference& difference) {
  Value out = Value::list();
  for (const WorstToken& token : difference.worst) {
    Value one = Value::map();
    one.set("token", Value::integer(int64_t(token.at)));
    one.set("id", Value::integer(token.id));
    one.set("kl", Value::number(token.divergence));
    one.set("logprob", Value::number(token.logprob));
    one.set("other_logprob", Value::number(token.other_logprob));
    one.set("top", Value::integer(token.top));
    one.set("other_top", Value::integer(token.other_top));
    out.items.push_back(std::move(one));
  }
  return out;
}

}  // namespace

int run_perplexity(const PerplexityCommand& command) {
  for (const std::string& file : command.files)
    if (!files::is_file(file)) refuse(file, "there is no such file", "give files of text");
  if (command.compare.empty() && !command.compare_set.empty())
    refuse("--compare-set", "there is no second model", "name it, or the same folder again, with --compare");
  const ModelSession model = open_session(command);
  std::optional<ModelSession> other;
  if (!command.compare.empty()) {
    ModelOptions options = command;
    options.model = command.compare, options.set = command.compare_set, options.adapter.clear();
    other = open_session(options);
    other->session->build_model();
  }
  model.session->build_model();
  Measurement measurement(*model.session, other ? other->session.get() : nullptr, command);
  Tally all;
  for (const std::string& file : command.files) {
    const Measured found = measurement.of(file);
    all.add(found.tally);
    if (command.json) {
      Value line = value_of(file, found.tally);
      if (found.difference) {
        line.set("other_perplexity", Value::number(found.difference->other.perplexity()));
        line.set("mean_kl", Value::number(found.difference->mean()));
        line.set("kl_error", Value::number(found.difference->error()));
        line.set("top_agreement", Value::number(found.difference->agreement()));
        line.set("worst_tokens", worst_list(*found.difference));
      }
      print(to_json(line) + "\n");
      continue;
    }
    print(file + ": " + figures(found.tally) + "\n");
    if (found.difference)
      print(difference_lines(command.compare, *found.difference, *model.session->build_tokenizer()));
  }
  if (command.files.size() > 1 && !command.json) print("all: " + figures(all) + "\n");
  return 0;
}

}  // namespace easydel::cli
