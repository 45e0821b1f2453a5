// Checks of the free-form parts of requests: messages, items, tools. What is wrong is added to the problems, with its
// path.
#pragma once

#include <string>
#include <string_view>

#include "easydel/base/document.h"
#include "easydel/config/codec.h"
#include "easydel/config/problems.h"

namespace easydel::server {

// Where a value stands in a body. It becomes a text only for an error: making the texts of all values takes longer than
// parsing the body. What a path was made of must outlive it.
class BodyPath {
 public:
  BodyPath(std::string_view path) : step_(path) {}
  BodyPath(const std::string& path) : step_(path) {}
  BodyPath(const char* path) : step_(path) {}

  BodyPath operator/(std::string_view member) const { return {this, member, 0}; }
  BodyPath operator[](size_t item) const { return {this, {}, item}; }
  std::string text() const;  // "messages[2].content"

 private:
  BodyPath(const BodyPath* parent, std::string_view member, size_t item)
      : parent_(parent), step_(member), item_(item) {}

  const BodyPath* parent_ = nullptr;
  std::string_view step_;  // no data: an item of a list
  size_t item_ = 0;
};

struct RequestChecker {
  config::Problems& problems;

  void wrong(const BodyPath& path, std::string what, std::string remedy = "") const {
    problems.add(path.text(), Place{}, std::move(what), std::move(remedy));
  }
  bool is_map(const Value& value, const BodyPath& path) const {
    if (!value.is_map()) wrong(path, config::shown(value) + " is not an object");
    return value.is_map();
  }
  // The text of a member; null and a problem if it is not one. An absent member is a problem if it is needed.
  const std::string* text(const Value& map, std::string_view name, const BodyPath& path, bool needed) const;
  // The member if it is an object; null and a problem otherwise. An absent member is a problem if it is needed.
  const Value* object(const Value& map, std::string_view name, const BodyPath& path, bool needed) const;
};

// The member's text; empty if there is none.
std::string text_of(const Value& map, std::string_view name);
// The member, unless it is absent or null.
const Value* member(const Value& map, std::string_view name);

}  // namespace easydel::server
