// A JSON schema as a document: its parts by JSON pointer, and what its keywords may be.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "easydel/base/document.h"

namespace easydel::text::constrain {

class SchemaDocument {
 public:
  explicit SchemaDocument(std::string_view json);  // UserError: too large, not JSON, nested too deeply
  SchemaDocument(const SchemaDocument&) = delete;
  const Value& root() const { return root_; }

  const Value& target(const Value& schema) const;  // what its $ref names
  // Refuses keywords that are not supported and values that a keyword cannot have; looks at each schema once.
  void check(const Value& schema);
  std::string pointer(const Value& part, std::string_view keyword = "") const;
  [[noreturn]] void fail(const Value& part, std::string_view keyword, const std::string& problem,
                         const std::string& remedy = "") const;

 private:
  void name_parts(const Value& value, const std::string& pointer, int depth);
  void check_keyword(const Value& schema, const std::string& key, const Value& value) const;

  Value root_;
  std::map<const Value*, std::string> pointers_;
  std::map<std::string, const Value*, std::less<>> parts_;
  std::set<const Value*> checked_;
};

}  // namespace easydel::text::constrain
