#include "easydel/generation/sampling_config.h"

#include "easydel/base/log.h"

namespace easydel::generation {

SamplingConfig sampling_defaults(const std::filesystem::path& model_folder) {
  SamplingConfig out;
  const auto& known = config::section_of<SamplingConfig>();
  Value kept = Value::map();
  const auto take = [&](const char* file, auto wanted) {
    const auto path = model_folder / file;
    if (!std::filesystem::exists(path)) return;
    const Value document = parse_file(path);
    if (!document.is_map()) return;
    for (const auto& [name, value] : document.entries)
      if (wanted(name) && !value.is_null()) kept.set(name, value);
    const Value* beams = document.find("num_beams");
    if (beams && beams->as_int().value_or(1) > 1)
      log::warning(path.string(), ": asks for beam search (num_beams), which is not built yet; one sequence is kept");
  };
  take("config.json", [](std::string_view name) { return name == "eos_token_id"; });
  take("generation_config.json", [&](std::string_view name) {
    for (const config::Key& key : known.keys)
      if (key.name == name) return true;
    return false;
  });
  config::read(kept, out, (model_folder / "generation_config.json").string()).throw_if_any();
  return out;
}

}  // namespace easydel::generation
