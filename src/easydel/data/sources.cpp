// The kinds of data files, in alphabetical order.
#include <array>

#include "easydel/base/error.h"
#include "easydel/data/byte_stream.h"
#include "easydel/data/rows.h"

namespace easydel::data {

extern const FileSource arrow_source, csv_source, json_source, jsonl_source, parquet_source, tsv_source, txt_source,
    webdataset_source;

std::span<const FileSource> file_sources() {
  static const std::array all{arrow_source,   csv_source, json_source, jsonl_source,
                              parquet_source, tsv_source, txt_source,  webdataset_source};
  return all;
}

std::string source_names() {
  std::string out;
  for (const FileSource& source : file_sources())
    out += str(out.empty() ? "" : &source == &file_sources().back() ? " or " : ", ", source.name);
  return out;
}

const FileSource* find_source(std::string_view name) {
  for (const FileSource& source : file_sources())
    if (source.name == name) return &source;
  return nullptr;
}

const FileSource* source_of_file(const std::filesystem::path& file) {
  const auto extension = without_compression(file).extension();
  for (const FileSource& source : file_sources())
    for (const std::string_view one : source.extensions)
      if (extension == one) return &source;
  return nullptr;
}

}  // namespace easydel::data
