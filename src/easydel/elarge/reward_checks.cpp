#include "easydel/elarge/reward_checks.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/hub/resolve.h"
#include "easydel/weights/folder.h"

namespace easydel::elarge {
namespace {

namespace fs = std::filesystem;

bool can_run(const fs::path& file) { return files::is_file(file) && ::access(file.c_str(), X_OK) == 0; }

// As posix_spawnp finds it.
bool is_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return can_run(name);
  const char* const path = std::getenv("PATH");
  std::string_view rest = path ? path : "/bin:/usr/bin";
  for (;;) {
    const size_t end = rest.find(':');
    const std::string_view folder = rest.substr(0, end);
    if (can_run(fs::path(folder.empty() ? "." : folder) / name)) return true;
    if (end == std::string_view::npos) return false;
    rest.remove_prefix(end + 1);
  }
}

void check_reward(const train::RewardEntry& entry, bool has_section, const std::string& path,
                  config::Problems& problems) {
  if (entry.type == train::RewardType::program && !entry.command.empty() && !is_program(entry.command[0]))
    problems.add(path + ".command", "'" + entry.command[0] + "' is not a program that can be started",
                 "give the program's path, or the name of one in PATH");
  if (entry.type != train::RewardType::model) return;
  if (!entry.model) {
    if (!has_section)
      problems.add(path, "names no model, and there is no section reward_model",
                   "give `model: FOLDER`, or the section");
    return;
  }
  problems.collect(path + ".model", [&] {
    const fs::path folder = hub::resolve_model(*entry.model, path + ".model", "main", hub::ModelFiles::description);
    if (!weights::has_config(folder))
      refuse(path + ".model", "'" + *entry.model + "' has no config.json", "give a Hugging Face model folder");
  });
}

}  // namespace

void check_rewards(const Config& config, config::Problems& problems) {
  const train::RolloutKeys* const keys = config.trainer.rollouts();
  if (!keys || problems.any_at("trainer")) return;
  const bool has_section = config.reward_model.has_value();
  if (keys->rewards.empty() && !has_section && !config.trainer.judges_itself())
    problems.add("trainer.rewards", "is missing, so no completion is worth more than another",
                 "name at least one, such as [{type: answer}], or give the section reward_model");
  for (size_t i = 0; i < keys->rewards.size(); ++i)
    check_reward(keys->rewards[i], has_section, str("trainer.rewards[", i, "]"), problems);
}

}  // namespace easydel::elarge
