// What a value has to satisfy is a set of schemas at once, so that allOf and references need no merging: the rule of a
// set is made once, and the parts of its values have sets of their own.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "easydel/text/constrain/any_json.h"
#include "easydel/text/constrain/argument_notation.h"
#include "easydel/text/constrain/json_numbers.h"
#include "easydel/text/constrain/schema_document.h"

namespace easydel::text::constrain {

// Unique, in the order in which they were met; without those that accept everything.
using Schemas = std::vector<const Value*>;

class SchemaCompiler {
 public:
  SchemaCompiler(SchemaDocument& document, Grammar& grammar, ValueForm form = {})
      : document_(document), grammar_(grammar), json_(grammar, std::move(form)) {}

  RuleId compile();
  // schema_arguments.cpp: the members of objects that the schema accepts, as arguments of a call.
  RuleId compile_arguments(const ArgumentNotation& notation);

 private:
  // schema_ways.cpp: one way to satisfy a set of schemas is to satisfy all of these, in which $ref, allOf, anyOf and
  // oneOf have been followed and count no more.
  using Way = Schemas;
  struct Open;
  std::vector<Way> ways(const Schemas& schemas);
  std::vector<Way> ways_of(Open open, bool check);
  void follow(const Value& schema, std::vector<const Value*>& path, Open& open);
  void check_one_of(const Value& owner, const Open& open);
  bool surely_empty(const Schemas& schemas, int depth);
  bool surely_empty_way(const Way& way, int depth);
  // Values that are listed in schemas.
  std::optional<std::vector<const Value*>> listed(const Way& way);
  bool admits(const Schemas& schemas, const Value& value);
  bool admits_way(const Way& way, const Value& value);
  bool admits_number(const Way& way, const Value& value);

  // schema_compiler.cpp
  enum Type : uint8_t {
    null = 1,
    boolean = 2,
    integer = 4,
    fraction = 8,
    string = 16,
    array = 32,
    object = 64,
    all_types = 127
  };
  static uint8_t types_of(const Way& way);
  static uint8_t type_of(const Value& value);  // a number is a fraction if it is written as one
  ExprId value(const Schemas& schemas);
  ExprId body(const Schemas& schemas);
  void define_rules();  // of all schemas that were met
  ExprId of_way(const Way& way, uint8_t allowed_types = all_types);
  ExprId literal(const Value& value);
  NumberLimits number_limits(const Way& way, bool integers_only);
  struct Counts {
    int64_t min = 0;
    std::optional<int64_t> max;
    bool possible() const { return !max || *max >= min; }
  };
  static Counts counts(const Way& way, std::string_view min, std::string_view max);
  static bool any_has(const Way& way, std::initializer_list<std::string_view> keywords);
  CharDfa texts_of(const Way& way);       // of strings; any text if nothing is said
  CharDfa names_of(const Value& schema);  // the strings that a schema accepts
  CharDfa strings_of(const Schemas& schemas);
  const CharDfa& pattern(const Value& owner, std::string_view keyword, const std::string& text);
  void add(Schemas& to, const Value& schema, bool& possible) const;

  // schema_objects.cpp
  struct Property {
    std::string name;
    Schemas schemas;
    bool required = false;
  };
  struct Others {                  // properties that are not named
    std::optional<CharDfa> names;  // nullopt: any
    Schemas schemas;
  };
  struct Shape {
    std::vector<Property> properties;
    std::vector<Others> others;
    Counts count;
    bool possible = true;
  };
  Shape shape_of(const Way& way);
  Property property_of(const Way& way, const std::string& name, bool required, Shape& shape);
  std::vector<Others> others_of(const Way& way, const std::vector<std::string>& names);
  // How the members of an object are written.
  struct MemberForm {
    ExprId open, between, close;
    std::function<ExprId(const Property&)> named;
    std::function<ExprId(const Others&)> other;
  };
  ExprId members_expr(const Way& way, const MemberForm& form);
  ExprId object_expr(const Way& way);
  // The schemas of the item at `index`; from items_listed() on they are all the same. False: there can be none.
  bool item_schemas(const Way& way, size_t index, Schemas& out) const;
  static size_t items_listed(const Way& way);
  ExprId array_expr(const Way& way);

  // schema_arguments.cpp
  ExprId pieces(const std::vector<std::string>& texts);
  ExprId argument(const ArgumentNotation& notation, ExprId name, const Schemas& schemas, const ArgumentType& type);
  CharDfa bare_texts(const ArgumentNotation& notation, const Schemas& schemas, const ArgumentType& type);

  SchemaDocument& document_;
  Grammar& grammar_;
  AnyJson json_;
  std::map<Schemas, RuleId> rules_;
  std::vector<std::pair<RuleId, Schemas>> todo_;
  std::map<std::pair<std::string, std::string>, CharDfa> patterns_;  // by keyword and text
  std::optional<CharDfa> bare_texts_;                                // that a format of calls can write
};

}  // namespace easydel::text::constrain
