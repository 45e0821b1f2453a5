// The global functions of templates: Jinja2's and those that transformers adds.
#include <cstdlib>
#include <ctime>

#include "easydel/text/jinja/interpreter.h"
#include "easydel/text/unicode.h"

namespace easydel::text::jinja {
namespace {

constexpr int64_t longest_range = 100'000;  // limit of Jinja2's sandbox

class Namespace final : public Object {
 public:
  std::string name() const override {
    DictData data;
    for (auto& [key, value] : values_) data.set(Var::string(key), value);
    return "<Namespace " + repr(Var::dict(std::move(data))) + ">";
  }
  std::optional<Var> attribute(std::string_view word) override {
    for (auto& [key, value] : values_)
      if (key == word) return value;
    return std::nullopt;
  }
  bool set_attribute(std::string_view word, Var value) override {
    for (auto& [key, old] : values_)
      if (key == word) {
        old = std::move(value);
        return true;
      }
    values_.emplace_back(word, std::move(value));
    return true;
  }
  void forget() override { values_.clear(); }

 private:
  std::vector<std::pair<std::string, Var>> values_;
};

class Cycler final : public Object {
 public:
  explicit Cycler(std::vector<Var> items) : items_(std::move(items)) {
    if (items_.empty()) fail("at least one item has to be provided");
  }
  std::string name() const override { return "<Cycler>"; }
  std::optional<Var> attribute(std::string_view word) override {
    if (word == "current") return items_[at_];
    if (word == "next" || word == "reset") {
      bool next = word == "next";
      return Var::object(
          std::make_shared<Function>(std::string(word), [self = this, next](Interpreter&, const Arguments&) {
            Var out = next ? self->items_[self->at_] : Var::none();
            self->at_ = next ? (self->at_ + 1) % self->items_.size() : 0;
            return out;
          }));
    }
    return std::nullopt;
  }

 private:
  std::vector<Var> items_;
  size_t at_ = 0;
};

class Joiner final : public Object {
 public:
  explicit Joiner(std::string separator) : separator_(std::move(separator)) {}
  std::string name() const override { return "<Joiner>"; }
  bool callable() const override { return true; }
  Var call(Interpreter&, const Arguments&) override {
    return Var::string(std::exchange(used_, true) ? separator_ : "");
  }

 private:
  std::string separator_;
  bool used_ = false;
};

DictData dict_of(const Arguments& arguments) {
  DictData out;
  if (arguments.positional.size() > 1) fail("dict expected at most 1 argument, got ", arguments.positional.size());
  if (!arguments.positional.empty()) {
    const Var& from = arguments.positional[0];
    if (from.is_dict()) {
      out = from.as_dict();
    } else {
      for (const Var& pair : iterate(from)) {
        std::vector<Var> parts = iterate(pair);
        if (parts.size() != 2)
          fail("a dictionary update sequence element has length ", parts.size(), "; 2 is required");
        out.set(parts[0], parts[1]);
      }
    }
  }
  for (auto& [key, value] : arguments.named) out.set(Var::string(key), value);
  return out;
}

Var range(Interpreter& interpreter, const Arguments& arguments) {
  int64_t parts[3] = {0, 0, 1};
  size_t n = arguments.positional.size();
  if (n < 1 || n > 3) fail("range expected 1 to 3 arguments, got ", n);
  for (size_t i = 0; i < n; ++i) {
    const Var& value = arguments.positional[i];
    if (!value.is_integral()) fail("'", type_name(value), "' object cannot be interpreted as an integer");
    parts[n == 1 ? 1 : i] = value.as_integer();
  }
  auto [begin, end, by] = parts;
  if (by == 0) fail("range() arg 3 must not be zero");
  std::vector<Var> out;
  for (int64_t i = begin; by > 0 ? i < end : i > end;) {
    if (int64_t(out.size()) >= longest_range)
      fail("Range too big. The sandbox blocks ranges larger than MAX_RANGE (", longest_range, ").");
    out.push_back(Var::integer(i));
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  interpreter.step(out.size());
  Var view = Var::view("range", std::move(out));
  view.as_view().bounds = {begin, end, by};
  return view;
}

Var strftime_now(Interpreter&, const Arguments& arguments) {
  if (arguments.positional.size() != 1 || !arguments.positional[0].is_string()) fail("strftime_now() takes one format");
  // SOURCE_DATE_EPOCH is the common way to request reproducible output.
  const char* fixed = std::getenv("SOURCE_DATE_EPOCH");
  std::time_t now = fixed ? static_cast<std::time_t>(std::strtoll(fixed, nullptr, 10)) : std::time(nullptr);
  std::tm local{};
  if (fixed)
    gmtime_r(&now, &local);
  else
    localtime_r(&now, &local);
  const std::string& format = arguments.positional[0].as_string();
  if (format.empty()) return Var::string("");
  std::string out(format.size() * 64 + 256, '\0');
  out.resize(std::strftime(out.data(), out.size(), format.c_str(), &local));
  return Var::string(replace_invalid(out));
}

Var function(const char* name, Var (*run)(Interpreter&, const Arguments&)) {
  return Var::object(std::make_shared<Function>(name, run));
}

}  // namespace

const std::vector<std::pair<std::string, Var>>& globals() {
  static const std::vector<std::pair<std::string, Var>> all = {
      {"range", function("range", range)},
      {"dict", function("dict", [](Interpreter&, const Arguments& a) { return Var::dict(dict_of(a)); })},
      {"namespace", function("namespace",
                             [](Interpreter& interpreter, const Arguments& a) {
                               auto object = std::make_shared<Namespace>();
                               for (auto& [key, value] : dict_of(a).entries) object->set_attribute(to_text(key), value);
                               interpreter.remember(object);
                               return Var::object(object);
                             })},
      {"cycler", function("cycler",
                          [](Interpreter& interpreter, const Arguments& a) {
                            auto object = std::make_shared<Cycler>(a.positional);
                            interpreter.remember(object);
                            return Var::object(object);
                          })},
      {"joiner", function("joiner",
                          [](Interpreter&, const Arguments& a) {
                            const Var* separator = a.find(0, "sep");
                            return Var::object(std::make_shared<Joiner>(separator ? to_text(*separator) : ", "));
                          })},
      {"raise_exception", function("raise_exception",
                                   [](Interpreter&, const Arguments& a) -> Var {
                                     const Var* message = a.find(0, "message");
                                     fail(message ? to_text(*message) : "the template raises an exception");
                                   })},
      {"strftime_now", function("strftime_now", strftime_now)},
  };
  return all;
}

}  // namespace easydel::text::jinja
