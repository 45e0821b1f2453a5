#include "easydel/elarge/line_answers.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/base/names.h"
#include "easydel/config/section.h"
#include "easydel/elarge/model_facts.h"
#include "easydel/generation/score_text.h"
#include "easydel/generation/scorer.h"
#include "easydel/text/render_chat.h"
#include "easydel/text/unicode.h"

namespace easydel::elarge {
namespace {

using generation::ScoreRequest;
using generation::TokenScores;
using text::TokenId;

std::string error_line(const std::string& text) {
  Value line = Value::map();
  line.set("error", Value::text(text));
  return to_json(line);
}

// The fields of a line; what nothing reads is refused.
class Fields {
 public:
  explicit Fields(Value line) : line_(std::move(line)) {}

  bool has(std::string_view key) const { return line_.find(key) != nullptr; }
  std::optional<Value> take(std::string_view key) {
    const auto found = std::ranges::find(line_.entries, key, &std::pair<std::string, Value>::first);
    if (found == line_.entries.end()) return std::nullopt;
    Value value = std::move(found->second);
    line_.entries.erase(found);
    return value;
  }
  std::string text(std::string_view key) {
    const auto value = take(key);
    if (!value || !value->is_text()) refuse(std::string(key), "is missing or not a string");
    return text::replace_invalid(value->scalar);
  }
  std::vector<TokenId> ids(std::string_view key) {
    const auto value = take(key);
    if (!value || !value->is_list()) refuse(std::string(key), "is missing or not a list of token ids");
    std::vector<TokenId> out;
    for (const Value& item : value->items) {
      const auto id = item.as_int();
      if (!id || *id < 0 || *id > std::numeric_limits<TokenId>::max())
        refuse(std::string(key), str(to_json(item), " is not a token id"));
      out.push_back(TokenId(*id));
    }
    return out;
  }
  std::optional<bool> flag(std::string_view key) {
    const auto value = take(key);
    if (!value || value->is_null()) return std::nullopt;
    if (const auto flag = value->as_bool()) return flag;
    refuse(std::string(key), "is neither true nor false");
  }
  Value rest() { return std::exchange(line_, Value::map()); }
  void end() const {
    if (!line_.entries.empty())
      refuse(line_.entries[0].first, "no such field",
             "a line has context and continuation, context_ids and continuation_ids, text, context and until, or "
             "messages");
  }

 private:
  Value line_;
};

Value ids_of(const auto& tokens) {
  Value out = Value::list();
  for (const auto id : tokens) out.items.push_back(Value::integer(id));
  return out;
}

std::string answer_of(const TokenScores& scores) {
  Value line = Value::map(), each = Value::list();
  for (const float logprob : scores.each) each.items.push_back(Value::number(double(logprob)));
  line.set("logprob", Value::number(scores.logprob));
  line.set("is_greedy", Value::boolean(scores.is_greedy));
  line.set("token_logprobs", std::move(each));
  return to_json(line);
}

// A text to generate, and how its answer is cut.
struct Prompt {
  size_t line = 0;
  generation::Request request;
  std::vector<std::string> until;
  std::string think_end;    // only what follows it is the answer; empty: all
  std::string think_start;  // begins a reasoning, which is no answer if it does not end
};

class LineAnswers {
 public:
  LineAnswers(const LineModel& model, const LineSettings& settings, const OnLineAnswer& on_answer)
      : model_(*model.model),
        tokenizer_(model.tokenizer),
        by_engine_(model.by_engine),
        settings_(settings),
        on_answer_(on_answer),
        scorer_(model_, {.max_length = settings.max_length,
                         .pass_requests = settings.batch,
                         .share = settings.share,
                         .memory_share = model.cache_share,
                         .memory_bytes = model.cache_bytes,
                         .stop = settings.stop,
                         .exchange = model.exchange}),
        exchanges_(model.exchange != nullptr) {
    if (!tokenizer_) return;
    std::optional<TokenId> prefix;
    if (settings.prefix_token_id) prefix = TokenId(*settings.prefix_token_id);
    if (prefix || tokenizer_->bos_id() || tokenizer_->eos_id()) texts_.emplace(tokenizer_, prefix);
  }

  void answer(const std::vector<std::string>& lines) {
    left_.assign(lines.size(), 0);
    parts_.resize(lines.size());
    for (size_t i = 0; i < lines.size(); ++i) try {
        read(i, lines[i]);
      } catch (const UserError& error) {
        on_answer_(i, error_line(error.what()));
      }
    score();
    generate();
  }

 private:
  void read(size_t line, const std::string& text) {
    Value value = parse_json(text, "line");
    if (!value.is_map())
      refuse("line", "is not a JSON object", R"(give such as {"context": "2 + 2 =", "continuation": " 4"})");
    Fields fields(std::move(value));
    if (fields.has("about")) return read_about(line, fields);
    if (fields.has("messages")) return read_messages(line, fields);
    if (fields.has("continuation_ids")) {
      ScoreRequest request{fields.ids("context_ids"), fields.ids("continuation_ids")};
      fields.end();
      return add_scores(line, {std::move(request)});
    }
    if (fields.has("continuation")) {
      std::string context = fields.text("context");
      ScoreRequest request = texts().pair(std::move(context), fields.text("continuation"));
      fields.end();
      return add_scores(line, {std::move(request)});
    }
    if (fields.has("text")) return read_text(line, fields);
    if (!fields.has("context") && !fields.has("context_ids"))
      refuse("line", "asks for nothing",
             "give context and continuation, context_ids and continuation_ids, text, or context and until");
    read_prompt(line, fields);
  }

  // A text to score, or only to be cut into the requests that score it.
  void read_text(size_t line, Fields& fields) {
    const std::string text = fields.text("text");
    const bool only_cut = fields.flag("windows").value_or(false);
    const auto stride = fields.take("stride");
    const int64_t longest = scorer_.max_length();
    if (stride && (!stride->as_int() || *stride->as_int() < 1 || *stride->as_int() > longest))
      refuse("stride", str(to_json(*stride), " is not a number of tokens from 1 to ", longest));
    fields.end();
    const std::vector<ScoreRequest> windows =
        stride ? texts().strided(text, longest, *stride->as_int()) : texts().rolling(text, longest);
    if (!only_cut) return add_scores(line, windows);
    Value list = Value::list(), out = Value::map();
    for (const ScoreRequest& window : windows) {
      Value one = Value::map();
      one.set("context_ids", ids_of(window.context));
      one.set("continuation_ids", ids_of(window.continuation));
      list.items.push_back(std::move(one));
    }
    out.set("windows", std::move(list));
    on_answer_(line, to_json(out));
  }

  const generation::ScoreText& texts() const {
    if (texts_) return *texts_;
    if (!tokenizer_)
      refuse("line", "a text needs a tokenizer, and the model's folder has none",
             "give context_ids and continuation_ids");
    refuse("tokenizer", "it has no BOS and no EOS token, so an empty context has no token", "give --prefix-token-id");
  }

  void add_scores(size_t line, const std::vector<ScoreRequest>& requests) {
    for (const ScoreRequest& request : requests)
      if (const std::string problem = scorer_.problem_of(request); !problem.empty()) refuse("line", problem);
    if (requests.empty()) return on_answer_(line, answer_of({}));
    left_[line] = requests.size();
    parts_[line].resize(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      requests_.push_back(requests[i]);
      of_.emplace_back(line, i);
    }
  }

  void score() {
    if (requests_.empty() && !exchanges_) return;
    const auto begin = Clock::now();
    const generation::ScorerCounts before = scorer_.counts();
    scorer_.run(requests_, [this](size_t request, const TokenScores& scores) {
      const auto [line, part] = of_[request];
      parts_[line][part] = scores;
      if (--left_[line] > 0) return;
      TokenScores whole;
      for (const TokenScores& each : parts_[line]) {
        whole.logprob += each.logprob;
        whole.is_greedy &= each.is_greedy;
        whole.each.insert(whole.each.end(), each.each.begin(), each.each.end());
      }
      parts_[line].clear();
      on_answer_(line, answer_of(whole));
    });
    if (requests_.empty()) return;
    const generation::ScorerCounts& now = scorer_.counts();
    const int64_t tokens = now.tokens - before.tokens, computed = now.computed - before.computed,
                  passes = now.passes - before.passes;
    log::info(settings_.where, ": ", counted(int64_t(requests_.size()), "request"), ", ",
              int64_t(double(requests_.size()) / std::max(seconds_since(begin), 1e-9)), " a second; ", tokens,
              " tokens, in ", passes, passes == 1 ? " pass" : " passes", ", of which sharing saved ",
              tokens > 0 ? 100 * (tokens - computed) / tokens : 0, " %");
  }

  // Names of the limit, in the order in which the harness prefers them.
  static std::optional<int64_t> limit_of(Fields& fields) {
    std::optional<int64_t> limit;
    for (const char* key : {"max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens"}) {
      const auto value = fields.take(key);
      if (!value || value->is_null()) continue;
      const auto count = value->as_int();
      if (!count || *count < 1) refuse(key, str(to_json(*value), " is not a number of tokens"));
      if (!limit) limit = count;
    }
    return limit;
  }

  void read_prompt(size_t line, Fields& fields) {
    Prompt prompt;
    prompt.line = line;
    std::vector<TokenId> ids =
        fields.has("context_ids") ? fields.ids("context_ids") : texts().encode(fields.text("context"));
    if (const auto until = fields.take("until"); until && !until->is_null()) {
      for (const Value& stop : until->is_list() ? until->items : std::vector<Value>{*until}) {
        if (!stop.is_text()) refuse("until", str(to_json(stop), " is not a string"));
        prompt.until.push_back(stop.scalar);
      }
    }
    if (fields.has("think_end")) prompt.think_end = fields.text("think_end");
    if (fields.has("think_start")) prompt.think_start = fields.text("think_start");
    const std::optional<int64_t> given = limit_of(fields);
    prompt.request.config = sampling_of(fields);
    if (ids.empty() && texts_) ids = {texts_->prefix()};
    const int64_t longest = scorer_.max_length();
    const bool own = given && !settings_.hard_max_new_tokens;
    int64_t limit = own ? *given : settings_.max_new_tokens;
    if (limit >= longest && own)
      refuse("max_gen_toks", str(limit, " new tokens leave no room for a context: the model reads at most ", longest),
             "lower it");
    if (limit >= longest)  // what the context leaves, but of a long context not too little
      limit = std::max(longest - int64_t(ids.size()), std::min<int64_t>(256, longest / 2));
    if (const int64_t room = longest - limit; int64_t(ids.size()) > room) ids.erase(ids.begin(), ids.end() - room);
    for (const TokenId id : ids)
      if (id >= model_.vocabulary())
        refuse("context_ids", str("there is no token ", id, "; the model's vocabulary has ", model_.vocabulary()));
    if (ids.empty()) refuse("context_ids", "has no tokens");
    prompt.request.prompt = std::move(ids);
    generation::GenerationConfig& config = prompt.request.config;
    config.max_new_tokens = limit;
    config.max_length.reset();
    if (tokenizer_)
      config.stop_strings.assign(prompt.until.begin(), prompt.until.end());
    else if (!prompt.until.empty())
      refuse("until", "stop strings need a tokenizer, and the model's folder has none");
    std::erase_if(config.stop_strings, [](const std::string& stop) { return stop.empty(); });
    const auto eos = tokenizer_ ? tokenizer_->eos_id() : std::nullopt;
    if (eos && std::ranges::find(config.eos_token_id, int64_t(*eos)) == config.eos_token_id.end())
      config.eos_token_id.push_back(*eos);
    prompts_.push_back(std::move(prompt));
  }

  // Greedy unless do_sample or a temperature above 0 is given, as the harness has it.
  generation::GenerationConfig sampling_of(Fields& fields) const {
    generation::GenerationConfig out;
    config::Problems problems("line");
    Value given = fields.rest();
    const Value* const temperature = given.find("temperature");
    const double degrees = temperature ? temperature->as_double().value_or(0) : 0;
    const Value* const asked = given.find("do_sample");
    const bool draws = asked && !asked->is_null() ? asked->as_bool().value_or(false) : degrees > 0;
    if (!draws || degrees == 0)
      std::erase_if(given.entries, [](const auto& entry) { return entry.first == "temperature"; });
    given.set("do_sample", Value::boolean(draws));
    config::read_section(config::section_of<generation::GenerationConfig>(), given, &out, "", problems);
    problems.throw_if_any();
    out = generation::generation_config(model_.folder(), out);
    check_together(out);
    if (out.num_return_sequences > 1) refuse("num_return_sequences", "a line has one answer", "give several lines");
    return out;
  }

  void generate() {
    if (prompts_.empty()) return;
    std::vector<generation::Request> requests;
    for (const Prompt& prompt : prompts_) requests.push_back(prompt.request);
    size_t answered = 0;
    const auto begin = Clock::now();
    int64_t tokens = 0;
    const auto give = [&](size_t index, const std::vector<TokenId>& ids, const std::string& reason) {
      on_answer_(prompts_[index].line, generated_line(prompts_[index], ids, reason));
      tokens += int64_t(ids.size());
      ++answered;
    };
    if (!settings_.engine || !generate_by_engine(requests, give)) {
      generation::GeneratorOptions options;
      if (settings_.batch > 0) options.batch = settings_.batch;
      options.stop = settings_.stop;
      generation::Generator(model_, tokenizer_, options)
          .run(requests, {}, [&](size_t index, const generation::Result& result) {
            if (result.reason == generation::StopReason::cancelled) throw generation::Scorer::Stopped();
            give(index, result.tokens, std::string(name_of(result.reason)));
          });
    }
    log::info(settings_.where, ": ", counted(int64_t(answered), "answer"), ", ",
              int64_t(double(tokens) / std::max(seconds_since(begin), 1e-9)), " new tokens a second");
  }

  // False: the engine refuses something of the model or of the requests, and nothing was given.
  bool generate_by_engine(const std::vector<generation::Request>& requests, const auto& give) {
    bool stopped = false;
    GenerateRequest how;
    how.stop = settings_.stop;
    size_t given = 0;
    how.on_result = [&](const Generated& got) {
      stopped |= got.finish_reason == name_of(generation::StopReason::cancelled);
      if (!stopped) ++given, give(got.prompt, got.tokens, got.finish_reason);
    };
    try {
      by_engine_(requests, how);
    } catch (const UserError& error) {
      if (given > 0) throw;
      log::info(settings_.where,
                ": the plain loop generates instead of the engine, the same texts: ", error.headline());
      return false;
    }
    if (stopped) throw generation::Scorer::Stopped();
    return true;
  }

  std::string generated_line(const Prompt& prompt, const std::vector<TokenId>& tokens,
                             const std::string& reason) const {
    Value line = Value::map();
    if (tokenizer_) {
      std::string text = tokenizer_->decode(tokens);
      if (!prompt.think_end.empty()) {
        if (const size_t end = text.rfind(prompt.think_end); end != std::string::npos)
          text.erase(0, end + prompt.think_end.size());
        else if (!prompt.think_start.empty())
          text.resize(std::min(text.size(), text.find(prompt.think_start)));
        text.erase(0, generation::leading_space(text));
      }
      line.set("text", Value::text(generation::cut_at(std::move(text), prompt.until)));
    }
    line.set("tokens", ids_of(tokens));
    line.set("finish_reason", Value::text(reason));
    return to_json(line);
  }

  void read_messages(size_t line, Fields& fields) {
    if (!tokenizer_) refuse("messages", "a conversation needs a tokenizer, and the model's folder has none");
    if (!chat_) chat_.emplace(tokenizer_, settings_.chat_template);
    Value messages = *fields.take("messages");
    text::ChatOptions options;
    options.add_generation_prompt = fields.flag("add_generation_prompt").value_or(true);
    const bool goes_on = fields.flag("continue_final_message").value_or(false);
    if (auto extra = fields.take("chat_template_args"); extra && extra->is_map()) options.extra = std::move(*extra);
    fields.end();
    Value out = Value::map();
    out.set("text", Value::text(goes_on ? unfinished(std::move(messages), options) : chat_->text(messages, options)));
    on_answer_(line, to_json(out));
  }

  // The conversation up to the end of its last message's content, as transformers 5 finds it.
  std::string unfinished(Value messages, const text::ChatOptions& options) const {
    static const std::string tag = "CONTINUE_FINAL_MESSAGE_TAG ", word = tag.substr(0, tag.size() - 1);
    Value* const content =
        messages.is_list() && !messages.items.empty() ? messages.items.back().find("content") : nullptr;
    if (!content || !content->is_text()) refuse("messages", "the last message has no text to go on from");
    content->scalar += tag;
    std::string text = chat_->text(messages, options);
    const size_t at = text.rfind(word);
    if (at == std::string::npos) refuse("messages", "the chat template does not write the last message's content");
    const bool keeps_space = text.compare(at, tag.size(), tag) == 0;
    text.resize(at);
    if (!keeps_space) text.resize(generation::stripped_length(text));
    return text;
  }

  void read_about(size_t line, Fields& fields) {
    fields.take("about");
    const bool digests = fields.flag("digests").value_or(false);
    fields.end();
    ModelFacts facts{model_, tokenizer_.get(), scorer_.max_length(), std::nullopt, settings_.chat_template};
    if (texts_) facts.prefix = texts_->prefix();
    on_answer_(line, to_json(model_facts(facts, digests)));
  }

  const models::Model& model_;
  const std::shared_ptr<const text::Tokenizer>& tokenizer_;
  const std::function<std::vector<Generated>(const std::vector<generation::Request>&, const GenerateRequest&)>&
      by_engine_;
  const LineSettings& settings_;
  const OnLineAnswer& on_answer_;
  generation::Scorer scorer_;
  bool exchanges_;  // with ranks that may have requests to score if this one has none
  std::optional<generation::ScoreText> texts_;
  std::optional<text::ChatRenderer> chat_;

  std::vector<ScoreRequest> requests_;
  std::vector<std::pair<size_t, size_t>> of_;    // of each request its line, and its number among the line's
  std::vector<size_t> left_;                     // of each line the requests that are not scored yet
  std::vector<std::vector<TokenScores>> parts_;  // of each line
  std::vector<Prompt> prompts_;
};

}  // namespace

void answer_lines(const std::vector<std::string>& lines, const LineModel& model, const LineSettings& settings,
                  const OnLineAnswer& on_answer) try {
  LineAnswers(model, settings, on_answer).answer(lines);
} catch (const generation::Scorer::Stopped&) {
  log::info(settings.where, ": stopped");
}

}  // namespace easydel::elarge
