// The rows of informs by their number, without reading all of them: a block of rows is read when one of it is asked
// for.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "easydel/data/inform_reader.h"
#include "easydel/data/row_index.h"
#include "easydel/data/row_set.h"
#include "easydel/data/windowed_order.h"

namespace easydel::data {

class NumberedRows {
 public:
  // The informs' rows one after the other, as InformReader has them before its filter. All arguments but `indices` must
  // outlive it. UserError: a file is missing or packed; an inform asks for num_rows that its filter leaves.
  NumberedRows(const DatasetOptions& options, const std::vector<size_t>& informs, const Prepare& prepare,
               RowIndices& indices);

  int64_t size() const { return kept_ ? kept_->size() : all_rows_; }
  int64_t all_rows() const { return all_rows_; }  // with those that are left out
  // Gives the digest of the words of each of all rows, in their order; nothing for a row that is bad or that its
  // inform's steps leave out. `threads`: at most. UserError: a file cannot be read.
  void digest_words(int64_t threads, const std::function<void(std::optional<uint64_t>)>& sink) const;
  // From now on the rows are numbered without these, which are among all of them. Before keep().
  void leave_out(RowSet rows);
  // Rows that are read together: about 64 KiB of text, or a row group.
  int64_t block_rows() const { return block_rows_; }
  // How many blocks are kept, so that a shuffle of so many rows reads each once.
  void keep(const Windows& windows);

  // A row as the method prepares it. Nothing: the inform's steps leave it out. Thread-safe. UserError: a file cannot be
  // read, or changed; what is wrong with the row alone is in PreparedRow::error.
  std::optional<PreparedRow> at(int64_t row);
  RowOrigin origin(int64_t row);
  void add_to(std::string& description) const;  // where all rows are, for a digest
  // Which files they are, whatever they contain: a file that was written to is another one.
  void add_files_to(std::string& description) const;
  // "train.parquet: a row group of 1000000 rows"; empty: no group has more rows than `most`.
  std::string large_group(int64_t most) const;

 private:
  // Consecutive rows of one file.
  struct Piece {
    size_t inform = 0;  // in the options
    InformReader* reader = nullptr;
    const FileSource* source = nullptr;
    std::filesystem::path file;
    std::shared_ptr<const RowIndex> index;
    int64_t first = 0, rows = 0;  // in the file
    int64_t begin = 0;            // number of the first one
  };
  struct ReadRow {
    Row row;
    std::shared_ptr<const UserError> error;  // null: read
    const Piece* piece = nullptr;
  };
  struct Block {
    std::vector<ReadRow> rows;
    std::exception_ptr failure;
    bool is_read = false;
    std::list<int64_t>::iterator use;
  };
  void add_inform(const DatasetOptions& options, size_t inform, RowIndices& indices);
  int64_t number_in_files(int64_t row) const { return kept_ ? kept_->at(row) : row; }  // among all rows
  // What the row's steps make of it; nothing: they leave it out. UserError: it is bad.
  std::optional<TypedRow> typed(const ReadRow& read) const;
  std::optional<uint64_t> digest_of(const ReadRow& read) const;
  // These take numbers among all rows.
  std::shared_ptr<const Block> block_of(int64_t row);
  const ReadRow& row_in(const Block& block, int64_t row) const { return block.rows[size_t(row % block_rows_)]; }
  void read_block(int64_t number, Block& out) const;
  void read_piece(const Piece& piece, int64_t first, int64_t count, std::vector<ReadRow>& out) const;
  const Piece& piece_of(int64_t row) const;

  const Prepare& prepare_;
  std::vector<std::unique_ptr<InformReader>> readers_;
  std::vector<Piece> pieces_;
  int64_t all_rows_ = 0, block_rows_ = 1;
  std::optional<KeptRows> kept_;  // not given: all of them
  size_t kept_blocks_ = 1;

  mutable std::mutex steps_;  // a row's steps are for one thread at a time
  std::mutex blocks_mutex_;
  std::condition_variable read_;
  std::map<int64_t, std::shared_ptr<Block>> blocks_;
  std::list<int64_t> uses_;  // of the blocks, the oldest first
};

}  // namespace easydel::data
