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

std::optional<bool> flag_of(const Value& line, std::string_view key) {
  const Value* value = line.find(key);
  if (!value || value->is_null()) return std::nullopt;
  if (auto flag = value->as_bool()) return flag;
  refuse("line", str("'", key, "' is neither true nor false"));
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

Value numbers(const std::vector<uint8_t>& list) {
  Value out = Value::list();
  for (const uint8_t each : list) out.items.push_back(Value::integer(each));
  return out;
}

Value written(const text::Encoding& encoding, bool masks) {
  Value out = Value::map(), ids = Value::list(), tokens = Value::list();
  for (text::TokenId id : encoding.ids) ids.items.push_back(Value::integer(id));
  for (const std::string& token : encoding.tokens) tokens.items.push_back(Value::text(token));
  out.set("ids", std::move(ids));
  out.set("tokens", std::move(tokens));
  out.set("offsets", numbers(encoding.offsets));
  if (masks) {
    out.set("special_tokens_mask", numbers(encoding.special_tokens_mask));
    out.set("type_ids", numbers(encoding.type_ids));
  }
  return out;
}

}  // namespace

TokenizeProbe::TokenizeProbe(const std::filesystem::path& folder_or_file)
    : tokenizer_(text::Tokenizer::load(folder_or_file)) {}

std::string TokenizeProbe::answer(std::string_view line) const try {
  Value in = read_line(line), out = Value::map();
  if (const Value* list = in.find("ids")) {
    if (!list->is_list()) refuse("line", "'ids' is not a list");
    std::vector<text::TokenId> ids;
    for (const Value& item : list->items) {
      auto id = item.as_int();
      if (!id || *id < 0 || *id > INT32_MAX) refuse("line", "'ids' has something that is not a token id");
      ids.push_back(static_cast<text::TokenId>(*id));
    }
    out.set("text", Value::text(tokenizer_->decode(ids, flag_of(in, "skip_special_tokens").value_or(false),
                                                   flag_of(in, "clean_up"))));
    return to_json(out);
  }
  text::EncodeOptions options;
  options.add_special_tokens = flag_of(in, "add_special_tokens").value_or(true);
  options.file_limits = flag_of(in, "file_limits").value_or(false);
  options.parse_special = flag_of(in, "parse_special").value_or(true);
  std::optional<std::string> pair;
  if (const Value* second = in.find("pair"); second && !second->is_null()) pair = text_of(in, "pair");
  text::Encoding encoding = tokenizer_->encode_full(text_of(in, "text"), pair, options);
  const bool masks = flag_of(in, "masks").value_or(false);
  out = written(encoding, masks);
  if (flag_of(in, "overflowing").value_or(false)) {
    Value rest = Value::list();
    for (const text::Encoding& each : encoding.overflowing) rest.items.push_back(written(each, masks));
    out.set("overflowing", std::move(rest));
  }
  return to_json(out);
} catch (const std::exception& error) {
  return failed(error);
}

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
