// type: parquet. The row groups of a Parquet file.
#include <array>

#include "easydel/data/columnar.h"

namespace easydel::data {
namespace {

constexpr std::array<std::string_view, 3> parquet_extensions{".parquet", ".geoparquet", ".gpq"};

bool read_parquet(const std::filesystem::path& file, const ReadOptions& options, const RowSink& sink) {
  return read_columns(file, columnar::Form::parquet, options, sink);
}

}  // namespace

extern const FileSource parquet_source{"parquet", parquet_extensions, read_parquet, [] { columnar_library(); }};

}  // namespace easydel::data
