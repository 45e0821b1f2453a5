// Jinja templates over the fields of a row of data: they choose rows and make new fields. The interpreter, its limits
// and its functions are those of chat templates.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "easydel/base/document.h"

namespace easydel::text {

class RowTemplate {
 public:
  // `name`: what errors call it. UserError "name:line:column: ...": it cannot be parsed.
  RowTemplate(std::string_view source, std::string name);
  ~RowTemplate();
  RowTemplate(RowTemplate&&) noexcept;
  RowTemplate& operator=(RowTemplate&&) noexcept;

  // `fields`: a map. A template that is a single {{ expression }} gives its value with its type (null if it is
  // undefined), any other one a text. UserError "name:line:column: ...": it fails, or exceeds a limit. Thread-safe.
  Value value(const Value& fields) const;
  // Whether the value is true for Python.
  bool is_true(const Value& fields) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace easydel::text
