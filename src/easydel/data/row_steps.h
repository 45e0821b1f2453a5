// What an inform does to a row before its kind is found, in this order: preprocessing_fn, format_callback,
// format_fields, filter, map, format, tokenize_callback.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "easydel/data/mixture_config.h"
#include "easydel/data/row_format.h"
#include "easydel/data/row_function.h"
#include "easydel/text/row_template.h"

namespace easydel::data {

class RowSteps {
 public:
  // `name`: "mixture.informs[0]". `tokenize_callback`: the mixture's. UserError: a template cannot be read or parsed,
  // or there is no such function.
  RowSteps(const InformConfig& inform, std::string name,
           const std::optional<std::string>& tokenize_callback = std::nullopt);
  // Nothing: the filter or a function leaves the row out. UserError "file:line: ...": a step fails. For one thread at a
  // time.
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
  // A template or a function that makes a new row.
  struct Replacement {
    std::string key;
    std::optional<text::RowTemplate> code;
    RowFunction function;  // if there is no template
  };
  static std::optional<Replacement> replacement(const std::optional<std::string>& function, const std::string& key);
  static bool replace(const std::optional<Replacement>& step, Row& row);  // false: the row is left out
  void rename(Row& row) const;

  std::string name_;
  std::optional<Replacement> preprocessing_, callback_, tokenize_;
  std::optional<Step> filter_;
  std::vector<std::pair<std::string, std::string>> renames_;
  std::vector<Mapped> map_;
  const RowFormat* format_ = nullptr;
  FormatNames names_;
};

}  // namespace easydel::data
