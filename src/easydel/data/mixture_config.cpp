#include "easydel/data/mixture_config.h"

#include <algorithm>
#include <array>

#include "easydel/base/byte_count.h"
#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/config/paths.h"
#include "easydel/data/inform_files.h"
#include "easydel/data/row_format.h"
#include "easydel/data/row_function.h"
#include "easydel/data/split_parts.h"

namespace easydel::data {
namespace {

bool trains(const InformConfig& inform) {
  return inform.split.substr(0, inform.split.find_first_of("[(+ ")) == "train";
}

void settle_function(std::optional<std::string>& function, config::Keys& keys, const char* key) {
  if (!function) return;
  if (is_row_template(*function)) return config::expand_path(function, keys, key);
  if (find_row_function(*function)) return;
  keys.refuse(key,
              "'" + *function +
                  "' is neither a .jinja file nor a row function of a plug-in; functions of Python cannot "
                  "be called from YAML",
              row_function_remedy());
}

struct SourceNames {
  std::vector<std::string> trained, evaluated;
};

// Weights by the sources' names. Sources that are only evaluated on may be named, too.
void check_weights(const std::map<std::string, double>& weights, const SourceNames& names, const std::string& what,
                   config::Keys& keys, const char* key) {
  std::vector<std::string> missing, extra;
  for (const std::string& name : names.trained)
    if (!weights.contains(name)) missing.push_back(name);
  double sum = 0;
  for (const auto& [name, weight] : weights) {
    const bool trained = std::ranges::find(names.trained, name) != names.trained.end();
    if (!trained && std::ranges::find(names.evaluated, name) == names.evaluated.end()) extra.push_back(name);
    // Without sources to train on, the weights are never used.
    if (trained || names.trained.empty()) sum += weight;
  }
  if (!missing.empty() || !extra.empty()) {
    std::string problem = what + "the weights' names are not the sources' names";
    if (!missing.empty()) problem += "; without a weight: " + join(missing, ", ");
    if (!extra.empty()) problem += "; no such source: " + join(extra, ", ");
    keys.refuse(key, problem, "give each of these a weight: " + join(names.trained, ", "));
  } else if (sum <= 0) {
    keys.refuse(key, what + "the weights add up to 0", "give at least one source a weight above 0");
  }
}

void settle_schedule(const MixtureConfig& mixture, const SourceNames& names, config::Keys& keys) {
  const char* const key = "mixture_weight_schedule";
  const WeightScheduleConfig& schedule = *mixture.mixture_weight_schedule;
  if (!mixture.block_mixture) keys.no_effect(key, "only a block mixture has weights: set block_mixture: true");
  if (!mixture.mixture_weights.empty())
    keys.no_effect("mixture_weights", "mixture_weight_schedule has the weights of each step");
  if (mixture.stop_strategy != StopStrategy::restart)
    keys.no_effect("stop_strategy", "with mixture_weight_schedule sources restart until the run ends");
  if (mixture.pack_window)
    keys.no_effect("pack_window", "with mixture_weight_schedule the documents of a block are packed together");
  if (schedule.points.empty())
    return keys.refuse(key, "has no points", "give points: [{step: 0, weights: {...}}, ...]");
  for (size_t i = 0; i < schedule.points.size(); ++i) {
    const WeightPointConfig& point = schedule.points[i];
    if (i > 0 && point.step <= schedule.points[i - 1].step)
      keys.refuse(key, str("step ", point.step, " comes after step ", schedule.points[i - 1].step),
                  "give the points by rising steps, each step once");
    check_weights(point.weights, names, str("step ", point.step, ": "), keys, key);
  }
}

}  // namespace

void InformConfig::settle(config::Keys& keys) {
  if (content_field && content_field->empty())
    keys.refuse("content_field", "is empty", "name a field, or leave the key out");
  for (std::string& file : data_files) config::expand_path(file, keys, "data_files");
  const std::string word = canonical(type.value_or(""));
  const bool on_hub = is_hub_dataset(*this);
  if (type && !on_hub && !find_source(word) && word != "text" && !is_visual(*this))
    return keys.refuse("type", "'" + *type + "' is neither a file type nor a dataset on the Hugging Face Hub",
                       "give " + source_names() + " with data_files, or owner/name");
  const RowFormat* const rows = format ? find_row_format(canonical(*format)) : nullptr;
  if (format && !rows) {
    std::vector<std::string> names;
    for (const RowFormat& one : row_formats()) names.emplace_back(one.name);
    keys.refuse("format", "'" + *format + "' is not a format", did_you_mean(*format, names));
  }
  if (!format && !columns.empty())
    keys.refuse("columns", "names the fields of a format, and there is no format",
                "give format, or rename fields with format_fields: {old: new}");
  for (const auto& [column, field] : columns)
    if (rows && column_of_format(*rows, column).empty())
      keys.refuse("columns", str("'", column, "' is not a field of the format ", rows->name),
                  did_you_mean(column, std::vector<std::string>(rows->fields.begin(), rows->fields.end())));
  if (image_size && !is_visual(*this)) keys.no_effect("image_size", "the rows have no images: give pixel_field");
  settle_function(preprocessing_fn, keys, "preprocessing_fn");
  settle_function(format_callback, keys, "format_callback");
  if (data_files.empty() && !on_hub)
    return keys.refuse("data_files", "is missing", "give a path or a pattern such as data/*.jsonl");
  try {
    split_parts(split, "split");
  } catch (const UserError& error) {
    keys.refuse("split", error.problem, error.remedy);
  }
}

std::optional<int64_t> SaveConfig::shard_bytes() const {
  if (const auto* bytes = std::get_if<int64_t>(&max_shard_size))
    return *bytes > 0 ? std::optional(*bytes) : std::nullopt;
  return byte_count(std::get<std::string>(max_shard_size));
}

void SaveConfig::settle(config::Keys& keys) {
  if (!output_path) keys.refuse("output_path", "is missing", "give the folder to write");
  config::expand_path(output_path, keys, "output_path");
  if (!shard_bytes()) keys.refuse("max_shard_size", "is not a size", "write 500MB, 2GiB or a number of bytes");
  if (format != SaveFormat::parquet && keys.given("compression"))
    keys.no_effect("compression", "only parquet is compressed");
  if (format == SaveFormat::csv && what == SaveWhat::examples)
    keys.refuse("format", "csv cannot hold the lists of tokens of an example", "choose another format, or what: rows");
  if (push_to_hub && !hub_repo_id)
    keys.refuse("push_to_hub", "needs the name of a repository", "give hub_repo_id: owner/name");
}

void MixtureConfig::settle(config::Keys& keys) {
  if (tokenization.text_field) text_target_field = *tokenization.text_field;
  if (decontaminate && evaluation_informs(*this).empty())
    keys.no_effect("decontaminate", "there are no evaluation informs to compare with");
  if (on_bad_row == OnBadRow::error && max_bad_rows)
    keys.no_effect("max_bad_rows", "the first bad row ends the run: set on_bad_row: skip");
  settle_function(tokenize_callback, keys, "tokenize_callback");
  const SourceNames names{names_of(training_informs(*this)), names_of(evaluation_informs(*this))};
  if (mixture_weight_schedule) return settle_schedule(*this, names, keys);
  if (mixture_weights.empty()) return;
  if (!block_mixture)
    keys.no_effect("mixture_weights", "only a block mixture has weights: set block_mixture: true");
  else
    check_weights(mixture_weights, names, "", keys, "mixture_weights");
}

bool is_visual(const InformConfig& inform) {
  const std::string word = canonical(inform.type.value_or(""));
  return inform.pixel_field || word == "visual" || word == "image";
}

std::string name_of(const InformConfig& inform) {
  if (inform.name) return *inform.name;
  static constexpr std::array generic{"data", "train", "test", "valid", "validation", "dataset"};
  if (!inform.data_files.empty()) {
    std::filesystem::path path = inform.data_files[0];
    const std::string stem = path.stem().string();
    const std::string folder = path.parent_path().filename().string();
    const bool says_little = stem.find_first_of("*?[{") != std::string::npos ||
                             std::find(generic.begin(), generic.end(), stem) != generic.end();
    return says_little && !folder.empty() && folder != "." ? folder : stem;
  }
  return inform.type.value_or("source");
}

std::vector<std::string> names_of(const std::vector<InformConfig>& informs) {
  std::vector<std::string> names;
  std::map<std::string, int> seen;
  for (const InformConfig& inform : informs) {
    const std::string name = name_of(inform);
    const int before = seen[name]++;
    names.push_back(before ? name + "-" + std::to_string(before) : name);
  }
  return names;
}

std::vector<InformConfig> training_informs(const MixtureConfig& mixture) {
  std::vector<InformConfig> out;
  for (const InformConfig& inform : mixture.informs)
    if (trains(inform)) out.push_back(inform);
  return out;
}

std::vector<InformConfig> evaluation_informs(const MixtureConfig& mixture) {
  std::vector<InformConfig> out;
  for (const InformConfig& inform : mixture.informs)
    if (!trains(inform)) out.push_back(inform);
  out.insert(out.end(), mixture.evaluation.begin(), mixture.evaluation.end());
  return out;
}

}  // namespace easydel::data
