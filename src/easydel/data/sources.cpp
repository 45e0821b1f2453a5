// The kinds of data files, in alphabetical order.
#include <array>

#include "easydel/base/error.h"
#include "easydel/data/rows.h"

namespace easydel::data {

extern const Source csv_source, json_source, jsonl_source, tsv_source, txt_source;

std::span<const Source> sources() {
  static const std::array all{csv_source, json_source, jsonl_source, tsv_source, txt_source};
  return all;
}

std::span<const std::string_view> sources_not_built() {
  static constexpr std::array<std::string_view, 2> names{"arrow", "parquet"};
  return names;
}

std::string source_names() {
  std::string out;
  for (const Source& source : sources())
    out += str(out.empty() ? "" : &source == &sources().back() ? " or " : ", ", source.name);
  return out;
}

const Source* find_source(std::string_view name) {
  for (const Source& source : sources())
    if (source.name == name) return &source;
  return nullptr;
}

const Source* source_of_file(const std::filesystem::path& file) {
  const auto extension = file.extension() == ".gz" ? file.stem().extension() : file.extension();
  for (const Source& source : sources())
    for (const std::string_view one : source.extensions)
      if (extension == one) return &source;
  return nullptr;
}

}  // namespace easydel::data
