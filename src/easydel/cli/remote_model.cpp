#include "easydel/cli/remote_model.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "easydel/base/clock.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/hub/http.h"

namespace easydel::cli {
namespace {

constexpr double connect_seconds = 10;
// Servers send something every 15 seconds while an answer is made.
constexpr double silent_seconds = 120;
constexpr size_t max_event_bytes = size_t(16) << 20;
constexpr int64_t max_answers = 128;

// Names of generation flags in a request.
constexpr std::array<std::pair<std::string_view, const char*>, 14> names = {
    {{"max_new_tokens", "max_tokens"},
     {"min_new_tokens", "min_tokens"},
     {"temperature", "temperature"},
     {"top_k", "top_k"},
     {"top_p", "top_p"},
     {"min_p", "min_p"},
     {"typical_p", "typical_p"},
     {"repetition_penalty", "repetition_penalty"},
     {"presence_penalty", "presence_penalty"},
     {"frequency_penalty", "frequency_penalty"},
     {"num_return_sequences", "n"},
     {"stop_strings", "stop"},
     {"suppress_tokens", "suppress_tokens"},
     {"seed", "seed"}}};

std::string flag_of(std::string key) {
  std::ranges::replace(key, '_', '-');
  return "--" + key;
}

const Value* path_in(const Value& value, std::initializer_list<std::string_view> path) {
  const Value* at = &value;
  for (const std::string_view name : path) {
    at = at && at->is_map() ? at->find(name) : nullptr;
    if (!at || at->is_null()) return nullptr;
  }
  return at;
}

// The server's own words, of an answer or an event with an error.
std::string words_of(const Value& document) {
  const Value* message = path_in(document, {"error", "message"});
  if (!message) message = path_in(document, {"detail"});
  return message && message->is_text() ? message->scalar : "";
}

// Takes server-sent events apart.
class EventReader {
 public:
  explicit EventReader(std::function<void(const Value& event)> on_event) : on_event_(std::move(on_event)) {}
  bool ended() const { return ended_; }

  void add(std::string_view bytes) {
    rest_ += bytes;
    size_t at = 0;
    for (size_t end; (end = rest_.find('\n', at)) != std::string::npos; at = end + 1) {
      std::string_view line(rest_.data() + at, end - at);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.starts_with("data:")) continue;  // comments, names of events, the ends of events
      line.remove_prefix(line.starts_with("data: ") ? 6 : 5);
      if (line == "[DONE]")
        ended_ = true;
      else
        on_event_(parse_json(line, "the server's answer"));
    }
    rest_.erase(0, at);
    if (rest_.size() > max_event_bytes) throw hub::NetworkError("an event of the answer is too long");
  }

 private:
  std::function<void(const Value& event)> on_event_;
  std::string rest_;
  bool ended_ = false;
};

int64_t number_in(const Value& event, std::string_view name) {
  const Value* const number = path_in(event, {"usage", name});
  return number ? number->as_int().value_or(0) : 0;
}

// The answers to one request, from the events of its stream.
class AnswerEvents {
 public:
  // The first answer is result number `first` of `request`.
  AnswerEvents(std::string url, bool chat, const elarge::GenerateRequest& request, const RemoteExtras& extras,
               size_t first)
      : url_(std::move(url)), chat_(chat), request_(request), extras_(extras), first_(first) {}

  void add(const Value& event) {
    if (event.find("error")) refuse(url_, words_of(event));
    if (const int64_t prompt = number_in(event, "prompt_tokens"); prompt > 0) {
      prompt_tokens_ = prompt;
      new_tokens_ = number_in(event, "completion_tokens");
    }
    const Value* const choices = path_in(event, {"choices"});
    if (!choices || !choices->is_list()) return;
    for (const Value& choice : choices->items) add_choice(choice);
  }

  std::vector<elarge::Generated> results(bool several, bool complete) {
    const auto end = Clock::now(), begin = first_words_.value_or(end);
    for (size_t i = 0; i < out_.size(); ++i) {
      elarge::Generated& one = out_[i];
      one.prefill_seconds = std::chrono::duration<double>(begin - start_).count();
      one.decode_seconds = std::chrono::duration<double>(end - begin).count();
      one.prompt_tokens = prompt_tokens_;
      one.new_tokens = !complete ? -1 : several ? ids_[i] : new_tokens_;
      if (one.finish_reason.empty()) one.finish_reason = "cancelled";
    }
    return std::move(out_);
  }

 private:
  void add_choice(const Value& choice) {
    const Value* const number = path_in(choice, {"index"});
    const auto index = size_t(std::clamp<int64_t>(number ? number->as_int().value_or(0) : 0, 0, max_answers - 1));
    if (index >= out_.size()) out_.resize(index + 1), ids_.resize(index + 1, -1);
    if (const Value* const reason = path_in(choice, {"finish_reason"})) out_[index].finish_reason = reason->scalar;
    if (const Value* const ids = path_in(choice, {"token_ids"}); ids && ids->is_list())
      ids_[index] = std::max<int64_t>(ids_[index], 0) + std::ssize(ids->items);
    for (const std::string_view name : {"reasoning_content", "reasoning"}) {  // servers use either
      const Value* const piece = path_in(choice, {"delta", name});
      if (!piece || piece->scalar.empty()) continue;
      if (!first_words_) first_words_ = Clock::now();
      if (extras_.on_reasoning) extras_.on_reasoning(first_ + index, piece->scalar);
      break;
    }
    const Value* const piece = chat_ ? path_in(choice, {"delta", "content"}) : path_in(choice, {"text"});
    if (!piece || piece->scalar.empty()) return;
    if (!first_words_) first_words_ = Clock::now();
    out_[index].text += piece->scalar;
    if (request_.on_text) request_.on_text(first_ + index, piece->scalar);
  }

  const std::string url_;
  const bool chat_;
  const elarge::GenerateRequest& request_;
  const RemoteExtras& extras_;
  const size_t first_;
  std::vector<elarge::Generated> out_ = std::vector<elarge::Generated>(1);
  std::vector<int64_t> ids_ = {-1};  // token ids of each answer; -1: none came
  int64_t prompt_tokens_ = 0, new_tokens_ = 0;
  const Clock::time_point start_ = Clock::now();
  std::optional<Clock::time_point> first_words_;
};

[[noreturn]] void refuse_status(const std::string& url, const hub::Response& response) {
  std::string words;
  try {
    words = words_of(parse_json(response.body, url));
  } catch (const UserError&) {
    // Something else than a server of this kind answers there.
  }
  refuse(url, str("the server answered ", response.status, words.empty() ? "" : ": " + words),
         response.status == 401 || response.status == 403 ? "give a key with --key-file" : "");
}

}  // namespace

RemoteModel::RemoteModel(const ModelOptions& options) : server_(options.server), model_(options.model) {
  const auto local = [&](bool given, const char* flag) {
    if (given) refuse(flag, "is for a model in this process, and --server is given", "give it to the server instead");
  };
  local(!options.tokenizer.empty(), "--tokenizer");
  local(options.dtype != "auto", "--dtype");
  local(options.device != "auto", "--device");
  local(!options.set.empty(), "--set");
  local(!options.chat_template.empty(), "--template");
  local(!options.adapter.empty(), "--adapter");
  local(options.random_weights, "--random-weights");
  local(!options.negative_prompt.empty(), "--negative-prompt");
  constexpr std::string_view unix_prefix = "unix:";
  if (server_.starts_with(unix_prefix)) {
    unix_socket_ = server_.substr(unix_prefix.size());
    if (unix_socket_.empty()) refuse("--server", "'unix:' names no socket", "such as unix:/run/easydel.sock");
    server_ = "http://localhost";
  }
  while (server_.ends_with('/')) server_.pop_back();
  if (!server_.starts_with("http://") && !server_.starts_with("https://"))
    refuse("--server", "'" + server_ + "' is not an address",
           "such as http://127.0.0.1:11556, or unix:/run/easydel.sock");
  if (!server_.ends_with("/v1")) server_ += "/v1";
  if (options.key_file.empty()) return;
  key_ = files::read(options.key_file);
  key_.erase(key_.find_last_not_of(" \t\r\n") + 1);
  if (key_.empty() || key_.find_first_of("\r\n") != std::string::npos)
    refuse(options.key_file, "does not hold one API key", "write the key on one line");
}

Value RemoteModel::members(const generation::GenerationConfig& generation) const {
  const Value given = config::write(generation);
  Value out = Value::map();
  if (!model_.empty()) out.set("model", Value::text(model_));
  for (const std::string& key : generation.given) {
    if (key == "do_sample") continue;
    const auto name = std::ranges::find(names, std::string_view(key), &std::pair<std::string_view, const char*>::first);
    if (name == names.end())
      refuse(flag_of(key), "cannot be sent to a server", "leave it out, or generate without --server");
    out.set(name->second, *given.find(key));
  }
  if (generation.given.contains("do_sample") && generation.greedy()) out.set("temperature", Value::number(0));
  return out;
}

std::vector<elarge::Generated> RemoteModel::answer(Value body, const elarge::GenerateRequest& request,
                                                   const RemoteExtras& extras, size_t first) const {
  const bool chat = body.find("messages") != nullptr;
  const Value* const count = body.find("n");
  const bool several = count && count->as_int().value_or(1) > 1;
  Value stream_options = Value::map();
  stream_options.set("include_usage", Value::boolean(true));
  body.set("stream", Value::boolean(true));
  body.set("stream_options", std::move(stream_options));
  const std::string plain = to_json(body);
  // Usage counts the tokens of all answers together, token ids those of each.
  if (several) body.set("return_token_ids", Value::boolean(true));
  const std::string url = server_ + (chat ? "/chat/completions" : "/completions");
  AnswerEvents answers(url, chat, request, extras, first);
  EventReader events([&](const Value& event) { answers.add(event); });
  hub::Request sent{.method = "POST",
                    .url = url,
                    .headers = {"Content-Type: application/json", "Accept: text/event-stream"},
                    .token = key_,
                    .body = to_json(body),
                    .on_data = [&](std::string_view bytes) { events.add(bytes); },
                    .unix_socket = unix_socket_,
                    .connect_seconds = connect_seconds,
                    .stall_seconds = silent_seconds};
  sent.stop = request.stop;
  try {
    hub::Response response = hub::perform(sent);
    if (several && response.status == 400) {  // perhaps because it does not know return_token_ids
      sent.body = plain;
      response = hub::perform(sent);
    }
    if (response.status / 100 != 2) refuse_status(url, response);
    if (!events.ended()) refuse(url, "the answer broke off", "try again");
  } catch (const hub::NetworkError& error) {
    if (!request.stop || !*request.stop) refuse("--server", error.what(), "is the server running?");
  }
  return answers.results(several, events.ended());
}

std::vector<elarge::Generated> RemoteModel::generate(const elarge::GenerateRequest& request,
                                                     const RemoteExtras& extras) const {
  constexpr int64_t default_new_tokens = 256;  // servers complete texts by 16 unless they are told otherwise
  Value shared = members(request.generation);
  for (const auto& [name, value] : extras.constraint.entries) shared.set(name, value);
  std::vector<elarge::Generated> out;
  const size_t texts = request.prompts.size(), all = texts + request.conversations.size();
  for (size_t i = 0; i < all && !(request.stop && *request.stop); ++i) {
    Value body = shared;
    if (i < texts) {
      body.set("prompt", Value::text(request.prompts[i]));
      if (!body.find("max_tokens")) body.set("max_tokens", Value::integer(default_new_tokens));
    } else {
      body.set("messages", request.conversations[i - texts]);
    }
    for (elarge::Generated& one : answer(std::move(body), request, extras, out.size())) {
      one.prompt = i;
      if (request.on_result) request.on_result(one);
      out.push_back(std::move(one));
    }
  }
  return out;
}

Generator::Generator(const ModelOptions& options, generation::GenerationConfig& generation) {
  if (!options.server.empty()) {
    remote_.emplace(options);
    return;
  }
  if (!options.key_file.empty()) refuse("--key-file", "is given without --server", "leave it out");
  if (options.model.empty())
    refuse("model", "is required", "give a model's folder or name, or --server with an address");
  local_ = open_session(options);
  choose_seed(local_.folder, generation);
}

void Generator::load() const {
  if (!remote_) local_.session->build_model();
}

std::vector<elarge::Generated> Generator::generate(const elarge::GenerateRequest& request,
                                                   const RemoteExtras& extras) const {
  return remote_ ? remote_->generate(request, extras) : local_.session->generate(request);
}

}  // namespace easydel::cli
