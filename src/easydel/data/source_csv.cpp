// type: csv. Fields between commas.
#include <array>

#include "easydel/data/delimited.h"

namespace easydel::data {
namespace {

constexpr std::array<std::string_view, 1> extensions{".csv"};

bool read(const std::filesystem::path& file, const SourceOptions&, const RowSink& sink) {
  return read_delimited(file, ',', sink);
}

}  // namespace

extern const Source csv_source{"csv", extensions, read};

}  // namespace easydel::data
