// Converts lines to calls, and results to lines.
#include "easydel/probe/text_lines.h"

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/files.h"

namespace easydel::probe {
namespace {

std::string failed(const std::exception& error) {
  Value out = Value::map();
  out.set("error", Value::text(error.what()));
  return to_json(out);
}

Value read_line(std::string_view line) {
  Value out = parse_json(line, "line");
  if (!out.is_map()) refuse("line", "is not a JSON object");
  return out;
}

std::string text_of(const Value& line, std::string_view key) {
  const Value* value = line.find(key);
  if (!value || !value->is_text()) refuse("line", str("'", key, "' is missing or no string"));
  return value->scalar;
}

Value numbers(const std::vector<std::pair<int64_t, int64_t>>& pairs) {
  Value out = Value::list();
  for (auto& [begin, end] : pairs) {
    Value pair = Value::list();
    pair.items = {Value::integer(begin), Value::integer(end)};
    out.items.push_back(std::move(pair));
  }
  return out;
}

}  // namespace

RenderProbe::RenderProbe(const std::filesystem::path& template_file) : path_(template_file) {
  if (!path_.empty()) template_ = std::make_unique<const text::ChatTemplate>(files::read(path_), path_.string());
}

std::string RenderProbe::answer(std::string_view line) try {
  Value in = read_line(line);
  const Value* context = in.find("context");
  if (!context || !context->is_map()) refuse("line", "'context' is missing or no map");
  const text::ChatTemplate* source = template_.get();
  if (in.find("template")) {
    std::string text = text_of(in, "template");
    auto it = others_.find(text);
    if (it == others_.end()) {
      if (others_.size() > 256) others_.clear();
      it = others_.emplace(text, text::ChatTemplate(text, "template")).first;
    }
    source = &it->second;
  }
  if (!source) refuse("line", "has no 'template', and none was given with --template");
  text::Rendering rendering = source->render(*context);
  Value out = Value::map();
  out.set("output", Value::text(rendering.text));
  if (rendering.has_generation_blocks) out.set("generation_spans", numbers(rendering.generation_spans));
  return to_json(out);
} catch (const std::exception& error) {
  return failed(error);
}

}  // namespace easydel::probe
