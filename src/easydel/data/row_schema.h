// The types of columns that hold rows of any values, found by looking at each row; and what `datasets` calls them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/columnar/columnar.h"

namespace easydel::data {

class RowSchema {
 public:
  // Columns that hold images, {bytes, path} or lists of them.
  explicit RowSchema(std::vector<std::string> images = {}) : images_(std::move(images)) {}

  // Makes the types wide enough for this row. Integers become numbers where a column has both; inside of lists and maps
  // all values that differ in kind, and maps that differ in their keys, become JSON, so that each value is read as it
  // was. A missing field of a row is null. UserError at `where`: a column has one image here and a list elsewhere.
  void add(const Value& fields, const std::string& where);
  // In the order in which their names were first seen.
  const std::vector<std::pair<std::string, columnar::RowType>>& columns() const { return columns_; }
  // As `datasets` describes them: Value, List, Json, Image.
  Value features() const;
  // The first column that a table of texts and numbers cannot hold; empty: there is none.
  std::string nested_column() const;

 private:
  std::vector<std::string> images_;
  std::vector<std::pair<std::string, columnar::RowType>> columns_;
};

}  // namespace easydel::data
