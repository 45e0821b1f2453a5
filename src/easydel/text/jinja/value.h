// The values of a template, with the semantics of Python's. Lists and dicts are immutable (as in transformers'
// environment), so values are shared freely.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"

namespace easydel::text::jinja {

// An error while a template runs; the interpreter adds the position.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Failure(str(parts...));
}

struct Heap {
  virtual ~Heap() = default;
};
struct DictData;
struct ViewData;
class Object;
class Interpreter;

class Var {
 public:
  enum class Type : uint8_t { undefined, none, boolean, integer, number, string, list, tuple, dict, view, object };

  Var() = default;  // undefined, without a name
  static Var undefined(std::string why);
  static Var none();
  static Var boolean(bool b);
  static Var integer(int64_t i);
  static Var number(double d);
  static Var string(std::string s, bool markup = false);
  static Var list(std::vector<Var> items);
  static Var tuple(std::vector<Var> items);
  static Var dict(DictData entries);
  // An iterable that is not a list: "generator" (one iteration, no length), "range", "dict_items", ...
  static Var view(std::string kind, std::vector<Var> items);
  static Var object(std::shared_ptr<Object> o);

  Type type() const { return type_; }
  bool is_undefined() const { return type_ == Type::undefined; }
  bool is_none() const { return type_ == Type::none; }
  bool is_string() const { return type_ == Type::string; }
  bool is_dict() const { return type_ == Type::dict; }
  bool is_array() const { return type_ == Type::list || type_ == Type::tuple; }
  bool is_view() const { return type_ == Type::view; }
  bool is_object() const { return type_ == Type::object; }
  bool is_integral() const { return type_ == Type::integer || type_ == Type::boolean; }
  bool is_numeric() const { return is_integral() || type_ == Type::number; }
  bool is_markup() const { return markup_; }  // a string whose concatenations are escaped

  bool as_bool() const { return integer_ != 0; }
  int64_t as_integer() const { return integer_; }
  double as_number() const { return type_ == Type::number ? number_ : double(integer_); }
  const std::string& as_string() const;  // for an undefined value: the reason
  const std::vector<Var>& items() const;
  const DictData& as_dict() const;
  ViewData& as_view() const;
  Object& as_object() const;
  const Heap* identity() const { return heap_.get(); }

  bool truth() const;

 private:
  Type type_ = Type::undefined;
  bool markup_ = false;
  union {
    int64_t integer_ = 0;
    double number_;
  };
  std::shared_ptr<Heap> heap_;
};

struct DictData {
  std::vector<std::pair<Var, Var>> entries;         // in insertion order
  std::unordered_map<std::string, size_t> by_name;  // indices of string keys

  const Var* find(const Var& key) const;
  const Var* find(std::string_view key) const;
  void set(Var key, Var value);
};

struct ViewData : Heap {
  std::string kind;
  std::vector<Var> items;
  size_t taken = 0;                        // items consumed from a generator
  std::string failure;                     // error at the end of the iteration; empty: none
  std::array<int64_t, 3> bounds{0, 0, 1};  // of a range: begin, end, step
  ViewData(std::string kind, std::vector<Var> items) : kind(std::move(kind)), items(std::move(items)) {}
  bool once() const { return !kind.starts_with("dict_") && kind != "range"; }
};

// Arguments of a call.
struct Arguments {
  std::vector<Var> positional;
  std::vector<std::pair<std::string, Var>> named;

  const Var* find(size_t position, std::string_view name) const;  // nullptr: not given
};

// Other values: functions, macros, namespaces, loops.
class Object : public Heap {
 public:
  virtual std::string name() const = 0;  // as Python would print it
  virtual bool callable() const { return false; }
  virtual Var call(Interpreter&, const Arguments&) { fail("'", name(), "' object is not callable"); }
  virtual std::optional<Var> attribute(std::string_view) { return std::nullopt; }
  virtual bool set_attribute(std::string_view, Var) { return false; }
  virtual void forget() {}  // releases the values that it holds
};

class Function final : public Object {
 public:
  using Body = std::function<Var(Interpreter&, const Arguments&)>;
  Function(std::string name, Body body) : name_(std::move(name)), body_(std::move(body)) {}
  std::string name() const override { return "<function " + name_ + ">"; }
  bool callable() const override { return true; }
  Var call(Interpreter& interpreter, const Arguments& arguments) override { return body_(interpreter, arguments); }

 private:
  std::string name_;
  Body body_;
};

Var from_document(const Value& value);

std::string to_text(const Var& value);  // str()
std::string repr(const Var& value);     // repr()
std::string repr_of_number(double d);
std::string type_name(const Var& value);  // "str", "dict", "Undefined" ...
bool equal(const Var& a, const Var& b);
bool less(const Var& a, const Var& b);  // a < b; Failure if Python cannot compare them
bool contains(const Var& container, const Var& item);
int64_t length(const Var& value);            // len(); Failure if it has none
std::vector<Var> iterate(const Var& value);  // list(value); Failure if it is not iterable
std::string escape(std::string_view text);   // for HTML
void check_size(size_t bytes);               // Failure if a value would become too large

struct JsonOptions {
  bool ensure_ascii = false, sort_keys = false, indented = false;
  std::string indent, item_separator, key_separator;
};
std::string to_json_text(const Var& value, const JsonOptions& options);  // json.dumps

// Number of characters; ASCII strings are not converted.
size_t characters(const std::string& text);

}  // namespace easydel::text::jinja
