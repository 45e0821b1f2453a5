// Any bytes as what a client of the server sends, down to an engine that answers at once. The first byte says what they
// are: the bytes of a connection, or the body of one of the routes that take one.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/server/api.h"
#include "easydel/server/connection.h"
#include "easydel/server/conversation_answer.h"
#include "easydel/server/encode_queue.h"
#include "easydel/server/response_store.h"
#include "easydel/server/route_context.h"

namespace {

using namespace easydel;
using namespace easydel::server;
using text::TokenId;

constexpr TokenId vocabulary = 256;

// A token for each byte, and a chat template that shows every part of a conversation.
std::shared_ptr<const text::Tokenizer> byte_tokenizer() {
  std::string tokens;
  for (int id = 0; id < vocabulary; ++id) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    const std::string token = {'<', '0', 'x', digits[size_t(id) / 16], digits[size_t(id) % 16], '>'};
    tokens += str(id == 0 ? "" : ", ", "\"", token, "\": ", id);
  }
  const auto folder = files::make_temporary_folder("easydel-fuzz");
  files::write(
      folder / "tokenizer.json",
      str(R"({"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": null, "post_processor": null,
                      "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
                      "model": {"type": "BPE", "byte_fallback": true, "merges": [], "vocab": {)",
          tokens, "}}}"));
  auto out = text::Tokenizer::load(
      folder,
      "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function "
      "| "
      "tojson }}</tool_call>{% endfor %}{% endfor %}{{ tools | tojson if tools else '' }}{% if add_generation_prompt "
      "%}<|assistant|>{% endif %}");
  files::remove_all(folder);
  return out;
}

// Answers inside add(): the end of its prompt, each token a result of its own.
class EchoEngine final : public ServedEngine {
 public:
  int64_t add(esurge::Request request, Listener listener) override {
    const esurge::SamplingParams& sampling = request.sampling;
    const auto& prompt = std::get<std::vector<TokenId>>(request.prompt);
    const auto most = size_t(std::min<int64_t>(sampling.max_tokens.value_or(12), 12));
    const std::vector<TokenId> answer(prompt.end() - ptrdiff_t(std::min(prompt.size(), most)), prompt.end());
    const bool whole = sampling.output_kind == esurge::OutputKind::final_only;
    for (size_t given = 0, next; given <= answer.size(); given = next) {
      next = whole ? answer.size() : std::min(given + 1, answer.size());
      esurge::RequestOutput out{.prompt_token_ids = prompt, .finished = next == answer.size()};
      if (given == 0 && sampling.prompt_logprobs)
        for (size_t i = 1; i < prompt.size(); ++i)
          out.prompt_logprobs.push_back(row_of(prompt[i], *sampling.prompt_logprobs));
      for (int64_t choice = 0; choice < sampling.n; ++choice) {
        esurge::CompletionOutput& one = out.outputs.emplace_back();
        one.index = choice;
        for (size_t i = given; i < next; ++i) {
          one.text += char(answer[i] < 128 ? answer[i] : '?');
          if (sampling.return_token_ids) one.token_ids.push_back(answer[i]);
          if (sampling.logprobs) one.logprobs.push_back(row_of(answer[i], *sampling.logprobs));
        }
        if (out.finished) one.finish_reason = esurge::FinishReason::length;
      }
      out.num_generated_tokens = int64_t(next) * sampling.n;
      out.fingerprint = "fp";
      const bool finished = out.finished;
      listener(std::move(out));
      if (finished) break;
    }
    return ++last_;
  }
  void abort(int64_t) override {}
  void pause() override {}
  void resume() override {}
  esurge::EngineMetrics metrics() const override { return {}; }
  void save_prefix_cache(const std::filesystem::path&) override {}
  void reset_prefix_cache() override {}
  int64_t load_adapter(const std::string&, const std::filesystem::path& folder, bool) override {
    refuse(folder.string(), "has no adapter");
  }
  void unload_adapter(const std::string&) override {}
  std::vector<esurge::AdapterInfo> adapters() const override { return {}; }
  esurge::HeldWeights hold_weights() const override { return esurge::HeldWeights{std::shared_lock(mutex_)}; }
  std::string update_weights(const std::filesystem::path& folder, bool) override {
    refuse(folder.string(), "has no config.json");
  }

 private:
  static esurge::TokenLogprobs row_of(TokenId token, int64_t count) {
    esurge::TokenLogprobs out;
    for (int64_t i = 0; i <= std::min<int64_t>(count, 20); ++i) {
      out.token_ids.push_back((token + TokenId(i)) % vocabulary);
      out.logprobs.push_back(-1.0f - float(i));
    }
    return out;
  }

  mutable std::shared_mutex mutex_;
  int64_t last_ = 0;
};

// The loop of the socket thread, for one connection.
class Loop {
 public:
  void post(std::function<void()> call) { calls_.push_back(std::move(call)); }
  void run() {
    while (!calls_.empty()) {
      const auto call = std::move(calls_.front());
      calls_.pop_front();
      call();
    }
  }

 private:
  std::deque<std::function<void()>> calls_;
};

// A client that sends `input`, `step` bytes at a time, then nothing more.
class Client final : public Transport {
 public:
  Client(Loop& loop, std::string_view input, size_t step, std::string& output)
      : loop_(loop), input_(input), step_(step), output_(output) {}

  void read(Received received) override {
    const std::string_view bytes = input_.substr(0, std::min(max_read_bytes, step_));
    input_.remove_prefix(bytes.size());
    loop_.post([alive = alive_, bytes, received = std::move(received)] {
      if (*alive) received(bytes);
    });
  }
  void write(std::string_view bytes, Done done) override {
    output_ += bytes;
    loop_.post([alive = alive_, bytes = bytes.size(), done = std::move(done)] {
      if (*alive) done(bytes, false);
    });
  }
  void end_output() override {}
  void close() override { *alive_ = false; }
  bool has_ended() const override { return false; }

 private:
  Loop& loop_;
  std::string_view input_;
  const size_t step_;
  std::string& output_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class Server {
 public:
  Server() : encodes_({}), jobs_({}), api_(config_, nullptr, models_) {
    log::set_sink([this](log::Level level, std::string_view line) {
      if (level == log::Level::error) errors_ += str(line, "\n");
    });
    ServedModel model{.id = "tiny", .created = 5, .max_model_len = 512, .root = "dir"};
    model.engine = std::make_shared<EchoEngine>();
    set_tokenizer(model, byte_tokenizer());
    models_.add(std::move(model));
    api_.set_state(ServerState::ready);
    add_chat_route(api_, context_);
    add_completion_route(api_, context_);
    add_model_routes(api_, context_);
    add_embedding_routes(api_, context_);
    add_adapter_routes(api_, context_);
    add_weights_route(api_, context_, models_);
    add_message_routes(api_, context_);
    add_response_routes(api_, context_, responses_);
    callbacks_ = api_.callbacks();
    host_.limits.request = {.header_bytes = 4096, .header_fields = 16, .target_bytes = 512, .body_bytes = 65536};
    host_.now = [] { return Clock::time_point(); };
    host_.seconds_since_1970 = [] { return int64_t(5); };
    host_.post = [this](std::function<void()> call) { loop_.post(std::move(call)); };
    host_.check_head = callbacks_.check_head;
    host_.handle = [this](std::shared_ptr<Exchange> exchange) {
      try {
        callbacks_.handle(std::move(exchange));
      } catch (const std::exception& error) {
        errors_ += str("handler: ", error.what(), "\n");
      }
    };
    host_.is_draining = [] { return false; };
    host_.answered = [](int) {};
    host_.refused = [](RefusedFor) {};
    host_.received = host_.sent = [](size_t) {};
    host_.held = std::make_shared<HeldBytes>(HeldBytes::Limits{});
  }

  // All that the server answers to a connection. A request that is not the client's fault fails is a finding.
  std::string answers(std::string_view input, size_t step) {
    errors_.clear();
    std::string out;
    const auto connection =
        std::make_shared<Connection>(host_, std::make_unique<Client>(loop_, input, step, out), "", true);
    connection->start();
    loop_.run();
    connection->abort();
    loop_.run();
    if (errors_.empty()) return out;
    std::cerr << errors_ << out << "\n";
    std::abort();
  }

 private:
  const ServeConfig config_;
  ModelList models_;
  ResponseStore responses_;
  EncodeQueue encodes_;
  AnswerJobs jobs_;
  Api api_;
  const RouteContext context_{config_, models_, jobs_, encodes_};
  HttpServer::Callbacks callbacks_;
  ConnectionHost host_;
  Loop loop_;
  std::string errors_;
};

constexpr std::array paths = {"/v1/chat/completions",
                              "/v1/completions",
                              "/v1/responses",
                              "/v1/messages",
                              "/v1/messages/count_tokens",
                              "/tokenize",
                              "/detokenize",
                              "/apply-template",
                              "/v1/embeddings",
                              "/v1/rerank",
                              "/v1/score",
                              "/v1/classify",
                              "/v1/load_lora_adapter",
                              "/v1/adapters",
                              "/v1/tools/execute"};

void require(bool good, const std::string& what) {
  if (good) return;
  std::cerr << what << "\n";
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Server server;
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t what = data[0] % (paths.size() + 1);
  if (what == paths.size()) {
    server.answers(bytes, 1 + size_t(data[1]) * 16);
    return 0;
  }
  const std::string request =
      str("POST ", paths[what],
          " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ", bytes.size(),
          "\r\n\r\n", bytes);
  const std::string answer = server.answers(request, request.size());
  require(answer.starts_with("HTTP/1.1 ") && !answer.starts_with("HTTP/1.1 500"), answer);
  const size_t body = answer.find("\r\n\r\n");
  require(body != std::string::npos, answer);
  if (answer.find("Content-Type: application/json") < body) parse_json(answer.substr(body + 4));
  return 0;
}
