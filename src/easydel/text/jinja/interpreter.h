// Runs a parsed template. An Interpreter is one rendering, on one thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "easydel/text/jinja/ast.h"

namespace easydel::text::jinja {

// The names of one block; lookups continue in the outer scope.
struct Scope {
  std::shared_ptr<Scope> outer;
  std::vector<std::pair<std::string, Var>> names;

  const Var* find_here(std::string_view name) const;
  void set(const std::string& name, Var value);
};
using ScopePtr = std::shared_ptr<Scope>;

struct Limits {
  int64_t steps = 20'000'000;
  std::chrono::milliseconds time{20'000};
};

// What one statement wrote.
struct Piece {
  int64_t begin = 0, end = 0;  // in characters of the whole text
  int64_t message = -1;        // its index; -1: written outside of loops over messages
};

class Interpreter {
 public:
  explicit Interpreter(const Template& source, Limits limits = {})
      : template_(source), limits_(limits), ends_(std::chrono::steady_clock::now() + limits.time) {}
  ~Interpreter();

  // Returns the text. Failure: an error at line() and column().
  std::string render(const Var& context);
  // The value of one of the template's expressions, instead of render().
  Var value(const Expression& expression, const Var& context);
  // Before render(): record for each piece of the text which of the context's messages the loop around it was at.
  void trace_messages() { traced_ = true; }
  const std::vector<Piece>& pieces() const { return pieces_; }

  int line() const { return line_; }
  int column() const { return column_; }
  const std::vector<std::pair<int64_t, int64_t>>& generation_spans() const { return spans_; }

  // For filters, tests, macros and loops.
  Var call(const Var& function, const Arguments& arguments);
  Var filter(std::string_view name, const Var& value, const Arguments& arguments);
  bool test(std::string_view name, const Var& value, const Arguments& arguments);
  Var attribute(const Var& object, std::string_view name);  // object.name
  Var item(const Var& object, const Var& index);            // object[index]
  // `escapes`: the macro was defined where {{ }} escapes.
  Var call_macro(const Macro& macro, const ScopePtr& scope, const Arguments& arguments, const Var* caller,
                 bool escapes);
  std::string run_block(const Statement& block, const ScopePtr& scope);
  bool autoescapes() const { return autoescapes_; }  // autoescaping of the calling code, not of the definition
  bool escapes() const { return escapes_; }
  std::string loop_again(const Statement& loop, const ScopePtr& scope, const Var& items, int depth);
  void step(size_t cost = 1);                     // Failure: the rendering exceeds its limit of work
  void remember(std::shared_ptr<Object> object);  // calls forget() at the end

 private:
  ScopePtr begin(const Var& context);  // the scope of the template's own names
  enum class Flow : uint8_t { normal, break_, continue_ };
  struct Deeper;

  Flow run(const Body& body, const ScopePtr& scope, std::string& out);
  Flow run(const Statement& statement, const ScopePtr& scope, std::string& out);
  void run_for(const Statement& statement, const ScopePtr& scope, const Var& items, int depth, std::string& out);
  void enter_message(const Var& value);  // if it is one that is traced
  void assign(const Target& target, Var value, const ScopePtr& scope);
  void emit(std::string& out, std::string_view text);
  std::string captured(const Body& body, const ScopePtr& scope);

  Var evaluate(const Expression& expression, const ScopePtr& scope);
  Var made(Var value);  // charges for a new value
  Var evaluate_name(const Expression& expression, const ScopePtr& scope);
  Var evaluate_compare(const Expression& expression, const ScopePtr& scope);
  Var evaluate_call(const Expression& expression, const ScopePtr& scope, const Var* caller);
  Var evaluate_filter(const Expression& expression, const ScopePtr& scope, const Var* head);
  Arguments evaluate_arguments(const Expression& expression, const ScopePtr& scope);

  const Template& template_;
  const Limits limits_;
  const std::chrono::steady_clock::time_point ends_;
  ScopePtr root_, top_;  // the context; the template's own names
  bool escapes_ = false, autoescapes_ = false;
  std::vector<ScopePtr> captured_;                   // scopes that macros hold; cleared at the end to break cycles
  std::vector<std::shared_ptr<Object>> remembered_;  // namespaces, for the same reason
  std::vector<std::pair<int64_t, int64_t>> spans_;
  std::string* main_ = nullptr;  // the result of render()
  int64_t main_characters_ = 0;  // of the first main_counted_ bytes of it
  size_t main_counted_ = 0;
  int64_t steps_ = 0, next_look_ = 0;  // step at which the clock is read next
  size_t written_ = 0;
  bool traced_ = false;
  std::unordered_map<const Heap*, int64_t> messages_;  // traced: their indices
  int64_t message_ = -1;                               // that the innermost loop over messages is at; -1: none
  bool counts_ = false;  // the innermost loop is over integers: the first message that is set in it is its message
  std::vector<Piece> pieces_;
  int depth_ = 0, line_ = 0, column_ = 0;
};

Var binary(std::string_view operation, const Var& a, const Var& b);
Var slice(const Var& value, const Var* begin, const Var* end, const Var* step);
std::string format_percent(const std::string& format, const Var& arguments);  // str % arguments
std::string format_braces(const std::string& format, const Arguments& arguments,
                          Interpreter& interpreter);  // str.format

// A method of a string, list, dict or number; nullopt: no such method.
std::optional<Var> method(const Var& object, std::string_view name);
// range, dict, namespace, cycler, joiner, raise_exception, strftime_now.
const std::vector<std::pair<std::string, Var>>& globals();

struct NamedFilter {
  std::string_view name;
  Var (*run)(Interpreter&, const Var&, const Arguments&);
};
struct NamedTest {
  std::string_view name;
  bool (*run)(Interpreter&, const Var&, const Arguments&);
};
const NamedFilter* find_filter(std::string_view name);
const NamedTest* find_test(std::string_view name);

}  // namespace easydel::text::jinja
