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
void append_columns(Example& row, const Example& piece, bool new_sequence) {
  const bool first = row.lengths.empty();
  check(first || row.columns.size() == piece.columns.size(), "documents of one row have unequal columns");
  for (const Column& column : piece.columns) {
    check(column.per == Column::Per::token || column.per == Column::Per::sequence, "column ", column.name,
          " is of whole examples, which packing merges");
    check(column.per == Column::Per::token || column.size() == 1, "a document of several sequences");
    auto found = std::ranges::find(row.columns, column.name, &Column::name);
    if (found == row.columns.end()) {
      check(first, "column ", column.name, " is not in all documents");
      row.columns.push_back(column);
      continue;
    }
    if (column.per == Column::Per::sequence && !new_sequence) continue;
    std::visit(
        [&](const auto& list) {
          auto& into = std::get<std::decay_t<decltype(list)>>(found->values);
          into.insert(into.end(), list.begin(), list.end());
        },
        column.values);
  }
}

void append(Example& row, const Example& piece, bool new_sequence) {
  append_columns(row, piece, new_sequence);
  row.tokens.insert(row.tokens.end(), piece.tokens.begin(), piece.tokens.end());
  row.labels.insert(row.labels.end(), piece.labels.begin(), piece.labels.end());
  if (new_sequence || row.lengths.empty()) row.lengths.push_back(0);
  row.lengths.back() += int32_t(piece.tokens.size());
}

}  // namespace

void PackingReport::add(const PackingReport& other) {
  documents += other.documents, rows += other.rows, tokens += other.tokens, split += other.split;
  cut += other.cut, cut_tokens += other.cut_tokens, lost_labels += other.lost_labels;
}

std::string PackingReport::text() const {
  const auto were = [](int64_t count) { return counted(count, "document") + (count == 1 ? " was " : " were "); };
  std::string out =
      str(counted(documents, "document"), " packed into ", counted(rows, "row"), " of ", counted(tokens, "token"));
  if (split) out += str("; ", were(split), "split over rows");
  if (cut) out += str("; ", were(cut), "longer than a row and lost ", counted(cut_tokens, "token"));
  return out;
}

PackedRows::PackedRows(Packing packing, int64_t row_length)
    : packing_(packing), row_length_(int32_t(std::min<int64_t>(row_length, INT32_MAX))) {
  check(packing != Packing::none && row_length > 0, "rows of ", row_length, " tokens");
}

void PackedRows::add(const ExampleBlocks& documents, std::span<const int64_t> order, PackingReport& report) {
  const int64_t rows_before = size();
  const size_t pieces_before = pieces_.size();
  std::vector<Piece> all;
  all.reserve(order.size());
  for (const int64_t document : order) all.push_back({document, 0, int32_t(documents.tokens_of(document))});
  if (packing_ == Packing::greedy || packing_ == Packing::wrapped) {
    fill(all, report);
  } else {
    all = fitted(all, report);
    take(all, packing_ == Packing::first_fit ? first_fit(all) : best_fit(all));
  }
  report.documents += int64_t(order.size());
  report.rows += size() - rows_before;
  for (const Piece& piece : std::span(pieces_).subspan(pieces_before)) {
    report.tokens += piece.size();
    if (!is_cut(documents, piece)) continue;
    const int64_t whole = documents.tokens_of(piece.document);
    ++report.cut;
    report.cut_tokens += whole - piece.end;
    report.lost_labels += documents.labels_of(piece.document, piece.end - 1, whole);
  }
}

bool PackedRows::is_cut(const ExampleBlocks& documents, const Piece& piece) const {
  return packing_ == Packing::bfd && piece.end < documents.tokens_of(piece.document);
}

std::span<const PackedRows::Piece> PackedRows::pieces_of(int64_t row) const {
  const int64_t begin = row == 0 ? 0 : ends_.at(size_t(row) - 1);
  return std::span(pieces_).subspan(size_t(begin), size_t(ends_.at(size_t(row)) - begin));
}

// In order, rows filled completely.
void PackedRows::fill(const std::vector<Piece>& documents, PackingReport& report) {
  int32_t filled = 0;
  for (const Piece& document : documents) {
    int32_t done = 0, pieces = 0;
    while (done < document.end) {
      if (filled == row_length_) {
        ends_.push_back(int64_t(pieces_.size()));
        filled = 0;
      }
      const int32_t take = std::min(row_length_ - filled, document.end - done);
      pieces_.push_back({document.document, done, done + take});
      filled += take, done += take;
      ++pieces;
    }
    report.split += pieces > 1;
  }
  if (filled > 0) ends_.push_back(int64_t(pieces_.size()));
}

// Documents longer than a row: truncated, or split into pieces.
std::vector<PackedRows::Piece> PackedRows::fitted(const std::vector<Piece>& documents, PackingReport& report) const {
  const bool split = packing_ != Packing::bfd;
  std::vector<Piece> out;
  out.reserve(documents.size());
  for (const Piece& document : documents) {
    report.split += split && document.end > row_length_;
    for (int32_t begin = 0; begin < document.end; begin += std::min(row_length_, document.end - begin)) {
      out.push_back({document.document, begin, begin + std::min(row_length_, document.end - begin)});
      if (!split) break;
    }
  }
  return out;
}

std::vector<uint32_t> PackedRows::longest_first(const std::vector<Piece>& pieces) {
  check(pieces.size() <= UINT32_MAX, pieces.size(), " pieces of documents to pack");
  std::vector<uint32_t> order(pieces.size());
  std::iota(order.begin(), order.end(), uint32_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return pieces[a].size() > pieces[b].size(); });
  return order;
}

// The bin with the least space that suffices; among those, the one that has had this space for the longest time.
std::vector<std::vector<uint32_t>> PackedRows::best_fit(const std::vector<Piece>& pieces) const {
  std::vector<std::vector<uint32_t>> bins;
  std::map<int32_t, std::deque<size_t>> with_room;
  for (const uint32_t piece : longest_first(pieces)) {
    const int32_t size = pieces[piece].size();
    size_t bin = bins.size();
    int32_t room = row_length_;
    if (const auto found = with_room.lower_bound(size); found != with_room.end()) {
      room = found->first;
      bin = found->second.front();
      found->second.pop_front();
      if (found->second.empty()) with_room.erase(found);
    } else {
      bins.emplace_back();
    }
    bins[bin].push_back(piece);
    if (room > size) with_room[room - size].push_back(bin);
  }
  return bins;
}

// The first bin with enough space; `rooms` is a tournament tree over bins whose inner nodes hold the largest space
// below.
std::vector<std::vector<uint32_t>> PackedRows::first_fit(const std::vector<Piece>& pieces) const {
  size_t leaves = 1;
  while (leaves < pieces.size()) leaves *= 2;
  std::vector<int32_t> rooms(2 * leaves, row_length_);
  std::vector<std::vector<uint32_t>> bins;
  for (const uint32_t piece : longest_first(pieces)) {
    const int32_t size = pieces[piece].size();
    size_t node = 1;
    while (node < leaves) node = rooms[2 * node] >= size ? 2 * node : 2 * node + 1;
    const size_t bin = node - leaves;
    if (bin >= bins.size()) bins.resize(bin + 1);
    bins[bin].push_back(piece);
    rooms[node] -= size;
    for (node /= 2; node >= 1; node /= 2) rooms[node] = std::max(rooms[2 * node], rooms[2 * node + 1]);
  }
  return bins;
}

void PackedRows::take(const std::vector<Piece>& fitted, const std::vector<std::vector<uint32_t>>& bins) {
  pieces_.reserve(pieces_.size() + fitted.size());
  for (const auto& bin : bins) {
    for (const uint32_t piece : bin) pieces_.push_back(fitted[piece]);
    ends_.push_back(int64_t(pieces_.size()));
  }
}

void PackedRows::add_to(ExampleDigest& digest) const {
  digest.add(uint64_t(packing_));
  for (const int64_t end : ends_) digest.add(uint64_t(end));
  for (const Piece& piece : pieces_)
    for (const int64_t number : {piece.document, int64_t(piece.begin), int64_t(piece.end)})
      digest.add(uint64_t(number));
}

int64_t PackedRows::tokens_of(int64_t row) const {
  int64_t count = 0;
  for (const Piece& piece : pieces_of(row)) count += piece.size();
  return count;
}

int64_t PackedRows::labels_of(const ExampleBlocks& documents, int64_t row) const {
  int64_t count = 0;
  for (const Piece& piece : pieces_of(row))
    count += documents.labels_of(piece.document, piece.begin, piece.end - int64_t(is_cut(documents, piece)));
  return count;
}

Example PackedRows::at(const ExampleBlocks& documents, int64_t row) const {
  Example out;
  const auto tokens = size_t(tokens_of(row));
  out.tokens.reserve(tokens);
  out.labels.reserve(tokens);
  for (const Piece& piece : pieces_of(row)) {
    append(out, documents.slice(piece.document, piece.begin, piece.end), packing_ != Packing::wrapped);
    if (is_cut(documents, piece)) out.labels.back() = no_label;
  }
  return out;
}

}  // namespace easydel::data
