// The requests to an engine that answer one HTTP request, from their start to the last byte of the answer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "easydel/server/api.h"
#include "easydel/server/completion_json.h"
#include "easydel/server/served_model.h"

namespace easydel::server {

// Makes an answer of results, streamed or whole, in the form of its route. One call at a time, on any thread.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  // Before begin(): not the fingerprint of the model as it was when the request came, but this one.
  virtual void set_fingerprint(const std::string& fingerprint) { static_cast<void>(fingerprint); }
  // The engine has taken all requests; nothing was written before.
  virtual void begin(Call& call) = 0;
  // The next result of request `index`.
  virtual void add(Call& call, size_t index, const esurge::RequestOutput& output, const TokenUsage& usage) = 0;
  // All requests are finished.
  virtual void end(Call& call, const TokenUsage& usage) = 0;
  // The answer ends here, because of an error.
  virtual void fail(Call& call, const ApiError& error) = 0;
};

// One request to the engine.
struct AnswerPart {
  esurge::Request request = {};
  int64_t prompt_tokens = 0, truncated_tokens = 0;
  int64_t copies = 1;  // the writer gets the only answer this often, as choices 0 to copies - 1
  bool shows_timings = false;
  std::string constraint_field = {};  // of the body, where its constraint comes from; empty: it has none
  bool counts_answer = true;          // false: what the engine generates is not part of the answer
};

class AnswerJob;

// The answers that are being made. Thread-safe.
class AnswerJobs {
 public:
  struct Options {
    // Requests that may be there at once; more are refused with 503. 0: four times as many as the engine runs.
    int64_t max_requests = 0;
    int64_t max_of_all_models = 0;  // the same of all models together; 0: no such limit
    double timeout_seconds = 0;     // of a request; 0: none
    std::string overload_message = "The server is busy. Try again later.";
    bool log_prompts = false;
    KeyStore* keys = nullptr;  // may be null; must outlive the jobs
  };
  explicit AnswerJobs(Options options) : options_(std::move(options)) {}

  // Starts the requests and hands their results to `writer`. When the client goes away, the engine computes nothing
  // more for it. UserError, Refusal: the request cannot be served, and nothing was started.
  void start(std::shared_ptr<Call> call, std::shared_ptr<const ServedModel> model, std::vector<AnswerPart> parts,
             std::unique_ptr<AnswerWriter> writer);

  // Adds a prompt to what is logged of a request, if prompts are logged.
  void note_prompt(Call& call, const ServedModel& model, std::span<const text::TokenId> ids) const;
  // Counts tokens of a request that needs no engine. Refusal: the key has none left.
  void count_tokens(const Call& call, int64_t tokens) const;

  struct Info {
    std::string id, key, route, model;
    double seconds = 0;
    int64_t prompt_tokens = 0, generated_tokens = 0;
  };
  std::vector<Info> list() const;
  bool cancel(const std::string& id, const ApiError& error);  // false: there is no such request
  void cancel_all(const ApiError& error);
  int64_t count() const;  // without those whose clients have gone

 private:
  friend class AnswerJob;
  std::vector<std::shared_ptr<AnswerJob>> all() const;
  bool add_tokens(const Call& call, int64_t tokens) const;  // false: the key has none left

  const Options options_;
  mutable std::mutex mutex_;
  int64_t next_ = 0;
  std::map<int64_t, std::weak_ptr<AnswerJob>> jobs_;
};

}  // namespace easydel::server
