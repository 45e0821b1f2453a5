// Vocabularies in plain text: word lists (BERT's vocab.txt), vocab.json with merges.txt (GPT-2's), RWKV's lists.
#include <algorithm>
#include <charconv>

#include "easydel/base/error.h"
#include "easydel/text/tokenizers/byte_level.h"
#include "easydel/text/tokenizers/formats.h"
#include "easydel/text/tokenizers/json_fields.h"
#include "easydel/text/tokenizers/vocabulary_classes.h"

namespace easydel::text {
namespace {

template <class Line>
void each_line(std::string_view bytes, Line line) {
  for (size_t begin = 0; begin < bytes.size();) {
    size_t end = std::min(bytes.find('\n', begin), bytes.size());
    std::string_view one = bytes.substr(begin, end - begin);
    begin = end + 1;
    if (one.ends_with('\r')) one.remove_suffix(1);
    line(one);
  }
}

// The bytes of a Python literal: 'x', "x", or b'\xff', with escapes.
std::optional<std::string> python_literal(std::string_view text) {
  bool bytes = text.starts_with('b');
  if (bytes) text.remove_prefix(1);
  if (text.size() < 2 || (text[0] != '\'' && text[0] != '"') || text.back() != text[0]) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i >= text.size()) return std::nullopt;
    auto hex = [&](size_t digits) -> bool {
      uint32_t value = 0;
      if (i + digits >= text.size()) return false;
      auto end = text.data() + i + 1 + digits;
      auto [stop, error] = std::from_chars(text.data() + i + 1, end, value, 16);
      if (error != std::errc() || stop != end || value > 0x10ffff) return false;
      i += digits;
      if (bytes)
        out += char(value);
      else
        append_utf8(out, value);
      return true;
    };
    switch (text[i]) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case '0':
        out += '\0';
        break;
      case '\\':
      case '\'':
      case '"':
        out += text[i];
        break;
      case 'x':
        if (!hex(2)) return std::nullopt;
        break;
      case 'u':
        if (!hex(4)) return std::nullopt;
        break;
      case 'U':
        if (!hex(8)) return std::nullopt;
        break;
      default:
        return std::nullopt;
    }
  }
  return out;
}

struct RwkvLine {
  int64_t id = -1;
  std::string bytes;
};

std::optional<RwkvLine> read_rwkv_line(std::string_view line) {
  RwkvLine out;
  auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), out.id);
  size_t last = line.rfind(' '), first = size_t(rest - line.data());
  if (error != std::errc() || out.id < 0 || last == std::string_view::npos || first >= last || line[first] != ' ')
    return std::nullopt;
  int64_t length = -1;
  std::from_chars(line.data() + last + 1, line.data() + line.size(), length);
  auto bytes = python_literal(line.substr(first + 1, last - first - 1));
  if (!bytes || int64_t(bytes->size()) != length) return std::nullopt;
  out.bytes = std::move(*bytes);
  return out;
}

}  // namespace

bool looks_like_rwkv(std::string_view bytes) {
  std::string_view line = bytes.substr(0, bytes.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return read_rwkv_line(line).has_value();
}

ReadTokenizer read_rwkv(std::string_view bytes, const std::string& name) {
  ModelData data;
  int64_t number = 0;
  each_line(bytes, [&](std::string_view line) {
    ++number;
    if (line.empty()) return;
    auto row = read_rwkv_line(line);
    if (!row || row->id >= 1 << 24)
      refuse(name, str("line ", number, " is not an id, a Python literal and its length in bytes"),
             fetch_tokenizer_again);
    data.vocabulary.add(map_bytes(row->bytes), static_cast<TokenId>(row->id));
  });
  if (!data.vocabulary.has(0)) data.vocabulary.add("<|endoftext|>", 0);
  ReadTokenizer out;
  out.eos = 0;
  out.bos = 0;
  out.parts.model = make_longest_first(std::move(data));
  set_byte_level(out.parts, {});
  if (out.parts.model->vocabulary().find("<|endoftext|>") == 0)
    out.parts.added.add({special_token("<|endoftext|>", 0)}, out.parts.model->vocabulary(), nullptr);
  return out;
}

namespace {

using Key = NamedTokens::Key;
using Trim = VocabularyClass::Trim;

// BERT's normalizer, with the options of the configuration.
std::string bert_normalizer(const Value& config) {
  const bool lower = bool_field(config, "do_lower_case", true);
  Value out = Value::map();
  out.set("type", Value::text("BertNormalizer"));
  out.set("clean_text", Value::boolean(bool_field(config, "clean_text", true)));
  out.set("handle_chinese_chars", Value::boolean(bool_field(config, "tokenize_chinese_chars", true)));
  out.set("lowercase", Value::boolean(lower));
  out.set("strip_accents", Value::boolean(bool_field(config, "strip_accents", lower)));
  return to_json(out);
}

bool takes_prefix(const VocabularyClass& kind, const Value& config) {
  return kind.obeys_prefix && bool_field(config, "add_prefix_space", kind.prefix);
}

// The steps of tokenizer.json before the model, one after the other.
std::string pre_tokenizer_of(const VocabularyClass& kind, const Value& config) {
  const auto word = [](bool flag) { return flag ? "true" : "false"; };
  std::string out = R"({"type": "Sequence", "pretokenizers": [)";
  size_t count = 0;
  each_part(kind.splits, '\n', [&](std::string_view step) { out += str(count++ ? ", " : "", step); });
  if (kind.bytes)
    out += str(count ? ", " : "", R"({"type": "ByteLevel", "trim_offsets": true, "add_prefix_space": )",
               word(takes_prefix(kind, config)), R"(, "use_regex": )", word(kind.uses_regex), "}");
  return out + "]}";
}

// Sets the tokens that the configuration lacks to those of the class, with their options, and then the frame.
void set_tokens(const VocabularyClass& kind, const Value& config, NamedTokens& named, ReadTokenizer& out) {
  const auto id_of = [&](Key key) -> std::optional<TokenId> {
    const TokenId id = out.parts.model->vocabulary().find(named.content(key, kind.named));
    return id < 0 ? std::nullopt : std::optional(id);
  };
  out.bos = id_of(Key::bos);
  out.eos = id_of(Key::eos);
  out.pad = id_of(Key::pad);
  out.unk = id_of(Key::unk);
  each_part(kind.more_special, ' ', [&](std::string_view word) {
    const size_t equals = word.find('=');
    out.special.push_back(
        special_token(string_field(config, word.substr(0, equals), std::string(word.substr(equals + 1)))));
  });
  if (kind.single.empty()) {
    out.parts.post_processor = make_bos_eos(std::nullopt, std::nullopt);
    return;
  }
  const auto steps = [&](std::string_view words) {
    return read_frame(words, named, kind.named,
                      [](std::string_view word, FrameStep& step) { step.token.content = word; });
  };
  out.frame = Frame{steps(kind.single), steps(kind.pair)};
  if (kind.trim == Trim::no || (kind.trim == Trim::as_config && !bool_field(config, "trim_offsets", true))) return;
  out.frame->trim = kind.trim == Trim::with_prefix || (kind.trim != Trim::without_prefix && takes_prefix(kind, config));
}

void name_tokens(const VocabularyClass& kind, const Value& config, NamedTokens& named) {
  named.fill(kind.named);
  const Value* written = config.find(NamedTokens::keys[Key::mask]);
  if (named.tokens[Key::mask] && (!named.given[Key::mask] || (written && written->is_text())))
    named.tokens[Key::mask]->lstrip = kind.mask_takes_blank;
}

}  // namespace

ReadTokenizer read_word_list(std::string_view bytes, const Value& config, std::string_view model_type,
                             NamedTokens& named, const std::string& name) try {
  const VocabularyClass& kind = vocabulary_class(string_field(config, "tokenizer_class", ""), model_type, true);
  name_tokens(kind, config, named);
  ModelData data;
  TokenId next = 0;
  each_line(bytes, [&](std::string_view line) { data.vocabulary.add(line, next++); });
  if (!next) refuse(name, "has no tokens", fetch_tokenizer_again);
  Value options = Value::map();
  options.set("unk_token", Value::text(named.content(Key::unk, kind.named)));
  ReadTokenizer out;
  set_steps(out.parts, bert_normalizer(config), R"({"type": "BertPreTokenizer"})",
            R"({"type": "WordPiece", "prefix": "##", "cleanup": true})");
  out.parts.model = make_word_piece(options, std::move(data));
  set_tokens(kind, config, named, out);
  return out;
} catch (const UserError& error) {
  rethrow_at(name, error);
}

ReadTokenizer read_vocabulary_and_merges(std::string_view vocab, std::string_view merges, const Value& config,
                                         std::string_view model_type, NamedTokens& named, const std::string& name) {
  const VocabularyClass& kind = vocabulary_class(string_field(config, "tokenizer_class", ""), model_type, false);
  name_tokens(kind, config, named);
  // Converts the files to a tokenizer.json, as transformers' class does.
  Value file = Value::map(), model = parse_json(R"({"type": "BPE", "dropout": null, "unk_token": null,
    "continuing_subword_prefix": "", "fuse_unk": false, "byte_fallback": false, "ignore_merges": false})");
  model.set("end_of_word_suffix", Value::text(std::string(kind.suffix)));
  if (kind.has_unknown) model.set("unk_token", Value::text(named.content(Key::unk, kind.named)));
  model.set("vocab", parse_json(vocab, name));
  Value list = Value::list();
  each_line(merges, [&](std::string_view line) {
    if (!line.empty() && !line.starts_with("#version")) list.items.push_back(Value::text(std::string(line)));
  });
  model.set("merges", std::move(list));
  if (!kind.normalizer.empty()) file.set("normalizer", parse_json(kind.normalizer));
  file.set("pre_tokenizer", parse_json(pre_tokenizer_of(kind, config)));
  file.set("decoder",
           parse_json(kind.bytes ? R"({"type": "ByteLevel"})" : R"({"type": "BPEDecoder", "suffix": "</w>"})"));
  file.set("model", std::move(model));
  ReadTokenizer out;
  out.parts = parse_tokenizer_json(to_json(file), name);
  const Value* normalizer = file.find("normalizer");
  out.parts.steps = {normalizer ? to_json(*normalizer) : "", to_json(*file.find("pre_tokenizer")),
                     to_json(*file.find("decoder"))};
  set_tokens(kind, config, named, out);
  return out;
}

}  // namespace easydel::text
