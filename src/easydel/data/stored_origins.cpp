#include "easydel/data/stored_origins.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/data/inform_reader.h"

namespace easydel::data {

StoredOrigins::StoredOrigins(const DatasetOptions& options, const std::vector<int64_t>& sizes,
                             std::vector<int64_t> rows)
    : options_(options), rows_(std::move(rows)) {
  for (const int64_t size : sizes) ends_.push_back((ends_.empty() ? 0 : ends_.back()) + size);
  check(!ends_.empty() && ends_.size() == options_.informs.size() && ends_.back() == int64_t(rows_.size()),
        "a store of other informs");
}

size_t StoredOrigins::inform_of(int64_t example) const {
  return size_t(std::ranges::upper_bound(ends_, example) - ends_.begin());
}

std::vector<RowOrigin> StoredOrigins::of(std::span<const int64_t> examples) const {
  struct Asked {
    size_t inform;
    int64_t row;
    size_t place;  // in the result
  };
  std::vector<Asked> asked;
  for (size_t i = 0; i < examples.size(); ++i)
    asked.push_back({inform_of(examples[i]), rows_.at(size_t(examples[i])), i});
  std::ranges::sort(asked, {}, [](const Asked& one) { return std::pair(one.inform, one.row); });

  std::vector<RowOrigin> out(examples.size());
  const Prepare nothing = [](const TypedRow&) { return Prepared(); };
  auto next = asked.begin();
  while (next != asked.end()) {
    const size_t inform = next->inform;
    const auto is_next = [&](int64_t row) { return next != asked.end() && next->inform == inform && next->row == row; };
    int64_t row = 0;
    InformReader(options_, inform, nothing).read([&](PreparedRow& read) {
      for (; is_next(row); ++next)
        out[next->place] = {inform, read.error ? Where(read.error->place, read.error->where).text() : read.row.where};
      ++row;
      return next != asked.end() && next->inform == inform;
    });
    check(next == asked.end() || next->inform != inform, "a store has more rows than its files");
  }
  return out;
}

}  // namespace easydel::data
