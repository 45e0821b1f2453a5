// type: csv. Fields between commas.
#include <array>

#include "easydel/data/delimited.h"

namespace easydel::data {
namespace {

constexpr std::array<std::string_view, 1> csv_extensions{".csv"};

bool read_csv(const std::filesystem::path& file, const ReadOptions& options, const RowSink& sink) {
  return read_delimited(file, ',', options, sink);
}

}  // namespace

extern const FileSource csv_source{"csv", csv_extensions, read_csv};

}  // namespace easydel::data
