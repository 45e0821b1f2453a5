// The words of a row, to find copies of rows and rows that repeat evaluation data.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "easydel/data/row_kinds.h"

namespace easydel::data {

// Letters and digits of all its texts in lower case (ASCII alone is lowered), cut at everything else; the ids of ready
// tokens are words, too.
std::vector<std::string> words_of(const TypedRow& row);
// A number that rows with equal words share; others do by a chance of 2^-64.
uint64_t digest_of_words(const TypedRow& row);

// Runs of `count` words of some rows.
class WordRuns {
 public:
  explicit WordRuns(int64_t count) : count_(count) {}
  void add(const TypedRow& row);
  bool shares(const TypedRow& row) const;  // whether the row has one of the runs
  size_t size() const { return runs_.size(); }
  uint64_t digest() const;  // of all runs; equal for equal ones

 private:
  std::vector<uint64_t> runs_of(const TypedRow& row) const;
  int64_t count_;
  std::unordered_set<uint64_t> runs_;
};

}  // namespace easydel::data
