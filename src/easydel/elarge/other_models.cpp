#include "easydel/elarge/other_models.h"

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/elarge/actions.h"

namespace easydel::elarge {
namespace {

const std::vector<std::string> known_sections = {"model", "loader", "quantization", "esurge"};

Place key_place(const Value& map, size_t index) {
  return index < map.key_places.size() ? map.key_places[index] : map.entries[index].second.place;
}

template <class Section>
void read_into(Section& section, const Value& value, const std::string& path, config::Problems& problems) {
  config::read_section(config::section_of<Section>(), value, &section, path, problems);
}

void read_sections(const Value& sections, Config& config, const std::string& path, config::Problems& problems) {
  const size_t before = problems.size();
  for (size_t i = 0; i < sections.entries.size(); ++i) {
    const auto& [name, value] = sections.entries[i];
    const std::string at = path + "." + name;
    if (name == "model")
      read_into(config.model, value, at, problems);
    else if (name == "loader")
      read_into(config.loader, value, at, problems);
    else if (name == "quantization")
      read_into(config.quantization, value, at, problems);
    else if (name == "esurge")
      read_into(config.esurge, value, at, problems);
    else
      problems.add(at, key_place(sections, i), "no such key", did_you_mean(name, known_sections));
  }
  if (!sections.find("model"))
    problems.add(path + ".model", sections.place, "is missing", "give the model's folder: model: {name_or_path: DIR}");
  const Value* const engine = sections.find("esurge");
  if (engine && engine->find("esurge_name"))
    problems.add(path + ".esurge.esurge_name", "is the name above it", "leave it out");
  if (problems.size() != before) return;
  config::Problems found("");
  check_built(config, false, found);
  for (const config::Problem& problem : found.sorted()) {
    const std::string own = path + "." + problem.path;
    if (problems.given(own)) problems.add(own, problem.what, problem.remedy);  // else the run says it
  }
}

}  // namespace

std::vector<OtherModel> other_models(const Config& run, const Value& models, const std::string& path,
                                     config::Problems& problems) {
  std::vector<OtherModel> out;
  if (models.is_null()) return out;
  if (!models.is_map()) {
    problems.add(path, models.place, config::shown(models) + " is not a section",
                 "names and folders: {small: models/small}");
    return out;
  }
  for (size_t i = 0; i < models.entries.size(); ++i) {
    const auto& [name, value] = models.entries[i];
    const std::string at = path + "." + name;
    OtherModel& other = out.emplace_back(OtherModel{name, run});
    Config& config = other.config;
    config.model = {};
    config.lora = {};
    config.adapters = {};
    config.esurge.speculative_model = {};
    config.esurge.prefix_cache_path = {};
    problems.saw(at, key_place(models, i));
    if (const std::optional<std::string> folder = value.as_string(); folder && !folder->empty())
      config.model.name_or_path = *folder;
    else if (value.is_map())
      read_sections(value, config, at, problems);
    else
      problems.add(at, value.place, config::shown(value) + " is not a model",
                   "give a folder or a name on the Hub, or sections: {model: {name_or_path: DIR}, esurge: {...}}");
    config.esurge.esurge_name = name;
  }
  return out;
}

}  // namespace easydel::elarge
