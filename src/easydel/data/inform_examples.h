// Reads a dataset's informs into examples, wherever these are kept, and can go on where an earlier reading stopped.
#pragma once

#include "easydel/base/document.h"
#include "easydel/data/dataset.h"

namespace easydel::data {

// The column of the place of a row in ReadExamples::origins.
inline constexpr const char* row_column = "row";

// Where the examples go.
class ExampleTarget {
 public:
  virtual ~ExampleTarget() = default;
  virtual void add(const Example& example, int64_t row) = 0;  // row: of its inform, from 0
  // Receives each row that is neither bad nor left out, before its examples. inform: its index in the options.
  virtual void take(const TypedRow& /*row*/, size_t /*inform*/) {}
  // Whether it wants to know where the reading stands. Asked between rows.
  virtual bool is_full() const { return false; }
  // Everything that was added came before `place`, which read_examples() can begin from.
  virtual void cut(const Value& /*place*/) {}
};

// Reads the informs in their order from `place` (null: from the beginning) and notes sizes, origins and the report in
// `out`; its examples stay as they are. Rows before the place are read, but not prepared. Logs what each inform had.
// Throws as Dataset::build.
void read_examples(const DatasetOptions& options, const Prepare& prepare, ExampleTarget& target, ReadExamples& out,
                   const Value& place = {});

// The words of the evaluation data that the options' decontamination compares with.
std::shared_ptr<const WordRuns> evaluated_words(const DatasetOptions& options);

// One inform alone, without a word in the log. Returns the number of its examples.
int64_t read_inform(const DatasetOptions& options, size_t index, const Prepare& prepare, ExampleTarget& target,
                    ReadExamples& out);

// A report as a document, and back.
Value document_of(const DatasetReport& report);
DatasetReport report_of(const Value& document);

}  // namespace easydel::data
