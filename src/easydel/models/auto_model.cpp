#include "easydel/models/auto_model.h"

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/hub/resolve.h"
#include "easydel/models/family_configs.h"
#include "easydel/models/parts_config.h"
#include "easydel/models/registry_config.h"

namespace easydel::models {

std::shared_ptr<Model> load_for_task(TaskType task, std::string_view name, const FromHub& options) {
  const std::filesystem::path folder = hub::resolve_model(name, "from_pretrained", options.revision);
  const std::filesystem::path file = folder / "config.json";
  if (!files::is_file(file))
    refuse("from_pretrained", "'" + std::string(name) + "' has no config.json", "give a Hugging Face model folder");
  Value config = parse_file(file);
  if (!config.is_map()) refuse(file.string(), "is not a mapping");
  config = part_config(config, FilePlace{file.string()}, PartRole::text);
  for (const auto& [key, value] : options.load.overrides.entries) config.set(key, value);
  registered_module(config::word_of(task),
                    family_config_of(config, FilePlace{file.string()}).model_type);  // throws if there is none
  LoadOptions load = options.load;
  if (!load.task) load.task = head_of(task);
  return load_model(folder, load);
}

}  // namespace easydel::models
