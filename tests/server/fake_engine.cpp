#include "server/fake_engine.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/json_text.h"
#include "easydel/base/log.h"
#include "easydel/server/conversation_answer.h"
#include "support/data.h"

namespace easydel::test {
namespace {

using esurge::TokenId;

// Log-probabilities that depend on the token and its place.
esurge::TokenLogprobs row_of(TokenId token, size_t place, int64_t count) {
  esurge::TokenLogprobs out;
  for (int64_t i = 0; i < count; ++i) {
    out.token_ids.push_back(TokenId((token + i * 7) % 500));
    out.logprobs.push_back(-0.25f * float(i + 1) - 0.001f * float(place));
  }
  if (out.token_ids.empty()) out.token_ids.push_back(token), out.logprobs.push_back(-0.5f * float(place));
  return out;
}

server::ServeConfig changed(const std::function<void(server::ServeConfig&)>& change) {
  server::ServeConfig config;
  config.host = "127.0.0.1";
  config.port = 0;
  if (change) change(config);
  return config;
}

Reply reply_of(const std::string& all) {
  const size_t end = all.find("\r\n\r\n");
  if (end == std::string::npos) return {};
  Reply out{std::stoi(all.substr(9, 3)), all.substr(0, end + 2), all.substr(end + 4)};
  if (out.head.find("Transfer-Encoding: chunked") == std::string::npos) return out;
  std::string sum;
  for (size_t at = 0; at < out.body.size();) {
    const size_t line = out.body.find("\r\n", at);
    const size_t bytes = std::stoul(out.body.substr(at, line - at), nullptr, 16);
    sum += out.body.substr(line + 2, bytes);
    at = line + 2 + bytes + 2;
    if (bytes == 0) break;
  }
  out.body = sum;
  return out;
}

}  // namespace

FakeEngine::FakeEngine(std::shared_ptr<const text::Tokenizer> tokenizer, Answer answer)
    : tokenizer_(std::move(tokenizer)), answer_(std::move(answer)), thread_([this] { run(); }) {}

FakeEngine::~FakeEngine() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

int64_t FakeEngine::add(esurge::Request request, Listener listener) {
  Live live{.request = std::move(request), .listener = std::move(listener), .choices = {}};
  const auto& prompt = std::get<std::vector<TokenId>>(live.request.prompt);
  for (int64_t i = 0; i < live.request.sampling.n; ++i) {
    Choice& choice = live.choices.emplace_back();
    choice.tokens = answer_(live.request, i);
    choice.decoder.emplace(tokenizer_, live.request.sampling.skip_special_tokens, prompt);
  }
  const std::lock_guard lock(mutex_);
  ++added_;
  live_.emplace(next_, std::move(live));
  changed_.notify_all();
  return next_++;
}

void FakeEngine::abort(int64_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  found->second.aborted = true;
  ++aborted_;
  changed_.notify_all();
}

esurge::EngineMetrics FakeEngine::metrics() const {
  const std::lock_guard lock(mutex_);
  esurge::EngineMetrics out;
  out.running_requests = int64_t(live_.size());
  return out;
}

int64_t FakeEngine::load_adapter(const std::string& name, const std::filesystem::path& folder, bool replace) {
  const std::lock_guard lock(mutex_);
  check(replace || !adapters_.contains(name), "the route has checked the name");
  if (!files::is_file(folder / "adapter_config.json"))
    refuse((folder / "adapter_config.json").string(), folder.string() + " has no adapter", "give another folder");
  adapters_[name] = {.name = name, .folder = folder, .version = ++versions_};
  if (text::Tokenizer::exists(folder)) adapters_[name].tokenizer = text::Tokenizer::load(folder);
  return versions_;
}

void FakeEngine::unload_adapter(const std::string& name) {
  const std::lock_guard lock(mutex_);
  adapters_.erase(name);
}

std::vector<esurge::AdapterInfo> FakeEngine::adapters() const {
  const std::lock_guard lock(mutex_);
  std::vector<esurge::AdapterInfo> out;
  for (const auto& [name, info] : adapters_) out.push_back(info);
  return out;
}

esurge::HeldWeights FakeEngine::hold_weights() const {
  esurge::HeldWeights out{std::shared_lock(weights_mutex_)};
  out.number = weights_;
  return out;
}

std::string FakeEngine::update_weights(const std::filesystem::path& folder, bool abort) {
  const std::lock_guard lock(weights_mutex_);
  const std::lock_guard own(mutex_);
  if (!files::is_file(folder / "config.json")) refuse(folder.string(), folder.string() + " has no config.json");
  ++weights_;
  for (auto& [id, live] : live_) live.aborted |= abort;
  changed_.notify_all();
  return fingerprint_ = folder.filename().string();
}

void FakeEngine::hold() {
  const std::lock_guard lock(mutex_);
  held_ = true;
}

void FakeEngine::release() {
  const std::lock_guard lock(mutex_);
  held_ = false;
  changed_.notify_all();
}

bool FakeEngine::has_aborted(int64_t count) {
  return eventually([&] {
    const std::lock_guard lock(mutex_);
    return aborted_ >= count;
  });
}

// What is new since the last result, as the engine with output_kind `delta` or `final_only`.
esurge::RequestOutput FakeEngine::next(Live& live) {
  const esurge::SamplingParams& sampling = live.request.sampling;
  const auto& prompt = std::get<std::vector<TokenId>>(live.request.prompt);
  const bool whole = sampling.output_kind == esurge::OutputKind::final_only;
  esurge::RequestOutput out;
  out.prompt_token_ids = prompt;
  if (live.results++ == 0 && sampling.prompt_logprobs)
    for (size_t i = 1; i < prompt.size(); ++i)
      out.prompt_logprobs.push_back(row_of(prompt[i], i, *sampling.prompt_logprobs));
  out.finished = true;
  for (size_t c = 0; c < live.choices.size(); ++c) {
    Choice& choice = live.choices[c];
    esurge::CompletionOutput& one = out.outputs.emplace_back();
    one.index = int64_t(c);
    const size_t most = size_t(sampling.max_tokens.value_or(1 << 20));
    const size_t end = std::min(choice.tokens.size(), most);
    size_t count = whole ? end : std::min<size_t>(random_() % 4, end - choice.given);
    for (; count > 0; --count) {
      const TokenId token = choice.tokens[choice.given];
      choice.text += choice.decoder->push(token);
      if (sampling.return_token_ids) one.token_ids.push_back(token);
      if (sampling.logprobs) one.logprobs.push_back(row_of(token, choice.given, *sampling.logprobs));
      ++choice.given, ++live.generated;
    }
    // The last characters come late, as where a stop string may begin.
    size_t visible = choice.text.size() - std::min<size_t>(choice.text.size(), random_() % 6);
    while (visible > choice.shown.size() && (uint8_t(choice.text[visible]) & 0xc0) == 0x80) --visible;
    visible = std::max(visible, choice.shown.size());
    if (choice.given == end) {
      choice.text += choice.finished ? "" : choice.decoder->finish();
      visible = choice.text.size();
      one.finish_reason = end < choice.tokens.size() ? esurge::FinishReason::length : esurge::FinishReason::stop;
      choice.finished = true;
    } else {
      out.finished = false;
    }
    one.text = choice.text.substr(choice.shown.size(), visible - choice.shown.size());
    choice.shown = choice.text.substr(0, visible);
  }
  out.num_generated_tokens = live.generated;
  out.queue_time = 1e-6;
  out.first_token_time = 2e-6;
  out.fingerprint = fingerprint_;
  if (fail_after_ >= 0 && live.results > fail_after_) out.error = "model: broken", out.finished = true;
  return out;
}

void FakeEngine::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || (!held_ && !live_.empty()); });
    if (ending_) return;
    std::vector<int64_t> ids;
    for (const auto& [id, live] : live_) ids.push_back(id);
    std::ranges::shuffle(ids, random_);
    for (const int64_t id : ids) {
      Live& live = live_.at(id);
      esurge::RequestOutput output;
      if (live.aborted) {
        output.finished = true;
        output.outputs = {{.finish_reason = esurge::FinishReason::abort}};
        // The step that was being computed.
        output.num_generated_tokens = live.generated += int64_t(live.choices.size());
      } else {
        output = next(live);
      }
      generated_ += output.finished ? output.num_generated_tokens : 0;
      const Listener listener = live.listener;
      if (output.finished) live_.erase(id);
      lock.unlock();
      listener(std::move(output));
      lock.lock();
    }
  }
}

std::shared_ptr<const text::Tokenizer> story_tokenizer() {
  static const auto tokenizer = text::Tokenizer::load(test_data("models/stories260K-chat"));
  return tokenizer;
}

std::vector<TokenId> random_answer(const esurge::Request& request, int64_t choice) {
  uint64_t seed = uint64_t(request.sampling.seed.value_or(0)) * 31 + uint64_t(choice);
  for (const TokenId id : std::get<std::vector<TokenId>>(request.prompt)) seed = seed * 1000003 + uint64_t(id);
  std::mt19937_64 random(seed);
  std::vector<TokenId> out(random() % 40);
  for (TokenId& id : out) id = TokenId(3 + random() % 500);
  return out;
}

std::string Reply::error(const char* field) const {
  const Value document = json();
  const Value* const value = document.find("error");
  return value && value->find(field) ? value->find(field)->scalar : "";
}

std::vector<Value> Reply::events() const {
  std::vector<Value> out;
  const std::string mark = "data: ";
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find("\n\n", at);
    const std::string event = body.substr(at, end - at);
    at = end == std::string::npos ? body.size() : end + 2;
    if (!event.starts_with(mark)) continue;
    if (event == "data: [DONE]") {
      EXPECT_EQ(at, body.size()) << "something follows [DONE]";
      return out;
    }
    out.push_back(parse_json(event.substr(mark.size())));
  }
  ADD_FAILURE() << "there is no [DONE]: " << body;
  return out;
}

static std::unique_ptr<server::KeyStore> keys_of(const server::ServeConfig& config) {
  if (!config.admin_key) return nullptr;
  server::KeyStoreOptions options;
  options.admin_key = config.admin_key;
  return std::make_unique<server::KeyStore>(std::move(options));
}

FakeServer::FakeServer(FakeEngine::Answer answer, const std::function<void(server::ServeConfig&)>& change_config,
                       const std::function<void(server::ServedModel&)>& change_model)
    : config(changed(change_config)),
      engine(std::make_shared<FakeEngine>(story_tokenizer(), std::move(answer))),
      jobs({.max_requests = config.max_waiting_requests.value_or(0),
            .overload_message = config.overload_message,
            .log_prompts = config.log_prompts}),
      keys(keys_of(config)),
      api(config, keys.get(), models),
      encodes({.max_requests = config.max_waiting_requests.value_or(0)}) {
  log::set_sink([](log::Level, std::string_view) {});
  server::ServedModel model{.id = "tiny", .created = 5, .max_model_len = 512, .root = "dir"};
  model.engine = engine;
  model.tokenizer = story_tokenizer();
  model.renderer = std::make_shared<const text::ChatRenderer>(story_tokenizer());
  model.special_texts = std::make_shared<const std::vector<std::string>>(server::special_texts(*story_tokenizer()));
  if (change_model) change_model(model);
  models.add(std::move(model));
  api.set_state(server::ServerState::ready);
  const server::RouteContext context{config, models, jobs, encodes};
  server::add_chat_route(api, context);
  server::add_completion_route(api, context);
  server::add_model_routes(api, context);
  server::add_embedding_routes(api, context);
  server::add_adapter_routes(api, context);
  server::add_weights_route(api, context, models);
  server::add_message_routes(api, context);
  server::add_response_routes(api, context, responses);
  http = std::make_unique<server::HttpServer>(config, api.callbacks());
  http->start();
}

FakeServer::~FakeServer() {
  engine->release();
  jobs.cancel_all({.status = 503, .message = "ended"});
  encodes.cancel_all({.status = 503, .message = "ended"});
  http = nullptr;
  log::set_sink(nullptr);
}

std::string FakeServer::posted(const std::string& path, const std::string& body, const std::string& headers) {
  return str("POST ", path, " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n", headers,
             "Content-Length: ", body.size(), "\r\n\r\n", body);
}

std::string FakeServer::key_header() const {
  return config.admin_key ? "Authorization: Bearer " + *config.admin_key + "\r\n" : "";
}

Reply FakeServer::post(const std::string& path, const std::string& body, const std::string& headers) const {
  RawClient client(http->port());
  const bool has_key = headers.find("Authorization:") != std::string::npos;
  client.send(posted(path, body, headers + (has_key ? "" : key_header()) + "Connection: close\r\n"));
  return reply_of(client.all());
}

Reply FakeServer::get(const std::string& path) const {
  RawClient client(http->port());
  client.send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + key_header() + "Connection: close\r\n\r\n");
  return reply_of(client.all());
}

}  // namespace easydel::test
