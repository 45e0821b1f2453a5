// Requests to encoders, on a thread of their own, so that the threads that read requests never wait for a model. Texts
// of several requests share a pass, each request in its turn.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "easydel/server/answer_job.h"
#include "easydel/server/api.h"
#include "easydel/server/served_model.h"

namespace easydel::server {

struct EncodeRequest {
  std::shared_ptr<Call> call;
  std::shared_ptr<const ServedModel> model;  // with an encoder
  std::vector<EncodedText> texts;            // at least one
  // Responds, with a row for each text. What it throws becomes the answer.
  std::function<void(Call& call, std::vector<Vector> rows)> answer;
};

// Thread-safe.
class EncodeQueue {
 public:
  struct Options {
    int64_t max_requests = 0;    // that may be there at once; 0: four times esurge.max_num_seqs
    double timeout_seconds = 0;  // of a request; 0: none
    std::string overload_message = {};
  };
  explicit EncodeQueue(Options options) : options_(std::move(options)) {}
  ~EncodeQueue();  // what is not answered ends with 503

  // Refusal: too many requests wait. When the client has gone, nothing more is computed for it.
  void add(EncodeRequest request);
  std::vector<AnswerJobs::Info> list() const;
  bool cancel(const std::string& id, const ApiError& error);  // false: there is no such request
  // Everything that is not answered ends with `error`, and so does what comes.
  void cancel_all(const ApiError& error);
  int64_t count() const;
  // Calls `change`, which may put other weights behind the encoder, at a time when none of its requests is answered in
  // part: those that have begun are finished first, or all that are there end with `error`; the others wait. One call
  // at a time. What `change` throws comes back.
  void change_weights(const ServedEncoder& encoder, const std::optional<ApiError>& error,
                      const std::function<void()>& change);
  bool is_changing() const;  // change_weights() is at work

 private:
  struct Job {
    EncodeRequest request;
    int64_t tokens = 0;          // of all texts
    size_t begun = 0, done = 0;  // number of texts that were put into passes, and that have rows
    std::vector<Vector> rows = {};
  };
  using Jobs = std::list<std::shared_ptr<Job>>;
  using Pass = std::vector<std::pair<std::shared_ptr<Job>, size_t>>;  // texts by their job and number

  void run();
  bool is_held(const Job& job) const;  // until the weights of its model are changed
  Jobs take_overdue();
  Pass next_pass();
  void encode(const Pass& pass);
  bool remove(const std::shared_ptr<Job>& job);

  const Options options_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  Jobs jobs_;  // those that are not answered
  std::optional<ApiError> ended_;
  const ServedEncoder* changing_ = nullptr;   // its weights
  const ServedEncoder* computing_ = nullptr;  // a pass
  bool stops_ = false;
  std::thread thread_;  // from the first request on
};

}  // namespace easydel::server
