// type: parquet. The row groups of a Parquet file.
#include <array>

#include "easydel/data/columnar.h"

namespace easydel::data {
namespace {

constexpr std::array<std::string_view, 3> parquet_extensions{".parquet", ".geoparquet", ".gpq"};

bool read_parquet(const std::filesystem::path& file, const ReadOptions& options, const RowSink& sink) {
  return read_columns(file, columnar::Form::parquet, options, sink);
}

std::vector<RowPlace> parquet_places(const std::filesystem::path& file) {
  return places_in_columns(file, columnar::Form::parquet);
}

}  // namespace

extern const FileSource parquet_source{"parquet", parquet_extensions, read_parquet, [] { columnar_library(); },
                                       parquet_places};

}  // namespace easydel::data
