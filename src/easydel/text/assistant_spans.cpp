#include "easydel/text/assistant_spans.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

constexpr std::string_view blanks = " \t\r\n";

bool is_blank(std::string_view text) { return text.find_first_not_of(blanks) == std::string_view::npos; }

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(blanks);
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
}

// A rendered text that can be cut at characters.
class Cut {
 public:
  explicit Cut(const Rendering& rendered) : rendered_(rendered), text_(to_utf32(rendered.text)) {}

  std::string between(int64_t begin, int64_t end) const {
    return to_utf8(std::u32string_view(text_).substr(size_t(begin), size_t(end - begin)));
  }
  // The marker "<|...|>" that begins at a character, in characters; 0: there is none.
  int64_t marker_size(int64_t begin) const {
    constexpr int64_t longest = 64;
    const std::string text = between(begin, std::min(int64_t(text_.size()), begin + longest));
    const size_t end = text.find("|>", 2);
    const bool is_marker = text.starts_with("<|") && end != std::string::npos;
    if (!is_marker || text.substr(2, end - 2).find_first_of(" \t\r\n<>|") != std::string::npos) return 0;
    return count_characters(text.substr(0, end + 2));
  }
  std::string of(const WrittenPiece& piece) const { return between(piece.begin, piece.end); }
  const std::vector<WrittenPiece>& pieces() const { return rendered_.pieces; }

  // The parts that were written for a message; blank ones only if there is nothing else.
  Spans of_message(int64_t index) const {
    Spans all, said;
    for (const WrittenPiece& piece : pieces()) {
      if (piece.message != index) continue;
      if (all.empty() || all.back().second != piece.begin)
        all.emplace_back(piece.begin, piece.end);
      else
        all.back().second = piece.end;
    }
    for (const auto& span : all)
      if (!is_blank(between(span.first, span.second))) said.push_back(span);
    return said.empty() ? all : said;
  }

  // What was written after the last message.
  std::vector<std::string> tail() const {
    std::vector<std::string> out;
    for (const WrittenPiece& piece : pieces()) {
      if (piece.message >= 0)
        out.clear();
      else
        out.push_back(of(piece));
    }
    return out;
  }

 private:
  const Rendering& rendered_;
  std::u32string text_;
};

std::string common_prefix(const std::string& a, const std::string& b) {
  const auto end = std::mismatch(a.begin(), a.begin() + std::ptrdiff_t(std::min(a.size(), b.size())), b.begin()).first;
  return a.substr(0, size_t(end - a.begin()));
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

// Conversations that show how a template writes turns: several of them, one with reasoning, two with tool calls. Some
// templates take contents only as texts, others only as lists of parts.
std::vector<Value> probes(bool lists) {
  const std::string a = lists ? R"([{"type": "text", "text": "a"}])" : R"("a")",
                    b = lists ? R"([{"type": "text", "text": "b"}])" : R"("b")";
  const std::string user = R"({"role": "user", "content": )" + a + "}",
                    assistant = R"({"role": "assistant", "content": )" + b;
  const std::string reasoning = R"(, "reasoning_content": "r", "thinking": "r")";
  const std::string calls =
      R"(, "tool_calls": [{"id": "123456789", "type": "function", "function": {"name": "f", "arguments": {}}}])";
  std::vector<Value> out;
  for (const std::string& text : {
           "[" + user + "," + assistant + "}," + user + "," + assistant + "}]",
           "[" + user + "," + assistant + reasoning + "}]",
           "[" + user + "," + assistant + calls + "}]",
           "[" + user + R"(,{"role": "assistant", "content": "")" + reasoning + calls + "}]",
       })
    out.push_back(parse_json(text));
  return out;
}

// One turn of the assistant in a probe.
struct Turn {
  std::string text;
  std::vector<size_t> boundaries;  // bytes of `text` after which another statement writes
};

std::vector<Turn> turns_of(const Value& messages, const Rendering& rendered) {
  const Cut cut(rendered);
  std::vector<Turn> out;
  for (size_t i = 0; i < messages.items.size(); ++i) {
    if (!is_assistant(messages.items[i])) continue;
    const Spans spans = cut.of_message(int64_t(i));
    if (spans.empty()) continue;
    Turn turn;
    for (const WrittenPiece& piece : cut.pieces()) {
      if (piece.begin < spans[0].first || piece.end > spans[0].second) continue;
      turn.text += cut.of(piece);
      turn.boundaries.push_back(turn.text.size());
    }
    out.push_back(std::move(turn));
  }
  return out;
}

// What a generation prompt adds after a user's message.
std::string generation_prompt(const TraceTemplate& trace, const Value& first) {
  const Rendering with = trace(first, true), without = trace(first, false);
  const std::vector<std::string> asked = Cut(with).tail(), plain = Cut(without).tail();
  size_t same = 0;
  while (same < std::min(asked.size(), plain.size()) && asked[same] == plain[same]) ++same;
  std::string out;
  for (size_t i = same; i < asked.size(); ++i) out += asked[i];
  return out;
}

std::string header_by(const TraceTemplate& trace, const OutputFormat& format, const std::vector<Value>& probes) {
  Value first = Value::list();
  first.items.push_back(probes[0].items[0]);
  const std::string prompt = generation_prompt(trace, first);
  std::string header = prompt.substr(0, prompt.size() - begun_answer(prompt, format).size());
  bool begins = false, opens_again = false;
  std::vector<Turn> turns;
  for (const Value& probe : probes) {
    std::vector<Turn> more;
    try {
      more = turns_of(probe, trace(probe, false));
    } catch (const UserError&) {
      if (&probe == &probes[0]) throw;
      continue;  // the template has no tools, or no reasoning
    }
    std::ranges::move(more, std::back_inserter(turns));
  }
  for (const Turn& turn : turns) {
    header = common_prefix(header, turn.text);
    begins |= turn.text.starts_with(prompt);
  }
  if (header.empty() || !begins) return "";
  for (const Turn& turn : turns) opens_again |= count_of(turn.text, header) > 1;
  if (opens_again) return "";
  const size_t words = header.find_last_not_of(blanks) + 1;
  size_t end = header.size();
  for (const Turn& turn : turns)
    if (std::ranges::find(turn.boundaries, header.size()) == turn.boundaries.end())
      for (const size_t boundary : turn.boundaries)
        if (boundary >= words) end = std::min(end, boundary);
  return header.substr(0, end);
}

// What a template must have written of a content: texts without the reasoning that some leave out of earlier turns.
bool says(const std::string& text, const Value& content) {
  const auto has = [&](std::string_view part) {
    if (const size_t end = part.rfind("</think>"); end != std::string_view::npos) part.remove_prefix(end + 8);
    return text.find(trimmed(part)) != std::string::npos;
  };
  if (content.is_text()) return has(content.scalar);
  return std::ranges::all_of(content.items, [&](const Value& part) {
    const Value* const words = part.is_map() ? part.find("text") : nullptr;
    return !words || !words->is_text() || has(words->scalar);
  });
}

}  // namespace

bool is_assistant(const Value& message) {
  const Value* const role = message.find("role");
  return role && (role->scalar == "assistant" || role->scalar == "model");
}

std::string assistant_header(const TraceTemplate& trace, const OutputFormat& format) {
  for (const bool lists : {false, true}) try {
      return header_by(trace, format, probes(lists));
    } catch (const UserError&) {  // the template does not take such contents
    }
  return "";
}

std::optional<Spans> assistant_spans(const Value& messages, const Rendering& rendered, bool ends,
                                     const std::string& header, const std::string& eos) {
  const Cut cut(rendered);
  Spans out;
  for (size_t i = 0; i < messages.items.size(); ++i) {
    if (!is_assistant(messages.items[i])) continue;
    Spans spans = cut.of_message(int64_t(i));
    std::string text;
    for (const auto& [begin, end] : spans) text += cut.between(begin, end);
    const Value* const content = messages.items[i].find("content");
    // Some templates leave out what is said next to a call.
    const Value* const calls = messages.items[i].find("tool_calls");
    const bool may_be_silent = calls && !calls->items.empty();
    if (spans.empty() || (content && !may_be_silent && !says(text, *content))) return std::nullopt;
    if (text.starts_with(header)) spans.front().first += count_characters(header);
    if (ends && i + 1 == messages.items.size()) {  // what ends the conversation, for example the end token
      std::string rest;
      for (const std::string& piece : cut.tail()) rest += piece;
      if (!is_blank(rest)) spans.back().second += count_characters(rest);
      text += rest;
    }
    const size_t words = text.find_last_not_of(' ') + 1;
    if (!eos.empty() && std::string_view(text).substr(0, words).ends_with(eos))
      spans.back().second -= int64_t(text.size() - words);
    else if (header.starts_with("<|") && !trimmed(text).ends_with("|>") && i + 1 < messages.items.size())
      spans.back().second +=
          cut.marker_size(spans.back().second);  // GLM: nothing else ends this turn, so it is learned
    out.insert(out.end(), spans.begin(), spans.end());
  }
  return out;
}

}  // namespace easydel::text
