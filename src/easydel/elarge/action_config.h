// Parameters of the actions that take some.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/generation/generation_config.h"

namespace easydel::elarge {

struct GenerateConfig {
  config::Many<std::string> prompts;
  std::string negative_prompt;
  std::optional<std::string> output_path;
  bool apply_chat_template = false;

  static constexpr auto doc = "What is continued.";
  static constexpr auto fields() {
    using namespace config;
    return std::tuple{
        field<&GenerateConfig::prompts>("What to continue.", required(), alias("prompt")),
        field<&GenerateConfig::negative_prompt>("With guidance_scale: what the text is led away from."),
        field<&GenerateConfig::output_path>("JSON Lines file for the results; null: standard output."),
        field<&GenerateConfig::apply_chat_template>("Each prompt is what a user says."),
    };
  }
};

// `generate`, flat: what is continued, and generation::GenerationConfig's keys. Keys that are not given come from the
// model's generation_config.json.
struct GenerateAction {
  GenerateConfig generate;
  generation::GenerationConfig generation;

  static config::Section section();
};

struct PathConfig {
  std::string path;

  static constexpr auto doc = "Write the normalised configuration to a file.";
  static constexpr auto fields() {
    return std::tuple{config::field<&PathConfig::path>("The file.", config::required())};
  }
  void settle(config::Keys& keys) {
    if (path.empty()) keys.refuse("path", "is empty", "give the name of a file");
  }
};

struct PushConfig {
  std::string repo_id;
  std::string revision = "main";
  bool is_private = false, create_pr = false;
  std::string commit_message = "Upload with easydel", commit_description;

  static constexpr auto doc = "Send the model, as it is now, to a repository of the hub; only what changed.";
  static constexpr auto fields() {
    using namespace config;
    return std::tuple{
        field<&PushConfig::repo_id>("The repository, owner/name; it is made where there is none.", required()),
        field<&PushConfig::revision>("Its branch."),
        field<&PushConfig::is_private>("Where it is made now: only for its owner.", named("private")),
        field<&PushConfig::create_pr>("As a pull request instead of a commit to the branch."),
        field<&PushConfig::commit_message>("First line of the commit."),
        field<&PushConfig::commit_description>("The rest of it."),
    };
  }
};

enum class EvalEngine { automatic, esurge };
constexpr auto choices(EvalEngine) {
  using config::Choice;
  return std::array{Choice{EvalEngine::automatic, "auto"}, Choice{EvalEngine::esurge, "esurge"}};
}

struct EvalActionConfig {
  config::Many<std::string> tasks;
  EvalEngine engine = EvalEngine::automatic;
  int64_t num_fewshot = 0;
  std::optional<std::string> output_path;
  bool print_results = false;

  static constexpr auto doc = "Evaluate the model on benchmark tasks.";
  static constexpr auto fields() {
    using namespace config;
    return std::tuple{
        field<&EvalActionConfig::tasks>("Names of tasks.", required()),
        field<&EvalActionConfig::engine>("What answers."),
        field<&EvalActionConfig::num_fewshot>("Examples shown before each question.", at_least(0)),
        field<&EvalActionConfig::output_path>("JSON file for the results."),
        field<&EvalActionConfig::print_results>("Show a table."),
    };
  }
};

struct ServeConfig {
  std::string host = "0.0.0.0";
  int64_t port = 11556;
  int64_t workers = 1;
  std::string log_level = "info";
  bool reload = false;
  std::optional<std::string> ssl_keyfile, ssl_certfile;
  std::string tool_parser_name = "hermes";
  bool oai_like_processor = true;
  bool enable_function_calling = true;
  bool require_api_key = false;
  std::optional<std::string> admin_key;
  bool enable_cors = false;
  std::optional<std::vector<std::string>> cors_origins;

  static constexpr auto doc = "Serve the model by OpenAI's HTTP interface.";
  static constexpr auto fields() {
    using namespace config;
    return std::tuple{
        field<&ServeConfig::host>("Address."),
        field<&ServeConfig::port>("Port.", between(0, 65535)),
        field<&ServeConfig::workers>("Processes; only 1.", between(1, 1)),
        field<&ServeConfig::log_level>("How much is logged."),
        field<&ServeConfig::reload>("Reload on changes: not possible while a model is served."),
        field<&ServeConfig::ssl_keyfile>("Key for HTTPS."),
        field<&ServeConfig::ssl_certfile>("Certificate for HTTPS."),
        field<&ServeConfig::tool_parser_name>("How tool calls are written."),
        field<&ServeConfig::oai_like_processor>("Chunks of a stream as OpenAI's."),
        field<&ServeConfig::enable_function_calling>("Parse tool calls."),
        field<&ServeConfig::require_api_key>("Ask for a key."),
        field<&ServeConfig::admin_key>("The administrator's key."),
        field<&ServeConfig::enable_cors>("Answer other origins."),
        field<&ServeConfig::cors_origins>("Which origins."),
    };
  }
  void settle(config::Keys& keys) {
    if (reload) keys.refuse("reload", "is not possible: the server and the engine are one process", "start it anew");
    for (const auto& [key, text] : {std::pair{"host", &host}, std::pair{"log_level", &log_level},
                                    std::pair{"tool_parser_name", &tool_parser_name}})
      if (text->empty()) keys.refuse(key, "is empty", "leave the key out for its default");
  }
};

}  // namespace easydel::elarge
