#include "easydel/text/row_template.h"

#include "easydel/base/error.h"
#include "easydel/text/jinja/ast.h"
#include "easydel/text/jinja/interpreter.h"
#include "easydel/text/unicode.h"

namespace easydel::text {

struct RowTemplate::Impl {
  jinja::Template parsed;

  // The only expression; nullptr: the template writes a text.
  const jinja::Expression* expression() const {
    const bool single = parsed.body.size() == 1 && parsed.body[0]->kind == jinja::Statement::Kind::output;
    return single ? parsed.body[0]->expression.get() : nullptr;
  }

  jinja::Var value(const Value& fields) const {
    check(fields.is_map(), "a row template needs a map of fields");
    jinja::Interpreter interpreter(parsed);
    try {
      const jinja::Var context = jinja::from_document(fields);
      if (const jinja::Expression* const single = expression()) return interpreter.value(*single, context);
      return jinja::Var::string(interpreter.render(context));
    } catch (const jinja::Failure& failure) {
      refuse(FilePlace{parsed.name, interpreter.line(), interpreter.column()}, failure.what());
    }
  }
};

RowTemplate::RowTemplate(std::string_view source, std::string name) {
  if (valid_prefix(source) != source.size()) refuse(name, "is not UTF-8 text", "save the template as UTF-8");
  auto impl = std::make_unique<Impl>();
  impl->parsed = jinja::parse(source, name);
  impl_ = std::move(impl);
}
RowTemplate::~RowTemplate() = default;
RowTemplate::RowTemplate(RowTemplate&&) noexcept = default;
RowTemplate& RowTemplate::operator=(RowTemplate&&) noexcept = default;

Value RowTemplate::value(const Value& fields) const {
  const jinja::Var value = impl_->value(fields);
  if (value.is_undefined()) return {};
  if (value.is_string()) return Value::text(value.as_string());
  try {
    jinja::JsonOptions options;
    options.item_separator = ",", options.key_separator = ":";
    return parse_json(jinja::to_json_text(value, options), impl_->parsed.name);
  } catch (const jinja::Failure& failure) {
    refuse(impl_->parsed.name, str("gives something that a row cannot hold: ", failure.what()),
           "give a text, a number, true or false, a list or a map");
  }
}

bool RowTemplate::is_true(const Value& fields) const { return impl_->value(fields).truth(); }

}  // namespace easydel::text
