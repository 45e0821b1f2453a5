// Packing: puts documents into rows of a maximum number of tokens and keeps them apart by their lengths. Nothing is
// lost silently: cut, dropped and split documents are counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "easydel/data/example.h"

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
  std::string text() const;                     // one line for the log
};

// Every document is an Example of one sequence. Labels are already shifted, so the last token of a piece still predicts
// the first token of the next.
std::vector<Example> pack(std::vector<Example> documents, Packing packing, int64_t row_length, PackingReport& report);

}  // namespace easydel::data
