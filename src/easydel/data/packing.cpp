#include "easydel/data/packing.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

#include "easydel/base/error.h"
#include "easydel/base/names.h"

namespace easydel::data {
namespace {

// Appends the columns of a piece of a document to those of its row.
void append_columns(Example& row, const Example& document, size_t begin, size_t end, bool new_sequence) {
  const bool first = row.lengths.empty();
  check(first || row.columns.size() == document.columns.size(), "documents of one row have unequal columns");
  for (const Column& column : document.columns) {
    check(column.per != Column::Per::example, "column ", column.name, " is of whole examples, which packing merges");
    check(column.per == Column::Per::token || document.lengths.size() == 1, "a document of several sequences");
    auto found = std::ranges::find(row.columns, column.name, &Column::name);
    if (found == row.columns.end()) {
      check(first, "column ", column.name, " is not in all documents");
      row.columns.push_back({column.name, column.per, {}});
      found = std::prev(row.columns.end());
      std::visit([&](const auto& list) { found->values = std::decay_t<decltype(list)>{}; }, column.values);
    }
    std::visit(
        [&](const auto& list) {
          auto& into = std::get<std::decay_t<decltype(list)>>(found->values);
          if (column.per == Column::Per::token)
            into.insert(into.end(), list.begin() + static_cast<std::ptrdiff_t>(begin),
                        list.begin() + static_cast<std::ptrdiff_t>(end));
          else if (new_sequence || first)
            into.push_back(list.front());
        },
        column.values);
  }
}

void append(Example& row, const Example& document, size_t begin, size_t end, bool new_sequence) {
  append_columns(row, document, begin, end, new_sequence);
  row.tokens.insert(row.tokens.end(), document.tokens.begin() + begin, document.tokens.begin() + end);
  row.labels.insert(row.labels.end(), document.labels.begin() + begin, document.labels.begin() + end);
  if (new_sequence || row.lengths.empty()) row.lengths.push_back(0);
  row.lengths.back() += int32_t(end - begin);
}

Example piece(const Example& document, size_t begin, size_t end) {
  Example out;
  append(out, document, begin, end, true);
  return out;
}

// Documents are released as they are packed, so that tokens are in memory once.
std::vector<Example> in_order(std::vector<Example> documents, size_t row_length, bool apart, PackingReport& report) {
  size_t tokens = 0;
  for (const Example& document : documents) tokens += document.tokens.size();
  const size_t room = std::min(row_length, tokens);
  std::vector<Example> rows(1);
  for (Example& document : documents) {
    size_t done = 0, pieces = 0;
    while (done < document.tokens.size()) {
      if (rows.back().tokens.size() == row_length) rows.emplace_back();
      rows.back().tokens.reserve(room);
      rows.back().labels.reserve(room);
      const size_t take = std::min(row_length - rows.back().tokens.size(), document.tokens.size() - done);
      append(rows.back(), document, done, done + take, apart);
      done += take;
      ++pieces;
    }
    report.split += pieces > 1;
    document = {};
  }
  if (rows.back().tokens.empty()) rows.pop_back();
  return rows;
}

// Documents longer than a row: truncated, or split into pieces.
std::vector<Example> fitted(std::vector<Example> documents, size_t row_length, bool split, PackingReport& report) {
  std::vector<Example> out;
  out.reserve(documents.size());
  for (Example& document : documents) {
    const size_t size = document.tokens.size();
    if (size == 0) continue;
    if (size <= row_length) {
      out.push_back(std::move(document));
    } else if (split) {
      ++report.split;
      for (size_t i = 0; i < size; i += row_length) out.push_back(piece(document, i, std::min(size, i + row_length)));
    } else {
      Example kept = piece(document, 0, row_length);
      // The next token, which it would predict, was cut off.
      kept.labels.back() = no_label;
      ++report.cut;
      report.cut_tokens += int64_t(size - row_length);
      report.lost_labels += document.labelled() - kept.labelled();
      out.push_back(std::move(kept));
    }
  }
  return out;
}

std::vector<size_t> longest_first(const std::vector<Example>& documents) {
  std::vector<size_t> order(documents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return documents[a].tokens.size() > documents[b].tokens.size(); });
  return order;
}

// The bin with the least space that suffices; among those, the one that has had this space for the longest time.
std::vector<std::vector<size_t>> best_fit(const std::vector<Example>& documents, size_t row_length) {
  std::vector<std::vector<size_t>> bins;
  std::map<size_t, std::deque<size_t>> with_room;
  for (const size_t document : longest_first(documents)) {
    const size_t size = documents[document].tokens.size();
    size_t bin = bins.size(), room = row_length;
    if (const auto found = with_room.lower_bound(size); found != with_room.end()) {
      room = found->first;
      bin = found->second.front();
      found->second.pop_front();
      if (found->second.empty()) with_room.erase(found);
    } else {
      bins.emplace_back();
    }
    bins[bin].push_back(document);
    if (room > size) with_room[room - size].push_back(bin);
  }
  return bins;
}

// The first bin with enough space; `rooms` is a tournament tree over bins whose inner nodes hold the largest space
// below.
std::vector<std::vector<size_t>> first_fit(const std::vector<Example>& documents, size_t row_length) {
  size_t leaves = 1;
  while (leaves < documents.size()) leaves *= 2;
  std::vector<size_t> rooms(2 * leaves, row_length);
  std::vector<std::vector<size_t>> bins;
  for (const size_t document : longest_first(documents)) {
    const size_t size = documents[document].tokens.size();
    size_t node = 1;
    while (node < leaves) node = rooms[2 * node] >= size ? 2 * node : 2 * node + 1;
    const size_t bin = node - leaves;
    if (bin >= bins.size()) bins.resize(bin + 1);
    bins[bin].push_back(document);
    rooms[node] -= size;
    for (node /= 2; node >= 1; node /= 2) rooms[node] = std::max(rooms[2 * node], rooms[2 * node + 1]);
  }
  return bins;
}

std::vector<Example> from_bins(std::vector<Example> documents, const std::vector<std::vector<size_t>>& bins) {
  std::vector<Example> rows(bins.size());
  for (size_t i = 0; i < bins.size(); ++i) {
    size_t tokens = 0;
    for (const size_t document : bins[i]) tokens += documents[document].tokens.size();
    rows[i].tokens.reserve(tokens);
    rows[i].labels.reserve(tokens);
    for (const size_t document : bins[i]) {
      append(rows[i], documents[document], 0, documents[document].tokens.size(), true);
      documents[document] = {};
    }
  }
  return rows;
}

}  // namespace

std::string PackingReport::text() const {
  const auto were = [](int64_t count) { return counted(count, "document") + (count == 1 ? " was " : " were "); };
  std::string out =
      str(counted(documents, "document"), " packed into ", counted(rows, "row"), " of ", counted(tokens, "token"));
  if (split) out += str("; ", were(split), "split over rows");
  if (cut) out += str("; ", were(cut), "longer than a row and lost ", counted(cut_tokens, "token"));
  return out;
}

std::vector<Example> pack(std::vector<Example> documents, Packing packing, int64_t row_length, PackingReport& report) {
  check(row_length > 0, "rows of ", row_length, " tokens");
  const auto length = size_t(row_length);
  report.documents += int64_t(documents.size());
  std::vector<Example> rows;
  switch (packing) {
    case Packing::none:
      rows = std::move(documents);
      break;
    case Packing::greedy:
    case Packing::wrapped:
      rows = in_order(std::move(documents), length, packing == Packing::greedy, report);
      break;
    case Packing::bfd:
    case Packing::bfd_split: {
      auto fit = fitted(std::move(documents), length, packing == Packing::bfd_split, report);
      const auto bins = best_fit(fit, length);
      rows = from_bins(std::move(fit), bins);
      break;
    }
    case Packing::first_fit: {
      auto fit = fitted(std::move(documents), length, true, report);
      const auto bins = first_fit(fit, length);
      rows = from_bins(std::move(fit), bins);
      break;
    }
  }
  report.rows += int64_t(rows.size());
  for (const Example& row : rows) report.tokens += int64_t(row.tokens.size());
  return rows;
}

}  // namespace easydel::data
