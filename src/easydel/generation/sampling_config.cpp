#include "easydel/generation/sampling_config.h"

#include <algorithm>

#include "easydel/base/log.h"
#include "easydel/weights/folder.h"

namespace easydel::generation {

SamplingConfig sampling_defaults(const std::filesystem::path& model_folder) {
  SamplingConfig out;
  const auto& known = config::section_of<SamplingConfig>();
  Value kept = Value::map();
  const auto take = [&](const Value& document, const std::string& where, auto wanted) {
    if (!document.is_map()) return;
    for (const auto& [name, value] : document.entries)
      if (wanted(name) && !value.is_null()) kept.set(name, value);
    const Value* beams = document.find("num_beams");
    if (beams && beams->as_int().value_or(1) > 1)
      log::warning(where, ": asks for beam search (num_beams), which is not built yet; one sequence is kept");
  };
  if (weights::has_config(model_folder)) {
    const weights::ConfigFile config = weights::read_config(model_folder);
    take(config.document, config.where, [](std::string_view name) { return name == "eos_token_id"; });
  }
  const auto path = model_folder / "generation_config.json";
  if (std::filesystem::exists(path))
    take(parse_file(path), path.string(), [&](std::string_view name) {
      return std::ranges::any_of(known.keys, [&](const config::Key& key) { return key.name == name; });
    });
  config::read(kept, out, path.string()).throw_if_any();
  return out;
}

}  // namespace easydel::generation
