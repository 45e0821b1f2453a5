#include "easydel/data/numbered_rows.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t block_bytes_of_text = int64_t{64} << 10;

}  // namespace

NumberedRows::NumberedRows(const DatasetOptions& options, const std::vector<size_t>& informs, const Prepare& prepare,
                           RowIndices& indices)
    : prepare_(prepare) {
  for (const size_t inform : informs) add_inform(options, inform, indices);
  double text_rows = 0, text_bytes = 0;
  for (const Piece& piece : pieces_) {
    if (piece.source->places) {
      block_rows_ = std::max(block_rows_, piece.index->largest_group);
    } else {
      text_rows += double(piece.index->rows), text_bytes += double(piece.index->stamp.bytes);
    }
  }
  if (text_bytes > 0)
    block_rows_ = std::max(block_rows_, int64_t(text_rows / text_bytes * double(block_bytes_of_text)));
}

void NumberedRows::add_inform(const DatasetOptions& options, size_t inform, RowIndices& indices) {
  readers_.push_back(std::make_unique<InformReader>(options, inform, prepare_));
  InformReader& reader = *readers_.back();
  const InformConfig& config = reader.config();
  if (config.num_rows && (config.filter || config.preprocessing_fn || config.format_callback))
    refuse(reader.name() + ".num_rows",
           "counts the rows that a filter or a function leaves, and without a token store "
           "these are not known",
           "give a slice of the split, such as train[:1000], or leave mixture.enable_caching out");
  int64_t left = config.num_rows.value_or(INT64_MAX);
  std::vector<fs::path> files_before;
  for (const SplitPart& part : reader.parts()) {
    std::vector<Piece> pieces;
    int64_t rows = 0;
    const std::vector<fs::path> files = reader.files_of_part(part);
    reader.refuse_same_files(part, files, files_before);
    files_before = files;
    for (const fs::path& file : files) {
      const FileSource& source = reader.source_of(file);
      pieces.push_back({inform, &reader, &source, file, indices.of(source, file, config.sample_by), 0, 0, 0});
      rows += pieces.back().index->rows;
    }
    const SplitPart::Range range = part.range(rows);
    if (rows > 0 && (range.first >= std::min(range.last, rows)))
      refuse(reader.name() + ".split", str("the slice of '", part.split, "' is empty: there are ", rows, " rows"),
             "choose other boundaries");
    int64_t before = 0;  // rows of the part's files
    for (Piece& piece : pieces) {
      const int64_t own = piece.index->rows;
      piece.first = std::max<int64_t>(0, range.first - before);
      piece.rows = std::min(std::min(own, range.last - before) - piece.first, left);
      before += own;
      if (piece.rows <= 0) continue;
      left -= piece.rows;
      piece.begin = size_;
      size_ += piece.rows;
      pieces_.push_back(std::move(piece));
    }
  }
}

void NumberedRows::keep(const Windows& windows) {
  const int64_t blocks = (size_ + block_rows_ - 1) / block_rows_, count = WindowedOrder::windows_of(size_, windows);
  // Those of two windows, because rows of the next one are read ahead.
  kept_blocks_ = size_t(2 * ((blocks + count - 1) / count) + 2);
}

const NumberedRows::Piece& NumberedRows::piece_of(int64_t row) const {
  check(row >= 0 && row < size_, "row ", row, " of ", size_);
  return *std::prev(std::ranges::upper_bound(pieces_, row, {}, &Piece::begin));
}

void NumberedRows::read_piece(const Piece& piece, int64_t first, int64_t count, std::vector<ReadRow>& out) const {
  if (files::stamp_of(piece.file) != piece.index->stamp)
    refuse(piece.file.string(), "changed while the run reads it",
           "start the run again when nothing writes to the file");
  const RowPlace& begin = piece.index->before(first);
  int64_t skip = first - begin.row;
  ReadOptions options = piece.reader->read_options();
  options.begin = &begin;
  options.rows_to_skip = &skip;
  const size_t end = out.size() + size_t(count);
  options.on_bad_row = [&](const UserError& error) {
    if (out.size() < end) out.push_back({{}, std::make_shared<const UserError>(error), &piece});
  };
  piece.source->read(piece.file, options, [&](Row row) {
    if (out.size() < end) out.push_back({std::move(row), nullptr, &piece});
    return out.size() < end;
  });
  check(out.size() == end, piece.file.string(), " has fewer rows than its index says");
}

void NumberedRows::read_block(int64_t number, Block& out) const {
  const int64_t end = std::min(size_, (number + 1) * block_rows_);
  for (int64_t row = number * block_rows_; row < end;) {
    const Piece& piece = piece_of(row);
    const int64_t count = std::min(end, piece.begin + piece.rows) - row;
    read_piece(piece, piece.first + row - piece.begin, count, out.rows);
    row += count;
  }
}

std::shared_ptr<const NumberedRows::Block> NumberedRows::block_of(int64_t row) {
  check(row >= 0 && row < size_, "row ", row, " of ", size_);
  const int64_t number = row / block_rows_;
  std::unique_lock lock(blocks_mutex_);
  const auto found = blocks_.find(number);
  if (found != blocks_.end()) {
    const std::shared_ptr<Block> known = found->second;
    uses_.splice(uses_.end(), uses_, known->use);
    read_.wait(lock, [&] { return known->is_read; });
    if (known->failure) std::rethrow_exception(known->failure);
    return known;
  }
  const auto made = blocks_[number] = std::make_shared<Block>();
  made->use = uses_.insert(uses_.end(), number);
  while (blocks_.size() > kept_blocks_) {
    blocks_.erase(uses_.front());
    uses_.pop_front();
  }
  lock.unlock();
  try {
    read_block(number, *made);
  } catch (...) {
    made->failure = std::current_exception();
  }
  lock.lock();
  made->is_read = true;
  read_.notify_all();
  if (made->failure) std::rethrow_exception(made->failure);
  return made;
}

std::optional<PreparedRow> NumberedRows::at(int64_t row) {
  const std::shared_ptr<const Block> rows = block_of(row);
  const ReadRow& read = rows->rows[size_t(row % block_rows_)];
  PreparedRow out;
  out.error = read.error;
  if (out.error) return out;
  try {
    std::optional<TypedRow> typed;
    {
      const std::lock_guard lock(steps_);
      typed = read.piece->reader->typed(read.row, read.piece->file);
    }
    if (!typed) return std::nullopt;
    out.row = std::move(*typed);
    out.prepared = prepare_(out.row);
  } catch (const UserError& error) {
    out.error = std::make_shared<const UserError>(error);
  }
  return out;
}

RowOrigin NumberedRows::origin(int64_t row) {
  const std::shared_ptr<const Block> rows = block_of(row);
  const ReadRow& read = rows->rows[size_t(row % block_rows_)];
  return {read.piece->inform, read.error ? read.error->where : read.row.where};
}

void NumberedRows::add_to(std::string& description) const {
  std::map<const RowIndex*, std::string> digests;  // names of one file share an index
  for (const Piece& piece : pieces_) {
    std::string& digest = digests[piece.index.get()];
    if (digest.empty()) {
      std::string places = std::to_string(piece.index->stamp.bytes);
      for (const RowPlace& place : piece.index->places) places += str(" ", place.row, " ", place.byte);
      digest = files::sha256(places);
    }
    description += str(piece.inform, " ", piece.source->name, " ", piece.first, " ", piece.rows, " ", digest, "\n");
  }
}

std::string NumberedRows::large_group(int64_t most) const {
  for (const Piece& piece : pieces_)
    if (piece.source->places && piece.index->largest_group > most)
      return str(piece.file.string(), ": ", counted(piece.index->largest_group, "row"), " in a row group");
  return "";
}

}  // namespace easydel::data
