// Executes statements.
#include "easydel/text/jinja/interpreter.h"

#include <utility>

#include "easydel/text/jinja/strings.h"
#include "easydel/text/unicode.h"

namespace easydel::text::jinja {
namespace {

constexpr int64_t steps_between_looks = 4096;
constexpr size_t max_output = 64u << 20;
constexpr int deepest = 700;
constexpr size_t max_remembered = 100'000;

class MacroObject final : public Object {
 public:
  MacroObject(std::shared_ptr<const Macro> macro, ScopePtr scope, bool escapes)
      : macro_(std::move(macro)), scope_(std::move(scope)), escapes_(escapes) {}
  std::string name() const override { return "<Macro " + repr(Var::string(macro_->name)) + ">"; }
  bool callable() const override { return true; }
  Var call(Interpreter& interpreter, const Arguments& arguments) override {
    const Var* caller = nullptr;
    Arguments rest;
    rest.positional = arguments.positional;
    for (auto& [key, value] : arguments.named)
      if (key == "caller" && macro_->uses_caller)
        caller = &value;
      else
        rest.named.emplace_back(key, value);
    return interpreter.call_macro(*macro_, scope_, rest, caller, escapes_);
  }
  std::optional<Var> attribute(std::string_view word) override {
    if (word == "name") return Var::string(macro_->name);
    return std::nullopt;
  }
  void forget() override { scope_.reset(); }

 private:
  std::shared_ptr<const Macro> macro_;
  ScopePtr scope_;
  bool escapes_;
};

// The value of `self`: the template's blocks.
class SelfObject final : public Object {
 public:
  SelfObject(const Template& source, ScopePtr scope) : source_(source), scope_(std::move(scope)) {}
  std::string name() const override { return "<TemplateReference None>"; }
  std::optional<Var> attribute(std::string_view word) override {
    for (const Statement* block : source_.blocks)
      if (block->text == word)
        return Var::object(std::make_shared<Function>(
            block->text, [block, scope = scope_](Interpreter& interpreter, const Arguments&) {
              return Var::string(interpreter.run_block(*block, scope), interpreter.autoescapes());
            }));
    return std::nullopt;
  }
  void forget() override { scope_.reset(); }

 private:
  const Template& source_;
  ScopePtr scope_;
};

// The value of `loop` inside a loop.
class LoopObject final : public Object, public std::enable_shared_from_this<LoopObject> {
 public:
  using Items = std::shared_ptr<const std::vector<Var>>;
  LoopObject(const Statement& statement, ScopePtr scope, Items items, int depth)
      : statement_(statement), scope_(std::move(scope)), items_(std::move(items)), depth_(depth) {}
  void move_to(size_t index) { index_ = index; }
  std::string name() const override { return str("<LoopContext ", index_ + 1, "/", items_->size(), ">"); }
  bool callable() const override { return statement_.recursive; }
  Var call(Interpreter& interpreter, const Arguments& arguments) override {
    if (!statement_.recursive) fail("the loop is not marked as recursive");
    if (arguments.positional.size() != 1) fail("loop() takes the items to go through");
    return Var::string(interpreter.loop_again(statement_, scope_, arguments.positional[0], depth_ + 1),
                       interpreter.escapes());
  }
  std::optional<Var> attribute(std::string_view word) override {
    auto n = int64_t(items_->size()), i = int64_t(index_);
    if (word == "index") return Var::integer(i + 1);
    if (word == "index0") return Var::integer(i);
    if (word == "revindex") return Var::integer(n - i);
    if (word == "revindex0") return Var::integer(n - i - 1);
    if (word == "first") return Var::boolean(i == 0);
    if (word == "last") return Var::boolean(i + 1 == n);
    if (word == "length") return Var::integer(n);
    if (word == "depth") return Var::integer(depth_ + 1);
    if (word == "depth0") return Var::integer(depth_);
    if (word == "previtem") return i > 0 ? (*items_)[i - 1] : Var::undefined("there is no previous item");
    if (word == "nextitem") return i + 1 < n ? (*items_)[i + 1] : Var::undefined("there is no next item");
    if (word == "cycle")
      return Var::object(std::make_shared<Function>("cycle", [i](Interpreter&, const Arguments& arguments) {
        if (arguments.positional.empty()) fail("no items for cycling given");
        return arguments.positional[i % arguments.positional.size()];
      }));
    if (word == "changed")
      return Var::object(
          std::make_shared<Function>("changed", [self = shared_from_this()](Interpreter&, const Arguments& arguments) {
            Var now = Var::tuple(arguments.positional);
            bool same = self->seen_.type() == Var::Type::tuple && equal(self->seen_, now);
            self->seen_ = now;
            return Var::boolean(!same);
          }));
    return std::nullopt;
  }

 private:
  const Statement& statement_;
  ScopePtr scope_;
  Items items_;
  int depth_;
  size_t index_ = 0;
  Var seen_;
};

}  // namespace

struct Interpreter::Deeper {
  Interpreter& interpreter;
  explicit Deeper(Interpreter& interpreter) : interpreter(interpreter) {
    if (++interpreter.depth_ > deepest) fail("the template goes too deep (endless recursion?)");
  }
  ~Deeper() { --interpreter.depth_; }
};

const Var* Scope::find_here(std::string_view name) const {
  for (auto& [key, value] : names)
    if (key == name) return &value;
  return nullptr;
}

void Scope::set(const std::string& name, Var value) {
  for (auto& [key, old] : names)
    if (key == name) {
      old = std::move(value);
      return;
    }
  names.emplace_back(name, std::move(value));
}

Interpreter::~Interpreter() {
  for (auto& scope : captured_) scope->names.clear();
  for (auto& object : remembered_) object->forget();
}

void Interpreter::remember(std::shared_ptr<Object> object) {
  if (remembered_.size() >= max_remembered)
    fail("the template makes more than ", max_remembered, " namespaces and macros");
  remembered_.push_back(std::move(object));
}

void Interpreter::step(size_t cost) {
  steps_ += int64_t(cost);
  if (steps_ > limits_.steps) fail("the template does more than ", limits_.steps, " steps");
  if (steps_ < next_look_) return;
  next_look_ = steps_ + steps_between_looks;
  if (steps_ >= steps_between_looks && std::chrono::steady_clock::now() >= ends_)
    fail("the template takes longer than ", limits_.time.count(), " ms");
}

ScopePtr Interpreter::begin(const Var& context) {
  root_ = std::make_shared<Scope>();
  for (auto& [name, value] : globals()) root_->names.emplace_back(name, value);
  for (auto& [key, value] : context.as_dict().entries) root_->set(key.as_string(), value);
  auto inner = std::make_shared<Scope>();
  inner->outer = root_;
  captured_.push_back(inner);
  top_ = inner;
  auto self = std::make_shared<SelfObject>(template_, inner);
  remember(self);
  inner->names.emplace_back("self", Var::object(self));
  return inner;
}

Var Interpreter::value(const Expression& expression, const Var& context) {
  return evaluate(expression, begin(context));
}

std::string Interpreter::render(const Var& context) {
  const ScopePtr inner = begin(context);
  if (const Var* const all = traced_ ? root_->find_here("messages") : nullptr; all && all->is_array())
    for (const Var& message : all->items())
      if (message.identity()) messages_.emplace(message.identity(), int64_t(messages_.size()));
  std::string out;
  main_ = &out;
  run(template_.body, inner, out);
  main_ = nullptr;
  return out;
}

void Interpreter::emit(std::string& out, std::string_view text) {
  written_ += text.size();
  if (written_ > max_output) fail("the template writes more than ", max_output >> 20, " MiB");
  out += text;
  if (!traced_ || &out != main_ || text.empty()) return;
  const int64_t begin = pieces_.empty() ? 0 : pieces_.back().end;
  pieces_.push_back({begin, begin + count_characters(text), message_});
}

std::string Interpreter::captured(const Body& body, const ScopePtr& scope) {
  auto inner = std::make_shared<Scope>();
  inner->outer = scope;
  std::string out;
  run(body, inner, out);
  return out;
}

Interpreter::Flow Interpreter::run(const Body& body, const ScopePtr& scope, std::string& out) {
  for (auto& statement : body) {
    Flow flow = run(*statement, scope, out);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Interpreter::Flow Interpreter::run(const Statement& statement, const ScopePtr& scope, std::string& out) {
  Deeper deeper(*this);
  step();
  line_ = statement.line, column_ = statement.column;
  using Kind = Statement::Kind;
  switch (statement.kind) {
    case Kind::data:
      emit(out, statement.text);
      break;
    case Kind::output: {
      Var value = evaluate(*statement.expression, scope);
      emit(out, escapes_ && !value.is_markup() ? escape(to_text(value)) : to_text(value));
      break;
    }
    case Kind::if_:
      for (auto& [condition, body] : statement.branches)
        if (!condition || evaluate(*condition, scope).truth()) return run(body, scope, out);
      break;
    case Kind::for_:
      run_for(statement, scope, evaluate(*statement.expression, scope), 0, out);
      break;
    case Kind::set: {
      Var value = evaluate(*statement.expression, scope);
      if (counts_) enter_message(value);
      assign(statement.target, std::move(value), scope);
      break;
    }
    case Kind::set_block: {
      Var text = Var::string(captured(statement.body, scope), escapes_);
      if (statement.expression) text = evaluate_filter(*statement.expression, scope, &text);
      assign(statement.target, text, scope);
      break;
    }
    case Kind::macro: {
      auto object = std::make_shared<MacroObject>(statement.macro, scope, escapes_);
      remember(object);
      scope->set(statement.macro->name, Var::object(object));
      break;
    }
    case Kind::call: {
      auto object = std::make_shared<MacroObject>(statement.macro, scope, escapes_);
      remember(object);
      Var caller = Var::object(object);
      emit(out, to_text(evaluate_call(*statement.expression, scope, &caller)));
      break;
    }
    case Kind::filter: {
      Var text = Var::string(captured(statement.body, scope), escapes_);
      emit(out, to_text(evaluate_filter(*statement.expression, scope, &text)));
      break;
    }
    case Kind::with: {
      auto inner = std::make_shared<Scope>();
      inner->outer = scope;
      for (auto& [target, value] : statement.bindings) inner->set(target.name, evaluate(*value, scope));
      return run(statement.body, inner, out);
    }
    case Kind::generation: {
      if (main_) {
        main_characters_ += count_characters(std::string_view(*main_).substr(main_counted_));
        main_counted_ = main_->size();
      }
      int64_t begin = main_characters_;
      std::string text = captured(statement.body, scope);
      spans_.emplace_back(begin, begin + count_characters(text));
      emit(out, text);
      break;
    }
    case Kind::block:
      if (statement.required) fail("Required block '", statement.text, "' not found");
      emit(out, run_block(statement, statement.scoped ? scope : top_));
      break;
    case Kind::autoescape: {
      const bool value = evaluate(*statement.expression, scope).truth();
      const bool escapes = std::exchange(escapes_, value), autoescapes = std::exchange(autoescapes_, value);
      auto inner = std::make_shared<Scope>();
      inner->outer = scope;
      const Flow flow = run(statement.body, inner, out);
      escapes_ = escapes, autoescapes_ = autoescapes;
      return flow;
    }
    case Kind::break_:
      return Flow::break_;
    case Kind::continue_:
      return Flow::continue_;
  }
  return Flow::normal;
}

void Interpreter::run_for(const Statement& statement, const ScopePtr& scope, const Var& items, int depth,
                          std::string& out) {
  std::vector<Var> all = iterate(items);
  step(all.size());
  if (statement.condition) {
    std::vector<Var> kept;
    for (Var& item : all) {
      auto inner = std::make_shared<Scope>();
      inner->outer = scope;
      assign(statement.target, item, inner);
      if (evaluate(*statement.condition, inner).truth()) kept.push_back(std::move(item));
    }
    all = std::move(kept);
  }
  auto shared = std::make_shared<const std::vector<Var>>(std::move(all));
  auto loop = std::make_shared<LoopObject>(statement, scope, shared, depth);
  Var loop_value = Var::object(loop);
  bool gone_through = false;  // Jinja2 runs else if no iteration was completed
  for (size_t i = 0; i < shared->size(); ++i) {
    loop->move_to(i);
    const int64_t outer = message_;
    const bool outer_counts = std::exchange(counts_, (*shared)[i].type() == Var::Type::integer);
    enter_message((*shared)[i]);
    auto inner = std::make_shared<Scope>();
    inner->outer = scope;
    inner->names.emplace_back("loop", loop_value);
    assign(statement.target, (*shared)[i], inner);
    const Flow flow = run(statement.body, inner, out);
    message_ = outer, counts_ = outer_counts;
    if (flow == Flow::break_) break;
    gone_through = gone_through || flow == Flow::normal;
  }
  if (!gone_through) {
    auto inner = std::make_shared<Scope>();
    inner->outer = scope;
    run(statement.otherwise, inner, out);
  }
}

void Interpreter::enter_message(const Var& value) {
  if (messages_.empty() || !value.is_dict()) return;
  const auto found = messages_.find(value.identity());
  if (found == messages_.end()) return;
  message_ = found->second;
  counts_ = false;
}

std::string Interpreter::loop_again(const Statement& loop, const ScopePtr& scope, const Var& items, int depth) {
  Deeper deeper(*this);
  std::string out;
  run_for(loop, scope, items, depth, out);
  return out;
}

void Interpreter::assign(const Target& target, Var value, const ScopePtr& scope) {
  if (!target.parts.empty()) {
    std::vector<Var> parts = iterate(value);
    if (parts.size() != target.parts.size())
      fail(parts.size() < target.parts.size() ? "not enough" : "too many", " values to unpack (expected ",
           target.parts.size(), ", got ", parts.size(), ")");
    for (size_t i = 0; i < parts.size(); ++i) assign(target.parts[i], std::move(parts[i]), scope);
    return;
  }
  if (target.attribute.empty()) return scope->set(target.name, std::move(value));
  for (const Scope* at = scope.get(); at; at = at->outer.get())
    if (const Var* object = at->find_here(target.name)) {
      if (object->is_object() && object->as_object().set_attribute(target.attribute, value)) return;
      break;
    }
  fail("cannot assign attribute on non-namespace object");
}

// A block sees the template's names; assignments in it are local; it does not change escaping.
std::string Interpreter::run_block(const Statement& block, const ScopePtr& scope) {
  Deeper deeper(*this);
  const bool escapes = std::exchange(escapes_, false);
  std::string out = captured(block.body, scope);
  escapes_ = escapes;
  return out;
}

Var Interpreter::call_macro(const Macro& macro, const ScopePtr& scope, const Arguments& arguments, const Var* caller,
                            bool escapes) {
  Deeper deeper(*this);
  const bool escaped = std::exchange(escapes_, escapes);
  auto inner = std::make_shared<Scope>();
  inner->outer = scope;
  size_t count = macro.parameters.size();
  std::vector<bool> used(arguments.named.size());
  for (size_t i = 0; i < count; ++i) {
    const std::string& name = macro.parameters[i];
    const Var* given = i < arguments.positional.size() ? &arguments.positional[i] : nullptr;
    for (size_t j = 0; j < arguments.named.size(); ++j)
      if (arguments.named[j].first == name && !given) {
        given = &arguments.named[j].second;
        used[j] = true;
      }
    size_t first_default = count - macro.defaults.size();
    if (given)
      inner->set(name, *given);
    else if (i >= first_default)
      inner->set(name, evaluate(*macro.defaults[i - first_default], inner));
    else
      inner->set(name, Var::undefined("parameter '" + name + "' was not provided"));
  }
  DictData rest;
  for (size_t j = 0; j < used.size(); ++j)
    if (!used[j]) rest.set(Var::string(arguments.named[j].first), arguments.named[j].second);
  if (macro.uses_kwargs)
    inner->set("kwargs", Var::dict(std::move(rest)));
  else if (!rest.entries.empty())
    fail("macro '", macro.name, "' takes no keyword argument '", rest.entries[0].first.as_string(), "'");
  if (macro.uses_varargs) {
    std::vector<Var> more;
    if (arguments.positional.size() > count)
      more.assign(arguments.positional.begin() + count, arguments.positional.end());
    inner->set("varargs", Var::tuple(std::move(more)));
  } else if (arguments.positional.size() > count) {
    fail("macro '", macro.name, "' takes not more than ", count, " argument(s)");
  }
  if (macro.uses_caller) inner->set("caller", caller ? *caller : Var::undefined("No caller defined"));
  std::string out;
  const int line = line_, column = column_;
  run(macro.body, inner, out);
  line_ = line, column_ = column;
  escapes_ = escaped;
  return Var::string(std::move(out), autoescapes_);
}

}  // namespace easydel::text::jinja
