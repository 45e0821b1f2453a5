// Parameters of the actions that take some.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "easydel/config/fields.h"
#include "easydel/config/paths.h"
#include "easydel/generation/generation_config.h"

namespace easydel::elarge {

enum class GenerateEngine : uint8_t { automatic, esurge, generator };
constexpr auto choices(GenerateEngine) {
  using config::Choice;
  return std::array{Choice{GenerateEngine::automatic, "auto"}, Choice{GenerateEngine::esurge, "esurge"},
                    Choice{GenerateEngine::generator, "generator"}};
}

struct GenerateConfig {
  config::Many<std::string> prompts;
  std::string negative_prompt;
  std::optional<std::string> output_path;
  bool apply_chat_template = false;
  GenerateEngine engine = GenerateEngine::automatic;
  bool random_weights = false;
  config::Many<std::string> adapter;

  static constexpr auto doc = "Prompts, and where the results go.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::prompts>("The prompts to continue: one text or a list.", required(), alias("prompt")),
        field<&C::negative_prompt>(
            "Negative prompt for classifier-free guidance; has an effect only with guidance_scale."),
        field<&C::output_path>("JSON Lines file to write the results to, one object for each; null: print them."),
        field<&C::apply_chat_template>("Wrap each prompt as a user message with the chat template. Turn "
                                       "it on for chat models; leave it off to continue plain text."),
        field<&C::engine>("What generates: esurge, the engine for many prompts at once, with the section esurge; "
                          "generator, the plain loop; auto, the plain loop. The tokens are the same."),
        field<&C::random_weights>("Use random weights if the model's folder has none (for tests). Without it such a "
                                  "folder is refused, unless the run trains the model first."),
        field<&C::adapter>(
            "Name in the section adapters, of all prompts, or a list with one for each prompt; the empty "
            "text is the model alone. Prompts with different adapters are generated together."),
    };
  }
  void settle(config::Keys& keys) { config::expand_path(output_path, keys, "output_path"); }
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

  static constexpr auto doc = "Write the configuration, with every default filled in, to a file.";
  template <class C>
  static constexpr auto fields() {
    return std::array{config::field<&C::path>("File to write.", config::required())};
  }
  void settle(config::Keys& keys) {
    if (path.empty()) return keys.refuse("path", "is empty", "give the name of a file");
    config::expand_path(path, keys, "path");
  }
};

struct PushConfig {
  std::string repo_id;
  std::string revision = "main";
  bool is_private = false, create_pr = false;
  std::string commit_message = "Upload with easydel", commit_description;

  static constexpr auto doc = "Push the current model to the Hugging Face Hub. Only files that changed are sent.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::repo_id>("Repository on the Hugging Face Hub, owner/name. It is created if it does not exist.",
                           required()),
        field<&C::revision>("Branch to push to."),
        field<&C::is_private>(
            "If this run creates the repository, make it private. An existing repository keeps its visibility.",
            named("private")),
        field<&C::create_pr>("Open a pull request instead of committing to the branch."),
        field<&C::commit_message>("First line of the commit message."),
        field<&C::commit_description>("Rest of the commit message."),
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
  std::optional<int64_t> num_fewshot;
  std::optional<std::string> output_path;
  bool print_results = false;

  static constexpr auto doc = "Evaluate the model on benchmark tasks.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::tasks>("Names of the tasks to run; * stands for any letters.", required()),
        field<&C::engine>("What generates the answers: the engine, or where it cannot serve the model the plain loop. "
                          "auto and esurge "
                          "mean the same; so do the texts."),
        field<&C::num_fewshot>("Number of solved examples shown before each question; null: that of the section eval, "
                               "else the task's own.",
                               at_least(0)),
        field<&C::output_path>("JSON file to write the results to, or a folder for files as the harness calls them."),
        field<&C::print_results>("Print the results as a table."),
    };
  }
  void settle(config::Keys& keys) {
    if (tasks.empty()) keys.refuse("tasks", "names no task", "for example [hellaswag, arc_easy]");
    config::expand_path(output_path, keys, "output_path");
  }
};

}  // namespace easydel::elarge
