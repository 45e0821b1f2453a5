// The rows of informs by their number, without reading all of them: a block of rows is read when one of it is asked
// for.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "easydel/data/inform_reader.h"
#include "easydel/data/row_index.h"
#include "easydel/data/windowed_order.h"

namespace easydel::data {

class NumberedRows {
 public:
  // The informs' rows one after the other, as InformReader has them before its filter. All arguments but `indices` must
  // outlive it. UserError: a file is missing or packed; an inform asks for num_rows that its filter leaves.
  NumberedRows(const DatasetOptions& options, const std::vector<size_t>& informs, const Prepare& prepare,
               RowIndices& indices);

  int64_t size() const { return size_; }
  // Rows that are read together: about 64 KiB of text, or a row group.
  int64_t block_rows() const { return block_rows_; }
  // How many blocks are kept, so that a shuffle of so many rows reads each once.
  void keep(const Windows& windows);

  // A row as the method prepares it. Nothing: the inform's steps leave it out. Thread-safe. UserError: a file cannot be
  // read, or changed; what is wrong with the row alone is in PreparedRow::error.
  std::optional<PreparedRow> at(int64_t row);
  RowOrigin origin(int64_t row);
  void add_to(std::string& description) const;  // where all rows are, for a digest
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
  std::shared_ptr<const Block> block_of(int64_t row);
  void read_block(int64_t number, Block& out) const;
  void read_piece(const Piece& piece, int64_t first, int64_t count, std::vector<ReadRow>& out) const;
  const Piece& piece_of(int64_t row) const;

  const Prepare& prepare_;
  std::vector<std::unique_ptr<InformReader>> readers_;
  std::vector<Piece> pieces_;
  int64_t size_ = 0, block_rows_ = 1;
  size_t kept_blocks_ = 1;

  std::mutex steps_;  // a row's steps are for one thread at a time
  std::mutex blocks_mutex_;
  std::condition_variable read_;
  std::map<int64_t, std::shared_ptr<Block>> blocks_;
  std::list<int64_t> uses_;  // of the blocks, the oldest first
};

}  // namespace easydel::data
