// The parameters of Jinja2's filters and tests, so that calls with too many or unknown arguments fail as in Python.
#include <algorithm>

#include "easydel/text/jinja/filters.h"

namespace easydel::text::jinja {
namespace {

struct Signature {
  std::string_view name, parameters;  // in order, separated by commas; "*": any
};

constexpr Signature filter_signatures[] = {
    {"abs", ""},
    {"attr", "name"},
    {"batch", "linecount,fill_with"},
    {"capitalize", ""},
    {"center", "width"},
    {"default", "default_value,boolean"},
    {"dictsort", "case_sensitive,by,reverse"},
    {"escape", ""},
    {"filesizeformat", "binary"},
    {"first", ""},
    {"float", "default"},
    {"forceescape", ""},
    {"format", "*"},
    {"groupby", "attribute,default,case_sensitive"},
    {"indent", "width,first,blank"},
    {"int", "default,base"},
    {"items", ""},
    {"join", "d,attribute"},
    {"last", ""},
    {"length", ""},
    {"list", ""},
    {"lower", ""},
    {"map", "*"},
    {"max", "case_sensitive,attribute"},
    {"min", "case_sensitive,attribute"},
    {"pprint", ""},
    {"random", ""},
    {"reject", "*"},
    {"rejectattr", "*"},
    {"replace", "old,new,count"},
    {"reverse", ""},
    {"round", "precision,method"},
    {"safe", ""},
    {"select", "*"},
    {"selectattr", "*"},
    {"slice", "slices,fill_with"},
    {"sort", "reverse,case_sensitive,attribute"},
    {"string", ""},
    {"striptags", ""},
    {"sum", "attribute,start"},
    {"title", ""},
    {"tojson", "ensure_ascii,indent,separators,sort_keys"},
    {"trim", "chars"},
    {"truncate", "length,killwords,end,leeway"},
    {"unique", "case_sensitive,attribute"},
    {"upper", ""},
    {"urlencode", ""},
    {"urlize", "trim_url_limit,nofollow,target,rel,extra_schemes"},
    {"wordcount", ""},
    {"wordwrap", "width,break_long_words,wrapstring,break_on_hyphens"},
    {"xmlattr", "autospace"},
};

constexpr Signature test_signatures[] = {
    {"boolean", ""}, {"callable", ""}, {"defined", ""}, {"divisibleby", "num"}, {"eq", "b"},
    {"escaped", ""}, {"even", ""},     {"false", ""},   {"filter", ""},         {"float", ""},
    {"ge", "b"},     {"gt", "b"},      {"in", "seq"},   {"integer", ""},        {"iterable", ""},
    {"le", "b"},     {"lower", ""},    {"lt", "b"},     {"mapping", ""},        {"ne", "b"},
    {"none", ""},    {"number", ""},   {"odd", ""},     {"sameas", "other"},    {"sequence", ""},
    {"string", ""},  {"test", ""},     {"true", ""},    {"undefined", ""},      {"upper", ""},
};

void check(std::span<const Signature> table, std::string_view name, const Arguments& arguments) {
  const auto* row =
      std::find_if(table.data(), table.data() + table.size(), [&](const Signature& each) { return each.name == name; });
  if (row == table.data() + table.size() || row->parameters == "*") return;
  std::vector<std::string_view> parameters;
  for (size_t begin = 0; begin < row->parameters.size();) {
    const size_t end = std::min(row->parameters.find(',', begin), row->parameters.size());
    parameters.push_back(row->parameters.substr(begin, end - begin));
    begin = end + 1;
  }
  if (arguments.positional.size() > parameters.size())
    fail(name, "() takes ", parameters.size() + 1, " positional arguments but ", arguments.positional.size() + 1,
         " were given");
  for (const auto& [key, value] : arguments.named) {
    const auto at = std::find(parameters.begin(), parameters.end(), key);
    if (at == parameters.end()) fail(name, "() got an unexpected keyword argument '", key, "'");
    if (size_t(at - parameters.begin()) < arguments.positional.size())
      fail(name, "() got multiple values for argument '", key, "'");
  }
}

}  // namespace

void check_filter_arguments(std::string_view name, const Arguments& arguments) {
  check(filter_signatures, name, arguments);
}
void check_test_arguments(std::string_view name, const Arguments& arguments) {
  check(test_signatures, name, arguments);
}

}  // namespace easydel::text::jinja
