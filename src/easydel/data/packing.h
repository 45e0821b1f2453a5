// Packing: puts documents into rows of a maximum number of tokens and keeps them apart by their lengths. Nothing is
// lost silently: cut, dropped and split documents are counted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "easydel/data/example_blocks.h"

namespace easydel::data {

enum class Packing : uint8_t {
  none,
  greedy,     // in order, rows filled completely; a document that does not fit continues in the next row
  bfd,        // best-fit decreasing: documents are never split, the end of one longer than a row is cut off
  bfd_split,  // best-fit decreasing over pieces: a longer document is split
  first_fit,  // first-fit decreasing; longer documents are split
  wrapped     // one stream cut into rows; documents see each other
};

struct PackingReport {
  int64_t documents = 0, rows = 0, tokens = 0;  // tokens kept
  int64_t split = 0;                            // documents split into several pieces
  int64_t cut = 0, cut_tokens = 0;              // documents that lost their end, and the number of lost tokens
  int64_t lost_labels = 0;                      // labels of the tokens that were cut off
  void add(const PackingReport& other);
  std::string text() const;  // one line for the log
};

// The rows that documents are packed into: which part of which document lies where. A row is put together when it is
// asked for. Every document is an Example of one sequence. Labels are already shifted, so the last token of a piece
// still predicts the first token of the next.
class PackedRows {
 public:
  PackedRows(Packing packing, int64_t row_length);
  // Packs documents, by index and perhaps repeated, into new rows, and adds them to the report.
  void add(const ExampleBlocks& documents, std::span<const int64_t> order, PackingReport& report);

  int64_t size() const { return int64_t(ends_.size()); }
  void add_to(ExampleDigest& digest) const;  // what lies where
  int64_t tokens_of(int64_t row) const;
  int64_t labels_of(const ExampleBlocks& documents, int64_t row) const;
  // Bug: columns of the documents are not alike, or of whole examples.
  Example at(const ExampleBlocks& documents, int64_t row) const;

 private:
  struct Piece {
    int64_t document = 0;
    int32_t begin = 0, end = 0;  // its tokens
    int32_t size() const { return end - begin; }
  };
  std::span<const Piece> pieces_of(int64_t row) const;
  void fill(const std::vector<Piece>& documents, PackingReport& report);
  std::vector<Piece> fitted(const std::vector<Piece>& documents, PackingReport& report) const;
  void take(const std::vector<Piece>& fitted, const std::vector<std::vector<uint32_t>>& bins);
  // The next token, which the piece's last one would predict, was cut off.
  bool is_cut(const ExampleBlocks& documents, const Piece& piece) const;
  static std::vector<uint32_t> longest_first(const std::vector<Piece>& pieces);
  std::vector<std::vector<uint32_t>> best_fit(const std::vector<Piece>& pieces) const;
  std::vector<std::vector<uint32_t>> first_fit(const std::vector<Piece>& pieces) const;

  Packing packing_;
  int32_t row_length_;
  std::vector<Piece> pieces_;  // of all rows
  std::vector<int64_t> ends_;  // of each row, in pieces_
};

}  // namespace easydel::data
