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
// Called before a template is rendered: many fail at a list of parts without saying why.
void refuse_media(const Value& messages) {
  for (size_t i = 0; i < messages.items.size(); ++i) {
    const Value& message = messages.items[i];
    const Value* const content = message.is_map() ? message.find("content") : nullptr;
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

// The tokens [first, last) of a span of characters. A token belongs to the span that its first character is in. Offsets
// may exclude blanks, so a span begins with the first token at or after its beginning.
std::pair<size_t, size_t> tokens_in(const std::vector<std::pair<int64_t, int64_t>>& offsets,
                                    const std::pair<int64_t, int64_t>& span) {
  const auto [begin, end] = span;
  const auto none = int64_t(offsets.size());
  const auto token_at = [&](int64_t character) {
    return std::find_if(offsets.begin(), offsets.end(),
                        [&](auto& one) { return one.first <= character && character < one.second; }) -
           offsets.begin();
  };
  if (end <= begin) return {0, 0};
  auto first = token_at(begin), last = token_at(end - 1);
  for (int64_t at = begin; first == none && at < end; ++at) first = token_at(at);
  for (int64_t at = end - 1; last == none && at >= begin; --at) last = token_at(at);
  while (last + 1 < none && offsets[size_t(last + 1)] == offsets[size_t(last)]) ++last;
  return {size_t(first), size_t(std::min(last + 1, none))};
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
  refuse_media(messages);
  return tokenizer_->encode(text(messages, options), {.add_special_tokens = false});
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

Spans ChatRenderer::spans_in(const Rendering& rendering, const Value& messages, const ChatOptions& options) const {
  if (marks_) return rendering.generation_spans;
  const auto eos = tokenizer_->eos_id();
  const auto traced = assistant_spans(messages, rendering, !options.add_generation_prompt, header(),
                                      eos ? tokenizer_->token_of(*eos) : "");
  return traced ? *traced : proven_spans(messages, options, rendering.text);
}

RenderedChat ChatRenderer::with_mask(const Value& messages, const ChatOptions& options) const {
  refuse_media(messages);
  Rendering rendering = render(messages, options, !marks_);
  const Spans spans = spans_in(rendering, messages, options);
  Encoding encoding = tokenizer_->encode_full(rendering.text, std::nullopt, {.add_special_tokens = false});
  RenderedChat out{std::move(rendering.text), std::move(encoding.ids), {}, {}};
  out.assistant_mask.assign(out.ids.size(), 0);
  for (const auto& span : spans) {
    const auto [first, last] = tokens_in(encoding.offsets, span);
    for (size_t i = first; i < last; ++i) out.assistant_mask[i] = 1;
    out.assistant_spans.emplace_back(first, last);
  }
  return out;
}

RenderedTurns ChatRenderer::with_turns(const Value& messages, const ChatOptions& options) const {
  refuse_media(messages);
  const Rendering rendering = render(messages, options, true);
  const Spans spans = spans_in(rendering, messages, options);
  Encoding encoding = tokenizer_->encode_full(rendering.text, std::nullopt, {.add_special_tokens = false});
  RenderedTurns out;
  out.text = to_utf32(rendering.text);
  out.ids = std::move(encoding.ids);
  out.offsets = std::move(encoding.offsets);
  for (const TokenId id : out.ids) out.special.push_back(tokenizer_->is_special(id));
  out.messages.assign(out.ids.size(), -1);
  out.authors.assign(out.ids.size(), -1);
  out.characters.assign(messages.items.size(), {0, 0});

  Spans whole(messages.items.size(), {0, 0});  // of each message with its header
  const auto extend = [](std::pair<int64_t, int64_t>& range, int64_t begin, int64_t end) {
    if (range.first == range.second)
      range = {begin, end};
    else
      range = {std::min(range.first, begin), std::max(range.second, end)};
  };
  for (const WrittenPiece& piece : rendering.pieces)
    if (piece.message >= 0) extend(whole.at(size_t(piece.message)), piece.begin, piece.end);
  const auto write = [&](std::vector<int32_t>& owners, const std::pair<int64_t, int64_t>& span, size_t message) {
    const auto [first, last] = tokens_in(out.offsets, span);
    for (size_t i = first; i < last; ++i) owners[i] = int32_t(message);
  };
  for (size_t i = 0; i < whole.size(); ++i) write(out.messages, whole[i], i);

  std::vector<size_t> assistants;
  for (size_t i = 0; i < messages.items.size(); ++i)
    if (is_assistant(messages.items[i])) assistants.push_back(i);
  for (size_t s = 0; s < spans.size(); ++s) {
    const auto own = std::ranges::find_if(
        assistants, [&](size_t i) { return whole[i].first <= spans[s].first && spans[s].first < whole[i].second; });
    if (own == assistants.end() && spans.size() != assistants.size())
      refuse("chat template", "which of the assistant's messages a part of the text belongs to cannot be found",
             "mark each with {% generation %} in the template, or train on all tokens");
    const size_t message = own == assistants.end() ? assistants[s] : *own;
    extend(out.characters[message], spans[s].first, spans[s].second);
    write(out.authors, spans[s], message);
  }
  for (size_t i = 0; i < messages.items.size(); ++i) {
    const Value* const content = messages.items[i].find("content");
    if (is_assistant(messages.items[i]) || !content || !content->is_text() || content->scalar.empty()) continue;
    const auto found = out.find(content->scalar, whole[i].first, whole[i].second);
    if (!found) continue;
    int64_t end = whole[i].second;
    while (end > found->second && (out.text[size_t(end - 1)] == U'\n' || out.text[size_t(end - 1)] == U' ')) --end;
    out.characters[i] = {found->first, end};
    write(out.authors, out.characters[i], i);
  }
  return out;
}

std::optional<std::pair<int64_t, int64_t>> RenderedTurns::find(const std::string& part, int64_t from,
                                                               int64_t to) const {
  const std::u32string wanted = to_utf32(part);
  const size_t at = text.find(wanted, size_t(from));
  if (at == std::u32string::npos || int64_t(at + wanted.size()) > to) return std::nullopt;
  return std::pair(int64_t(at), int64_t(at + wanted.size()));
}

}  // namespace easydel::text
