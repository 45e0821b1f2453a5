// What an inform does to a row before its kind is found, in this order: preprocessing_fn, format_callback,
// format_fields, filter, map, format.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "easydel/data/mixture_config.h"
#include "easydel/data/row_format.h"
#include "easydel/text/row_template.h"

namespace easydel::data {

class RowSteps {
 public:
  // `name`: "mixture.informs[0]". UserError: a template cannot be read or parsed.
  RowSteps(const InformConfig& inform, std::string name);
  // Nothing: the filter leaves the row out. UserError "file:line: ...": a step fails. Thread-safe.
  std::optional<Row> apply(Row row) const;
  // The fields to read from a file so that the steps and what follows find theirs; empty: all.
  std::vector<std::string> fields(std::vector<std::string> following) const;

 private:
  struct Step {
    std::string key;  // "mixture.informs[0].filter"
    text::RowTemplate code;
  };
  struct Mapped {
    std::string field;
    Step step;
  };
  Value value_of(const Step& step, const Row& row) const;
  void replace(const Step& step, Row& row) const;
  void rename(Row& row) const;

  std::string name_;
  std::optional<Step> preprocessing_, callback_, filter_;
  std::vector<std::pair<std::string, std::string>> renames_;
  std::vector<Mapped> map_;
  const RowFormat* format_ = nullptr;
  FormatNames names_;
};

}  // namespace easydel::data
