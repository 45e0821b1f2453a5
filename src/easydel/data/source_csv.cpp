// type: csv. Fields between commas.
#include <array>

#include "easydel/data/delimited.h"

namespace easydel::data {
namespace {

constexpr std::array<std::string_view, 1> csv_extensions{".csv"};

bool read_csv(const std::filesystem::path& file, const SourceOptions&, const RowSink& sink) {
  return read_delimited(file, ',', sink);
}

}  // namespace

extern const Source csv_source{"csv", csv_extensions, read_csv};

}  // namespace easydel::data
