// Answers of a server (`easydel serve`, or any with OpenAI's interface) instead of a model in this process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/cli/commands.h"
#include "easydel/cli/model_session.h"
#include "easydel/elarge/core.h"
#include "easydel/generation/generation_config.h"

namespace easydel::cli {

class RemoteModel {
 public:
  // `options.server`: its address, with or without /v1. Flags of a model in this process are refused. UserError also if
  // the file with the key cannot be read.
  explicit RemoteModel(const ModelOptions& options);

  // As Session::generate: texts are completed and conversations answered, one request after the other. `constraint`:
  // members that constrain every answer, instead of request.constraint. While request.stop is set by Ctrl-C, the server
  // computes nothing more. UserError: the server is not there, has no field for a generation flag, or refuses a request
  // in its own words. Seconds are those of this side: until the first text, and after it. A server counts the new
  // tokens of all answers to a prompt together, here given to the first; it tells no count of an answer that is
  // stopped.
  std::vector<elarge::Generated> generate(const elarge::GenerateRequest& request,
                                          const Value& constraint = Value::map()) const;

 private:
  Value members(const generation::GenerationConfig& generation) const;
  // All answers to a body with messages (a chat) or a prompt; the first of them is result number `first`.
  std::vector<elarge::Generated> answer(Value body, const elarge::GenerateRequest& request, size_t first) const;

  std::string server_, key_, model_;
};

// What answers `generate` and `chat`: a model in this process, or a server.
class Generator {
 public:
  // `generation` may get a seed (choose_seed). UserError: neither or both can answer.
  Generator(const ModelOptions& options, generation::GenerationConfig& generation);
  void load() const;  // the model, before time is taken
  std::vector<elarge::Generated> generate(const elarge::GenerateRequest& request,
                                          const Value& constraint = Value::map()) const;

 private:
  std::optional<RemoteModel> remote_;
  ModelSession local_;
};

}  // namespace easydel::cli
