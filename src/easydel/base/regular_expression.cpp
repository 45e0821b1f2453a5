#include "easydel/base/regular_expression.h"

#include <regex>

namespace easydel {
namespace {

using Match = std::match_results<const char*>;

RegularExpression::Groups groups_of(const Match& match) {
  RegularExpression::Groups out;
  for (const auto& group : match) out.push_back(group.matched ? std::optional(group.str()) : std::nullopt);
  return out;
}

const char* begin_of(std::string_view text) { return text.data(); }
const char* end_of(std::string_view text) { return text.data() + text.size(); }

}  // namespace

struct RegularExpression::Compiled {
  std::regex regex;
};

RegularExpression::RegularExpression(const std::string& expression) {
  try {
    compiled_ = std::make_shared<const Compiled>(Compiled{std::regex(expression)});
  } catch (const std::regex_error& error) {
    throw InvalidRegularExpression(error.what());
  }
}

bool RegularExpression::matches(std::string_view text) const {
  return std::regex_match(begin_of(text), end_of(text), compiled_->regex);
}

bool RegularExpression::found_in(std::string_view text) const {
  return std::regex_search(begin_of(text), end_of(text), compiled_->regex);
}

std::optional<RegularExpression::Groups> RegularExpression::match(std::string_view text) const {
  Match match;
  if (!std::regex_match(begin_of(text), end_of(text), match, compiled_->regex)) return std::nullopt;
  return groups_of(match);
}

std::optional<RegularExpression::Groups> RegularExpression::first_match(std::string_view text) const {
  Match match;
  if (!std::regex_search(begin_of(text), end_of(text), match, compiled_->regex)) return std::nullopt;
  return groups_of(match);
}

std::string RegularExpression::replace(std::string_view text, const std::string& with) const {
  return std::regex_replace(std::string(text), compiled_->regex, with);
}

}  // namespace easydel
