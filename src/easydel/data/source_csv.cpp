// type: csv. Fields between commas.
#include <array>

#include "easydel/data/delimited.h"

namespace easydel::data {
namespace {

constexpr std::array<std::string_view, 1> csv_extensions{".csv"};

bool read_csv(const std::filesystem::path& file, const ReadOptions&, const RowSink& sink) {
  return read_delimited(file, ',', sink);
}

}  // namespace

extern const FileSource csv_source{"csv", csv_extensions, read_csv};

}  // namespace easydel::data
