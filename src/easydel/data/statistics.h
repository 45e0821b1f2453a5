// Counts of a run's training data: rows, tokens, lengths, duplicates, and what each packing strategy would do.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/data/run_data.h"

namespace easydel::data {

struct InformStatistics {
  std::string name;
  int64_t rows = 0, bad = 0, dropped = 0, cut_rows = 0, cut_tokens = 0;
  int64_t examples = 0, tokens = 0, learned = 0;
  int64_t duplicates = 0;                // examples with the same tokens as an earlier one, of any inform
  std::vector<int32_t> lengths;          // of each example, sorted
  std::map<std::string, int64_t> roles;  // messages of each role
  // Tokens of each role's messages, with their headers, before anything is cut. What the template writes besides
  // messages counts as "template".
  std::map<std::string, int64_t> role_tokens;
  int64_t untold = 0;  // conversations whose messages cannot be told apart in what the template writes
  MistakeCounts mistakes;
};

struct PackingStatistics {
  std::string strategy;
  PackingReport report;
  double density = 0;  // share of the rows' places that hold tokens
};

struct Statistics {
  std::vector<InformStatistics> informs;
  int64_t row_length = 0;                   // of packed rows
  std::vector<PackingStatistics> packings;  // empty: the method does not pack, or no length is set
  int64_t examples_in_epoch = 0, updates_in_epoch = 0;
  std::string never_stops;  // what is wrong if no row learns to end its answer; empty: nothing
};

// Reads and prepares all training data. Bad rows are counted. UserError: there are no training data.
Statistics statistics_of(const RunData& data);

// The length that `share` (0 to 1) of the sorted lengths do not exceed; 0 if there are none.
int32_t percentile(const std::vector<int32_t>& lengths, double share);

// "61.3 %".
std::string percent_text(int64_t part, int64_t all);

Value document_of(const Statistics& statistics);
std::string text_of(const Statistics& statistics);
// A histogram of the lengths as an SVG picture.
std::string length_picture(const Statistics& statistics);

}  // namespace easydel::data
