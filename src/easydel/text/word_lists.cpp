// Vocabularies in plain text: BERT's vocab.txt, RWKV's lists, GPT-2's vocab.json with merges.txt.
#include <algorithm>
#include <charconv>

#include "easydel/base/error.h"
#include "easydel/text/byte_level.h"
#include "easydel/text/formats.h"
#include "easydel/text/json_fields.h"

namespace easydel::text {
namespace {

constexpr const char* again = "fetch the tokenizer again";

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

std::string named(const Value& config, std::string_view key, const std::string& fallback) {
  const Value* value = config.find(key);
  if (value && value->is_map()) value = value->find("content");
  return value && value->is_text() ? value->scalar : fallback;
}

// The bytes of a Python literal: 'x', "x", b'\xff' with its escapes.
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
        out += static_cast<char>(value);
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
  size_t last = line.rfind(' '), first = static_cast<size_t>(rest - line.data());
  if (error != std::errc() || out.id < 0 || last == std::string_view::npos || first >= last || line[first] != ' ')
    return std::nullopt;
  int64_t length = -1;
  std::from_chars(line.data() + last + 1, line.data() + line.size(), length);
  auto bytes = python_literal(line.substr(first + 1, last - first - 1));
  if (!bytes || static_cast<int64_t>(bytes->size()) != length) return std::nullopt;
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
      refuse(name, str("line ", number, " is not an id, a Python literal and its length in bytes"), again);
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

ReadTokenizer read_word_list(std::string_view bytes, const Value& config, const std::string& name) {
  ModelData data;
  TokenId next = 0;
  each_line(bytes, [&](std::string_view line) { data.vocabulary.add(line, next++); });
  if (!next) refuse(name, "has no tokens", again);
  std::string unknown = named(config, "unk_token", "[UNK]"), cls = named(config, "cls_token", "[CLS]"),
              sep = named(config, "sep_token", "[SEP]");
  Value options = Value::map();
  options.set("unk_token", Value::text(unknown));
  bool lower = bool_field(config, "do_lower_case", true);
  Value normalizer = Value::map();
  normalizer.set("type", Value::text("BertNormalizer"));
  normalizer.set("clean_text", Value::boolean(true));
  normalizer.set("handle_chinese_chars", Value::boolean(bool_field(config, "tokenize_chinese_chars", true)));
  normalizer.set("lowercase", Value::boolean(lower));
  normalizer.set("strip_accents", Value::boolean(bool_field(config, "strip_accents", lower)));
  ReadTokenizer out;
  set_steps(out.parts, to_json(normalizer), R"({"type": "BertPreTokenizer"})",
            R"({"type": "WordPiece", "prefix": "##", "cleanup": true})");
  std::vector<AddedToken> added;
  for (const std::string& token :
       {named(config, "pad_token", "[PAD]"), unknown, cls, sep, named(config, "mask_token", "[MASK]")})
    if (data.vocabulary.find(token) >= 0) added.push_back(special_token(token));
  auto id_of = [&](const std::string& token) -> std::optional<TokenId> {
    TokenId id = data.vocabulary.find(token);
    return id < 0 ? std::nullopt : std::optional(id);
  };
  out.unk = id_of(unknown);
  out.pad = id_of(named(config, "pad_token", "[PAD]"));
  auto begin = id_of(cls), end = id_of(sep);
  if (begin && end) {
    Value processor = parse_json(R"({"type": "BertProcessing", "sep": [], "cls": []})");
    processor.find("sep")->items = {Value::text(sep), Value::integer(*end)};
    processor.find("cls")->items = {Value::text(cls), Value::integer(*begin)};
    out.parts.post_processor = make_post_processor(processor);
  }
  out.parts.model = make_word_piece(options, std::move(data));
  out.parts.added.add(added, out.parts.model->vocabulary(), nullptr);
  return out;
}

ReadTokenizer read_vocabulary_and_merges(std::string_view vocab, std::string_view merges, const Value& config,
                                         const std::string& name) {
  std::string type = named(config, "tokenizer_class", "GPT2Tokenizer");
  if (type.ends_with("Fast")) type.resize(type.size() - 4);
  bool clip = type == "CLIPTokenizer", qwen = type == "Qwen2Tokenizer";
  bool roberta = type == "RobertaTokenizer" || type == "LongformerTokenizer" || type == "BartTokenizer" ||
                 type == "LEDTokenizer" || type == "BlenderbotTokenizer";
  // The file becomes a tokenizer.json, which is what transformers' conversion writes.
  Value model = parse_json(R"({"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
    "end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false, "ignore_merges": false, "vocab": {}, "merges": []})");
  *model.find("vocab") = parse_json(vocab, name);
  each_line(merges, [&](std::string_view line) {
    if (line.empty() || line.starts_with("#version")) return;
    model.find("merges")->items.push_back(Value::text(std::string(line)));
  });
  std::string end = named(config, "eos_token", roberta ? "</s>" : "<|endoftext|>"),
              begin = named(config, "bos_token",
                            roberta ? "<s>"
                            : clip  ? "<|startoftext|>"
                                    : end);
  Value file = Value::map();
  std::string prefix = bool_field(config, "add_prefix_space", false) ? "true" : "false";
  std::string level =
      R"({"type": "ByteLevel", "add_prefix_space": )" + prefix + R"(, "trim_offsets": true, "use_regex": true})";
  file.set("decoder", parse_json(R"({"type": "ByteLevel"})"));
  if (qwen) {
    Value split = parse_json(R"({"type": "Split", "pattern": {}, "behavior": "Isolated", "invert": false})");
    split.find("pattern")->set("Regex", Value::text(std::string(qwen2_pattern)));
    Value steps = parse_json(R"({"type": "Sequence", "pretokenizers": []})");
    steps.find("pretokenizers")->items = {
        split,
        parse_json(R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false})")};
    file.set("normalizer", parse_json(R"({"type": "NFC"})"));
    file.set("pre_tokenizer", steps);
  } else if (clip) {
    *model.find("end_of_word_suffix") = Value::text("</w>");
    *model.find("unk_token") = Value::text(end);
    file.set("normalizer", parse_json(R"({"type": "Sequence", "normalizers": [{"type": "NFC"},
      {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "}, {"type": "Lowercase"}]})"));
    file.set("pre_tokenizer", parse_json(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"},
       "behavior": "Removed", "invert": true},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]})"));
  } else {
    file.set("pre_tokenizer", parse_json(level));
  }
  const Value* ids = model.find("vocab");
  auto id_of = [&](const std::string& token) -> std::optional<int64_t> {
    const Value* id = ids->find(token);
    return id ? id->as_int() : std::nullopt;
  };
  auto first = id_of(begin), last = id_of(end);
  if ((roberta || clip) && first && last) {
    Value processor = parse_json(R"({"type": "RobertaProcessing", "sep": [], "cls": [], "trim_offsets": true})");
    if (clip) processor.set("trim_offsets", Value::boolean(false));
    processor.set("add_prefix_space", Value::boolean(prefix == "true"));
    processor.find("sep")->items = {Value::text(end), Value::integer(*last)};
    processor.find("cls")->items = {Value::text(begin), Value::integer(*first)};
    file.set("post_processor", processor);
  } else if (!qwen) {
    file.set(
        "post_processor",
        parse_json(R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true})"));
  }
  file.set("model", std::move(model));
  ReadTokenizer out;
  out.parts = parse_tokenizer_json(to_json(file), name);
  std::vector<AddedToken> added;
  for (const std::string& token : {begin, end, named(config, "unk_token", ""), named(config, "pad_token", "")})
    if (!token.empty() && out.parts.model->vocabulary().find(token) >= 0) added.push_back(special_token(token));
  out.parts.added.add(added, out.parts.model->vocabulary(), out.parts.normalizer.get());
  if (first) out.bos = static_cast<TokenId>(*first);
  if (last) out.eos = static_cast<TokenId>(*last);
  return out;
}

}  // namespace easydel::text
