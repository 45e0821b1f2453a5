// What `generate` and `chat` share: their options made into a session, and Ctrl-C.
#pragma once

#include <atomic>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "easydel/base/document.h"
#include "easydel/cli/commands.h"
#include "easydel/elarge/core.h"
#include "easydel/generation/generation_config.h"

namespace easydel::cli {

// elarge::join_hosts with the configuration of a document. What is wrong with that is said by who reads it.
void join_hosts(const Value& document, const std::vector<std::string>& set);

struct ModelSession {
  std::unique_ptr<elarge::Session> session;
  std::filesystem::path folder;  // of the model
};
// The sections `model`, `loader` and `lora` of a run with these options.
Value model_document(const ModelOptions& options);
// UserError: the model has no weights, and options.random_weights is not set.
ModelSession open_session(const ModelOptions& options);

// The generation flags, checked against their limits.
generation::GenerationConfig generation_flags(const ModelOptions& options);
// Without a seed, draws are random: chooses one and logs it, so that the same texts can be drawn again. Ranks would not
// choose the same one, so several keep the default.
void choose_seed(const std::filesystem::path& folder, generation::GenerationConfig& generation);

// The text of the file that --template names; nullopt: the tokenizer's template is used.
std::optional<std::string> template_of(const ModelOptions& options);

Value chat_message(const std::string& role, const std::string& content);

// While it lives, Ctrl-C ends the reply instead of the program; a second one ends the program.
class StopOnInterrupt {
 public:
  StopOnInterrupt();
  ~StopOnInterrupt() { ::sigaction(SIGINT, &before_, nullptr); }
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;

 private:
  struct sigaction before_ = {};
};
const std::atomic<bool>& reply_is_stopped();

}  // namespace easydel::cli
