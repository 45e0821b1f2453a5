// type: tsv. Fields between tabs.
#include <array>

#include "easydel/data/delimited.h"

namespace easydel::data {
namespace {

constexpr std::array<std::string_view, 1> tsv_extensions{".tsv"};

bool read_tsv(const std::filesystem::path& file, const ReadOptions& options, const RowSink& sink) {
  return read_delimited(file, '\t', options, sink);
}

}  // namespace

extern const FileSource tsv_source{"tsv", tsv_extensions, read_tsv};

}  // namespace easydel::data
