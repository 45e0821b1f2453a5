#include "easydel/data/numbered_rows.h"

#include <algorithm>
#include <thread>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"
#include "easydel/data/row_words.h"

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
      piece.begin = all_rows_;
      all_rows_ += piece.rows;
      pieces_.push_back(std::move(piece));
    }
  }
}

void NumberedRows::leave_out(RowSet rows) {
  check(rows.size() == all_rows_, "a set of other rows");
  kept_.emplace(std::move(rows));
}

void NumberedRows::keep(const Windows& windows) {
  const int64_t blocks = (size() + block_rows_ - 1) / block_rows_, count = WindowedOrder::windows_of(size(), windows);
  const int64_t in_window = (blocks + count - 1) / count;
  // Those of two windows, because rows of the next one are read ahead.
  kept_blocks_ = size_t(2 * in_window + 2);
  if (!kept_ || blocks == 0) return;
  // A block of rows that are left is read as the blocks of all rows that it lies in.
  int64_t number = 0, last = -1, read = 0, most = 0, of_block = 0;
  for (int64_t row = 0; row < all_rows_; ++row) {
    if (!kept_->has(row)) continue;
    if (number++ % block_rows_ == 0) last = -1, of_block = 0;
    if (row / block_rows_ == last) continue;
    last = row / block_rows_;
    ++read, most = std::max(most, ++of_block);
  }
  kept_blocks_ = size_t(2 * ((read * in_window + blocks - 1) / blocks) + 2 + most);
}

void NumberedRows::digest_words(int64_t threads, const std::function<void(std::optional<uint64_t>)>& sink) const {
  constexpr int64_t blocks_of_thread = 4;  // at a time
  const int64_t blocks = (all_rows_ + block_rows_ - 1) / block_rows_;
  std::vector<std::vector<std::optional<uint64_t>>> digests(size_t(std::max<int64_t>(1, threads) * blocks_of_thread));
  std::vector<std::exception_ptr> failures(digests.size());
  for (int64_t first = 0; first < blocks; first += int64_t(digests.size())) {
    const auto count = size_t(std::min(blocks - first, int64_t(digests.size())));
    const auto work = [&](size_t begin) {
      for (size_t i = begin; i < count; i += size_t(std::max<int64_t>(1, threads))) try {
          Block block;
          read_block(first + int64_t(i), block);
          digests[i].clear();
          for (const ReadRow& read : block.rows) digests[i].push_back(digest_of(read));
        } catch (...) {
          failures[i] = std::current_exception();
        }
    };
    std::vector<std::jthread> team;
    for (int64_t t = 1; t < threads; ++t) team.emplace_back(work, size_t(t));
    work(0);
    team.clear();
    for (size_t i = 0; i < count; ++i) {
      if (failures[i]) std::rethrow_exception(failures[i]);
      for (const std::optional<uint64_t>& digest : digests[i]) sink(digest);
    }
  }
}

std::optional<TypedRow> NumberedRows::typed(const ReadRow& read) const {
  const std::lock_guard lock(steps_);
  return read.piece->reader->typed(read.row, read.piece->file);
}

std::optional<uint64_t> NumberedRows::digest_of(const ReadRow& read) const {
  if (read.error) return std::nullopt;
  try {
    const std::optional<TypedRow> row = typed(read);
    return row ? std::optional(digest_of_words(*row)) : std::nullopt;
  } catch (const UserError&) {  // told when the row is used
    return std::nullopt;
  }
}

const NumberedRows::Piece& NumberedRows::piece_of(int64_t row) const {
  check(row >= 0 && row < all_rows_, "row ", row, " of ", all_rows_);
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
  const int64_t end = std::min(all_rows_, (number + 1) * block_rows_);
  for (int64_t row = number * block_rows_; row < end;) {
    const Piece& piece = piece_of(row);
    const int64_t count = std::min(end, piece.begin + piece.rows) - row;
    read_piece(piece, piece.first + row - piece.begin, count, out.rows);
    row += count;
  }
  const int64_t begin = number * block_rows_;
  for (size_t i = 0; kept_ && i < out.rows.size(); ++i)
    if (!kept_->has(begin + int64_t(i))) out.rows[i].row = {};  // its memory
}

std::shared_ptr<const NumberedRows::Block> NumberedRows::block_of(int64_t row) {
  check(row >= 0 && row < all_rows_, "row ", row, " of ", all_rows_);
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
  row = number_in_files(row);
  const std::shared_ptr<const Block> block = block_of(row);
  const ReadRow& read = row_in(*block, row);
  PreparedRow out;
  out.error = read.error;
  if (out.error) return out;
  try {
    std::optional<TypedRow> row_of_steps = typed(read);
    if (!row_of_steps) return std::nullopt;
    out.row = std::move(*row_of_steps);
    out.prepared = prepare_(out.row);
  } catch (const UserError& error) {
    out.error = std::make_shared<const UserError>(error);
  }
  return out;
}

RowOrigin NumberedRows::origin(int64_t row) {
  row = number_in_files(row);
  const std::shared_ptr<const Block> block = block_of(row);
  const ReadRow& read = row_in(*block, row);
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

void NumberedRows::add_files_to(std::string& description) const {
  for (const Piece& piece : pieces_) {
    const files::Stamp& stamp = piece.index->stamp;
    description += str(piece.file.filename().string(), " ", stamp.device, " ", stamp.inode, " ", stamp.bytes, " ",
                       stamp.changed, "\n");
  }
}

std::string NumberedRows::large_group(int64_t most) const {
  for (const Piece& piece : pieces_)
    if (piece.source->places && piece.index->largest_group > most)
      return str(piece.file.string(), ": ", counted(piece.index->largest_group, "row"), " in a row group");
  return "";
}

}  // namespace easydel::data
