// POST /v1/completions.
#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/server/completion_json.h"
#include "easydel/server/fill_in_middle.h"
#include "easydel/server/prompt_tokens.h"
#include "easydel/server/route_context.h"
#include "easydel/server/text_reader.h"
#include "easydel/server/text_request.h"

namespace easydel::server {
namespace {

constexpr int64_t default_completion_tokens = 16;
// What each of thousands of short prompts of a request takes, from here to the engine (measured).
constexpr size_t memory_of_prompt = 6 << 10;

class CompletionWriter final : public AnswerWriter {
 public:
  CompletionWriter(const std::vector<std::shared_ptr<const TextReading>>& readings, const GenerationFields& fields,
                   CompletionHead head, std::vector<Header> headers)
      : choices_(fields.n.value_or(1)),
        head_(std::move(head)),
        headers_(std::move(headers)),
        streamed_(fields.stream),
        shows_ids_(fields.return_token_ids),
        stream_(CompletionStream::Kind::text, head_, readings[0]->logprobs.has_value(),
                fields.stream_options && fields.stream_options->include_usage,
                fields.stream_options && fields.stream_options->continuous_usage_stats) {
    for (const auto& reading : readings) {
      prompts_.emplace_back(reading->model->tokenizer, reading->prompt, fields);
      for (int64_t i = 0; i < choices_; ++i) {
        const auto index = int64_t(readers_.size());
        readers_.emplace_back(reading, index);
        begun_.push_back(0);
        whole_.push_back({.index = index});
      }
    }
  }

  void set_fingerprint(const std::string& fingerprint) override {
    head_.system_fingerprint = fingerprint;
    stream_.set_fingerprint(fingerprint);
  }

  void begin(Call& call) override {
    if (streamed_) call.begin_events(headers_);
  }

  void add(Call& call, size_t part, const esurge::RequestOutput& output, const TokenUsage& usage) override {
    std::string events;
    for (const esurge::CompletionOutput& one : output.outputs) {
      const size_t index = part * size_t(choices_) + size_t(one.index);
      if (!whole_[index].finish_reason.empty()) continue;
      TextPiece piece = readers_[index].read(one, output.prompt_logprobs);
      if (shows_ids_ && readers_[index].has_answer()) piece.token_ids = one.token_ids;
      if (std::exchange(begun_[index], 1) == 0) piece.prompt_members = prompts_[part].members(output.prompt_logprobs);
      const bool is_new = !piece.text.empty() || !piece.tokens.empty() || !piece.finish_reason.empty() ||
                          !piece.prompt_members.empty() || (piece.token_ids && !piece.token_ids->empty());
      if (streamed_ && is_new) events += stream_.piece(piece, usage);
      if (streamed_)
        whole_[index].finish_reason = piece.finish_reason;
      else
        append(whole_[index], std::move(piece));
    }
    if (!events.empty()) call.exchange().write(events);
  }

  void end(Call& call, const TokenUsage& usage) override {
    if (streamed_) {
      call.exchange().write(stream_.end(usage));
      call.exchange().end();
      return;
    }
    HttpResponse out = json_response(200, text_completion(head_, whole_, usage));
    std::ranges::move(headers_, std::back_inserter(out.headers));
    call.respond(std::move(out));
  }

  void fail(Call& call, const ApiError& error) override {
    if (!streamed_) return call.refuse(error);
    call.exchange().write(stream_.fail(error, call.request().path, call.id()));
    call.exchange().end();
  }

 private:
  int64_t choices_;  // of each prompt
  CompletionHead head_;
  std::vector<Header> headers_;
  bool streamed_, shows_ids_;
  CompletionStream stream_;
  std::vector<PromptTokens> prompts_;  // of each prompt
  std::vector<TextReader> readers_;
  std::vector<uint8_t> begun_;    // of each choice: 1 if it has a piece
  std::vector<TextPiece> whole_;  // of a stream only the finish reasons
};

struct TextPrompt {
  std::vector<text::TokenId> ids = {};
  std::optional<std::string> text = {};  // null: it was given as ids
  size_t added = 0;                      // ids in front that the text does not spell
};

// As the tokenizer encodes it, with its BOS once: a text that begins with it gets no other.
TextPrompt encoded(const std::string& text, const text::Tokenizer& tokenizer) {
  TextPrompt out{tokenizer.encode(text), text};
  std::vector<text::TokenId> plain = tokenizer.encode(text, {.add_special_tokens = false});
  if (plain.size() > out.ids.size() || !std::equal(plain.rbegin(), plain.rend(), out.ids.rbegin())) return out;
  out.added = out.ids.size() - plain.size();
  if (out.added == 1 && !plain.empty() && plain.front() == out.ids.front()) out.ids = std::move(plain), out.added = 0;
  return out;
}

std::vector<TextPrompt> prompts_of(const TextRequest& request, const TokenLists& tokens, const ServedModel& model,
                                   const std::optional<MiddleTokens>& middle) {
  std::vector<TextPrompt> out;
  for (const std::vector<int32_t>& ids : tokens.lists) out.push_back({ids, std::nullopt});
  const Value& prompt = request.text.prompt;
  const auto add = [&](const std::string& text) {
    if (!model.tokenizer) refuse("prompt", "is text, and the model has no tokenizer", "give token ids");
    if (middle)
      out.push_back({model.tokenizer->encode(text, {.add_special_tokens = false}), text});
    else
      out.push_back(encoded(text, *model.tokenizer));
  };
  if (prompt.is_text()) add(prompt.scalar);
  for (const Value& one : prompt.items) add(one.scalar);
  if (middle)
    for (TextPrompt& one : out) one.ids = middle_prompt(*model.tokenizer, *middle, one.ids, *request.text.suffix);
  return out;
}

// The tokens that ask for what stands before a suffix; nothing: the request has no suffix.
std::optional<MiddleTokens> middle_of(const TextRequest& request, const ServedModel& model) {
  if (!request.text.suffix || request.text.suffix->empty()) return std::nullopt;
  std::optional<MiddleTokens> out = model.tokenizer ? middle_tokens(*model.tokenizer) : std::nullopt;
  if (!out) refuse("suffix", "the tokenizer has no tokens for filling in the middle", "leave it out");
  return out;
}

void answer_completion(const RouteContext& context, const Api& api, const std::shared_ptr<Call>& call) {
  TokenLists tokens;
  Value body = call->body("prompt", tokens);
  RequestRules rules = rules_of(context.config);
  const Value* const prompt = body.find("prompt");
  if (tokens.lists.empty() && (!prompt || prompt->is_null()))
    rules.missing.push_back({"prompt", {}, "is required", "give a text, token ids, or a list of either"});
  const TextRequest request = read_fields<TextRequest>(*call, std::move(body), rules);
  const GenerationFields& fields = request.generation;
  const std::shared_ptr<const ServedModel> model = model_for(context, api, *call, fields.model);
  const int64_t wanted = fields.max_tokens.value_or(default_completion_tokens);
  const bool has_answer = wanted > 0;
  esurge::SamplingParams sampling = sampling_of(fields, std::max<int64_t>(wanted, 1), *model);
  const std::optional<MiddleTokens> middle = middle_of(request, *model);
  if (middle) std::ranges::copy(middle->ends, std::back_inserter(sampling.stop_token_ids));
  sampling.logprobs = request.text.logprobs;
  if (request.text.echo && request.text.logprobs) sampling.prompt_logprobs = request.text.logprobs;
  sampling.return_token_ids = request.text.logprobs.has_value() || fields.return_token_ids;
  sampling.output_kind = fields.stream ? esurge::OutputKind::delta : esurge::OutputKind::final_only;
  const int64_t copies = take_equal_answers(sampling);
  separate_prefixes(context, *call, sampling);

  std::vector<AnswerPart> parts;
  std::vector<std::shared_ptr<const TextReading>> readings;
  int64_t truncated = 0, most = 0;
  for (TextPrompt& prompt : prompts_of(request, tokens, *model, middle)) {
    call->exchange().hold(memory_of_prompt);
    FittedRequest fitted = fit_request(std::move(prompt.ids), sampling, *model);
    if (middle && fitted.truncated_tokens > 0)
      throw Refusal({.status = 400,
                     .message = str("suffix: prompt and suffix have ", fitted.truncated_tokens,
                                    " tokens more than fit into the context (shorten them)"),
                     .code = "context_length_exceeded",
                     .param = "suffix"});
    truncated += fitted.truncated_tokens;
    most += fitted.max_tokens * sampling.choices_drawn();
    TextReading reading{.model = model, .echo = request.text.echo, .has_answer = has_answer};
    reading.prompt = fitted.prompt;
    if (fitted.truncated_tokens == 0) reading.added = prompt.added;
    if (prompt.text && fitted.truncated_tokens == 0)
      reading.prompt_text = std::move(*prompt.text);
    else if (model->tokenizer)
      reading.prompt_text = model->tokenizer->decode(fitted.prompt, sampling.skip_special_tokens);
    reading.logprobs = request.text.logprobs;
    reading.keys_are_ids = request.text.return_tokens_as_token_ids;
    reading.skip_special_tokens = sampling.skip_special_tokens;
    readings.push_back(std::make_shared<const TextReading>(std::move(reading)));
    AnswerPart& part = parts.emplace_back();
    part.prompt_tokens = int64_t(fitted.prompt.size());
    part.truncated_tokens = fitted.truncated_tokens;
    part.copies = copies;
    part.counts_answer = has_answer;
    part.shows_timings = fields.timings;
    part.constraint_field = fields.constraint_field();
    part.request = {.prompt = std::move(fitted.prompt), .sampling = sampling, .request_id = call->id()};
  }
  check_permissions(*call, {fields.stream, false, most});
  CompletionHead head{.id = new_completion_id("cmpl-"),
                      .created = seconds_since_1970(),
                      .model = model->id,
                      .system_fingerprint = model->fingerprint};
  context.jobs.start(
      call, model, std::move(parts),
      std::make_unique<CompletionWriter>(readings, fields, std::move(head), truncation_headers(truncated)));
}

}  // namespace

void add_completion_route(Api& api, const RouteContext& context) {
  api.serve("POST /v1/completions",
            [&api, context](std::shared_ptr<Call> call) { answer_completion(context, api, call); });
}

}  // namespace easydel::server
