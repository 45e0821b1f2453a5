// type: arrow. The record batches of an Arrow file, also of the stream form that `datasets` saves.
#include <array>

#include "easydel/data/columnar.h"

namespace easydel::data {
namespace {

constexpr std::array<std::string_view, 1> arrow_extensions{".arrow"};

bool read_arrow(const std::filesystem::path& file, const ReadOptions& options, const RowSink& sink) {
  return read_columns(file, columnar::Form::arrow, options, sink);
}

std::vector<RowPlace> arrow_places(const std::filesystem::path& file) {
  return places_in_columns(file, columnar::Form::arrow);
}

}  // namespace

extern const FileSource arrow_source{"arrow", arrow_extensions, read_arrow, [] { columnar_library(); }, arrow_places};

}  // namespace easydel::data
