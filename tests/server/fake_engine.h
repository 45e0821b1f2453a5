// An engine whose answers a test chooses, behind the interface that the server uses, and a server over it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/server/encode_queue.h"
#include "easydel/server/http_server.h"
#include "easydel/server/key_store.h"
#include "easydel/server/response_store.h"
#include "easydel/server/route_context.h"
#include "server/client.h"

namespace easydel::test {

// Gives each request the tokens that `answer` says, as results that are cut at random places, from a thread of its own.
class FakeEngine final : public server::ServedEngine {
 public:
  // The tokens of choice `choice`, without an end token.
  using Answer = std::function<std::vector<text::TokenId>(const esurge::Request& request, int64_t choice)>;

  FakeEngine(std::shared_ptr<const text::Tokenizer> tokenizer, Answer answer);
  ~FakeEngine() override;

  int64_t add(esurge::Request request, Listener listener) override;
  void abort(int64_t id) override;
  void pause() override { hold(); }
  void resume() override { release(); }
  esurge::EngineMetrics metrics() const override;
  void save_prefix_cache(const std::filesystem::path&) override {}
  void reset_prefix_cache() override {}
  int64_t load_adapter(const std::string& name, const std::filesystem::path& folder, bool replace) override;
  void unload_adapter(const std::string& name) override;
  std::vector<esurge::AdapterInfo> adapters() const override;
  esurge::HeldWeights hold_weights() const override;
  // A folder without config.json is refused. The fingerprint is the folder's name, and the next result of a request has
  // it.
  std::string update_weights(const std::filesystem::path& folder, bool abort) override;

  void hold();  // no result comes until release()
  void release();
  void fail_after(int64_t results) { fail_after_ = results; }  // of each request
  // Waits until this many requests were aborted.
  bool has_aborted(int64_t count);
  int64_t added() const { return added_; }
  int64_t generated() const { return generated_; }  // tokens of all requests that have ended

 private:
  struct Choice {
    std::vector<text::TokenId> tokens;
    size_t given = 0;
    std::optional<text::DecodeStream> decoder;
    std::string text, shown;
    bool finished = false;
  };
  struct Live {
    esurge::Request request;
    Listener listener;
    std::vector<Choice> choices;
    int64_t results = 0, generated = 0;
    bool aborted = false;
  };
  void run();
  esurge::RequestOutput next(Live& live);

  const std::shared_ptr<const text::Tokenizer> tokenizer_;
  const Answer answer_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, Live> live_;
  std::map<std::string, esurge::AdapterInfo> adapters_;
  int64_t versions_ = 0, weights_ = 0;
  std::string fingerprint_;
  mutable std::shared_mutex weights_mutex_;
  std::mt19937 random_{7};
  int64_t next_ = 1, aborted_ = 0;
  std::atomic<int64_t> fail_after_ = -1, added_ = 0, generated_ = 0;
  bool held_ = false, ending_ = false;
  std::thread thread_;
};

// The tokenizer of the story model, with its chat template.
std::shared_ptr<const text::Tokenizer> story_tokenizer();
// Tokens that depend on the prompt, the seed and the choice alone.
std::vector<text::TokenId> random_answer(const esurge::Request& request, int64_t choice);

struct Reply {
  int status = 0;
  std::string head, body;
  Value json() const { return parse_json(body); }
  std::string error(const char* field) const;
  // The documents of a stream's events without the last, which has to be [DONE].
  std::vector<Value> events() const;
};

// A server with the routes of a model over a fake engine.
class FakeServer {
 public:
  explicit FakeServer(FakeEngine::Answer answer = random_answer,
                      const std::function<void(server::ServeConfig&)>& change_config = {},
                      const std::function<void(server::ServedModel&)>& change_model = {});
  ~FakeServer();
  // With the administrator's key, if there is one and no other header Authorization.
  Reply post(const std::string& path, const std::string& body, const std::string& headers = "") const;
  Reply get(const std::string& path) const;
  std::string key_header() const;  // the administrator's; empty: there is none
  // The head and the body of a request, to be sent.
  static std::string posted(const std::string& path, const std::string& body, const std::string& headers = "");

  server::ServeConfig config;
  std::shared_ptr<FakeEngine> engine;
  server::ModelList models;
  server::ResponseStore responses;
  server::AnswerJobs jobs;
  std::unique_ptr<server::KeyStore> keys;  // null: the configuration has no admin_key
  server::Api api;
  std::unique_ptr<server::HttpServer> http;
  server::EncodeQueue encodes;  // its thread ends before what it answers to
};

}  // namespace easydel::test
