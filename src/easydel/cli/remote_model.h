// Answers of a server (`easydel serve`, or any with OpenAI's interface) instead of a model in this process.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/cli/commands.h"
#include "easydel/cli/model_session.h"
#include "easydel/elarge/core.h"
#include "easydel/generation/generation_config.h"

namespace easydel::cli {

// What requests to a server have in addition to those of a model in this process.
struct RemoteExtras {
  Value constraint = Value::map();  // members that constrain every answer, instead of GenerateRequest::constraint
  // The new words of result `index` that the server tells apart as reasoning. They come before its text.
  std::function<void(size_t index, std::string_view piece)> on_reasoning = {};
};

class RemoteModel {
 public:
  // `options.server`: its address, with or without /v1, or unix:/path of a socket. Flags of a model in this process are
  // refused. UserError also if the file with the key cannot be read.
  explicit RemoteModel(const ModelOptions& options);

  // As Session::generate: texts are completed and conversations answered, one request after the other. While
  // request.stop is set by Ctrl-C, the server computes nothing more. UserError: the server is not there, has no field
  // for a generation flag, or refuses a request in its own words. Seconds are those of this side: until the first
  // words, and after them. new_tokens is -1 where the server does not say how many there are: of an answer that is
  // stopped, and, if it does not send token ids, of each of several answers.
  std::vector<elarge::Generated> generate(const elarge::GenerateRequest& request,
                                          const RemoteExtras& extras = {}) const;

 private:
  Value members(const generation::GenerationConfig& generation) const;
  // All answers to a body with messages (a chat) or a prompt; the first of them is result number `first`.
  std::vector<elarge::Generated> answer(Value body, const elarge::GenerateRequest& request, const RemoteExtras& extras,
                                        size_t first) const;

  std::string server_, unix_socket_, key_, model_;
};

// What answers `generate` and `chat`: a model in this process, or a server.
class Generator {
 public:
  // `generation` may get a seed (choose_seed). UserError: neither or both can answer.
  Generator(const ModelOptions& options, generation::GenerationConfig& generation);
  void load() const;  // the model, before time is taken
  std::vector<elarge::Generated> generate(const elarge::GenerateRequest& request,
                                          const RemoteExtras& extras = {}) const;

 private:
  std::optional<RemoteModel> remote_;
  ModelSession local_;
};

}  // namespace easydel::cli
