// The public interface of templates: parse once, render often, errors with line and column.
#include "easydel/text/chat_template.h"

#include "easydel/base/error.h"
#include "easydel/text/jinja/ast.h"
#include "easydel/text/jinja/interpreter.h"
#include "easydel/text/unicode.h"

namespace easydel::text {

struct ChatTemplate::Impl {
  jinja::Template parsed;
};

ChatTemplate::ChatTemplate(std::string_view source, std::string name) {
  if (valid_prefix(source) != source.size()) refuse(name, "is not UTF-8 text", "save the template as UTF-8");
  auto impl = std::make_unique<Impl>();
  impl->parsed = jinja::parse(source, name);
  impl_ = std::move(impl);
}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

bool ChatTemplate::marks_generation() const { return impl_->parsed.has_generation_blocks; }

Rendering ChatTemplate::render(const Value& context, bool traced) const {
  check(context.is_map(), "a chat template is rendered with a map");
  jinja::Interpreter interpreter(impl_->parsed);
  if (traced) interpreter.trace_messages();
  Rendering out;
  try {
    out.text = interpreter.render(jinja::from_document(context));
  } catch (const jinja::Failure& failure) {
    refuse(FilePlace{impl_->parsed.name, interpreter.line(), interpreter.column()}, failure.what());
  }
  out.has_generation_blocks = impl_->parsed.has_generation_blocks;
  out.generation_spans = interpreter.generation_spans();
  for (const jinja::Piece& piece : interpreter.pieces()) out.pieces.push_back({piece.begin, piece.end, piece.message});
  return out;
}

}  // namespace easydel::text
