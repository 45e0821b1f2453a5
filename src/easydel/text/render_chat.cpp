// The context of a chat template, and masks from markers or from prefixes.
#include "easydel/text/render_chat.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

std::string source_of(const Tokenizer& tokenizer, std::optional<std::string> source) {
  if (!source) source = tokenizer.chat_template();
  if (!source) {
    std::string where = tokenizer.files().empty() ? "tokenizer" : tokenizer.files()[0].parent_path().string();
    refuse(
        where, "has no chat template",
        "give one: model.chat_template in a run, --template on the command line, or chat_template.jinja in the folder");
  }
  return *source;
}

// A message's reasoning is passed under three names, because templates read different ones (transformers'
// _alias_reasoning_fields).
Value aliased(const Value& message) {
  Value out = message;
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const Value* reasoning = message.find(name);
    if (!reasoning || reasoning->is_null()) continue;
    Value copy = *reasoning;
    if (!out.find("thinking")) out.set("thinking", copy);
    out.set("reasoning_content", std::move(copy));
    break;
  }
  return out;
}

Value first_of(const Value& messages, size_t count) {
  Value out = Value::list();
  out.items.assign(messages.items.begin(), messages.items.begin() + int64_t(count));
  return out;
}

std::string ordinal(size_t index) { return "message " + std::to_string(index + 1); }

// Token ids of a template leave out what an image or a sound says, so a model would answer as if it were not there.
void refuse_media(const Value& messages) {
  for (size_t i = 0; i < messages.items.size(); ++i) {
    const Value* const content = messages.items[i].find("content");
    if (!content || !content->is_list()) continue;
    for (const Value& part : content->items) {
      const Value* const type = part.is_map() ? part.find("type") : nullptr;
      const std::string kind = type && type->is_text() ? type->scalar : "";
      for (const char* medium : {"image", "video", "audio"})
        if (kind.starts_with(medium) || kind.starts_with(str("input_", medium)))
          refuse("messages", str(ordinal(i), " has a part of type '", kind, "', which the model cannot use"),
                 "only the text part of models is built; leave the part out");
    }
  }
}

}  // namespace

ChatRenderer::ChatRenderer(std::shared_ptr<const Tokenizer> tokenizer, std::optional<std::string> source)
    : tokenizer_(std::move(tokenizer)), source_(source_of(*tokenizer_, std::move(source))), template_(source_) {
  marks_ = template_.marks_generation();
}

bool ChatRenderer::marks_generation() const { return marks_; }

Rendering ChatRenderer::render(const Value& messages, const ChatOptions& options, bool traced) const {
  if (!messages.is_list()) refuse("messages", "is not a list", "[{\"role\": \"user\", \"content\": \"...\"}]");
  Value context = Value::map(), all = Value::list();
  for (size_t i = 0; i < messages.items.size(); ++i) {
    if (!messages.items[i].is_map())
      refuse("messages", ordinal(i) + " is not a map", "{\"role\": ..., \"content\": ...}");
    all.items.push_back(aliased(messages.items[i]));
  }
  auto special = [&](const char* name, std::optional<TokenId> id) {
    if (id) context.set(name, Value::text(tokenizer_->token_of(*id)));
  };
  special("bos_token", tokenizer_->bos_id());
  special("eos_token", tokenizer_->eos_id());
  special("unk_token", tokenizer_->unk_id());
  special("pad_token", tokenizer_->pad_id());
  context.set("messages", std::move(all));
  context.set("tools", options.tools);
  context.set("documents", Value());
  context.set("add_generation_prompt", Value::boolean(options.add_generation_prompt));
  for (auto& [name, value] : options.extra.entries) context.set(name, value);
  return template_.render(context, traced);
}

std::string ChatRenderer::text(const Value& messages, const ChatOptions& options) const {
  return render(messages, options).text;
}

std::vector<TokenId> ChatRenderer::ids(const Value& messages, const ChatOptions& options) const {
  const std::string rendered = text(messages, options);
  refuse_media(messages);
  return tokenizer_->encode(rendered, {.add_special_tokens = false});
}

const std::string& ChatRenderer::header() const {
  std::call_once(header_once_, [this] {
    header_ = assistant_header(
        [this](const Value& messages, bool add_generation_prompt) {
          ChatOptions options;
          options.add_generation_prompt = add_generation_prompt;
          return render(messages, options, true);
        },
        detect_output_format(source_));
  });
  return header_;
}

Spans ChatRenderer::proven_spans(const Value& messages, const ChatOptions& options, const std::string& whole) const {
  Spans spans;
  auto part = [&](size_t count, bool prompt, const std::string& what) {
    ChatOptions changed = options;
    changed.add_generation_prompt = prompt;
    std::string text;
    try {
      text = render(first_of(messages, count), changed).text;
    } catch (const UserError& error) {
      refuse("chat template",
             str("the assistant's part of ", ordinal(count - !prompt),
                 " cannot be found, because the template refuses ", what, ": ", error.what()),
             "mark it with {% generation %} in the template, or train on all tokens");
    }
    if (!whole.starts_with(text))
      refuse("chat template",
             str("the assistant's part of ", ordinal(count - !prompt), " cannot be found, because the template writes ",
                 what, " differently when more messages follow"),
             "mark it with {% generation %} in the template, or train on all tokens");
    return text;
  };
  for (size_t i = 0; i < messages.items.size(); ++i) {
    if (!is_assistant(messages.items[i])) continue;
    std::string before = part(i, true, "the messages before it");
    std::string through = part(i + 1, false, "the messages up to it");
    int64_t begin = count_characters(before);
    if (through.size() > before.size())
      spans.emplace_back(begin, begin + count_characters(through.substr(before.size())));
  }
  return spans;
}

RenderedChat ChatRenderer::with_mask(const Value& messages, const ChatOptions& options) const {
  Rendering rendering = render(messages, options, !marks_);
  refuse_media(messages);
  Spans spans = rendering.generation_spans;
  if (!marks_) {
    const auto eos = tokenizer_->eos_id();
    const auto traced = assistant_spans(messages, rendering, !options.add_generation_prompt, header(),
                                        eos ? tokenizer_->token_of(*eos) : "");
    spans = traced ? *traced : proven_spans(messages, options, rendering.text);
  }
  Encoding encoding = tokenizer_->encode_full(rendering.text, std::nullopt, {.add_special_tokens = false});
  RenderedChat out{std::move(rendering.text), std::move(encoding.ids), {}};
  out.assistant_mask.assign(out.ids.size(), 0);
  const auto& offsets = encoding.offsets;
  auto token_at = [&](int64_t character) {
    return std::find_if(offsets.begin(), offsets.end(),
                        [&](auto& span) { return span.first <= character && character < span.second; }) -
           offsets.begin();
  };
  for (auto [begin, end] : spans) {
    if (end <= begin) continue;
    // A token belongs to the assistant if its first character does. Offsets may exclude blanks, so a span begins with
    // the first token at or after its beginning.
    auto first = token_at(begin), last = token_at(end - 1);
    for (int64_t at = begin; first == int64_t(offsets.size()) && at < end; ++at) first = token_at(at);
    for (int64_t at = end - 1; last == int64_t(offsets.size()) && at >= begin; --at) last = token_at(at);
    while (last + 1 < int64_t(offsets.size()) && offsets[last + 1] == offsets[last]) ++last;
    for (auto i = first; i <= last && i < int64_t(out.ids.size()); ++i) out.assistant_mask[i] = 1;
  }
  return out;
}

}  // namespace easydel::text
