// Requests to encoders, one after the other on a thread of their own, so that the threads that read requests never wait
// for a model.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "easydel/server/api.h"
#include "easydel/server/handler_pool.h"
#include "easydel/server/served_model.h"

namespace easydel::server {

struct EncodeRequest {
  std::shared_ptr<Call> call;
  std::shared_ptr<const ServedModel> model;  // with an encoder
  std::vector<EncodedText> texts;
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
  ~EncodeQueue() { cancel_all(); }

  // Refusal: too many requests wait. When the client has gone, nothing more is computed for it.
  void add(EncodeRequest request);
  // Everything that is not answered ends with 503, from now on.
  void cancel_all() { ending_ = true; }

 private:
  std::vector<Vector> encode(const EncodeRequest& request) const;

  const Options options_;
  std::atomic<bool> ending_ = false;
  std::atomic<int64_t> requests_ = 0;
  HandlerPool thread_{1, SIZE_MAX};  // ends before what it uses
};

}  // namespace easydel::server
