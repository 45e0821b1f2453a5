// Tokenizers in GGUF files. Source of the meaning of tokenizer.ggml.model: ggml-org/llama.cpp src/llama-vocab.cpp.
#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/text/tokenizers/byte_level.h"
#include "easydel/text/tokenizers/formats.h"
#include "easydel/text/tokenizers/gguf_patterns.h"
#include "easydel/text/tokenizers/json_fields.h"
#include "easydel/text/tokenizers/sentencepiece_steps.h"

namespace easydel::text {
namespace {

constexpr const char* fetch_file_again = "fetch the file again";
constexpr std::string_view gguf_blank = "\xE2\x96\x81";

struct Gguf {
  const weights::GgufMetadata& file;
  std::vector<std::string> tokens;
  std::vector<PieceKind> kinds;
  std::vector<double> scores;

  bool flag(std::string_view key, bool fallback) const {
    return file.boolean(str("tokenizer.ggml.", key)).value_or(fallback);
  }
  std::optional<TokenId> id(std::string_view key, std::optional<TokenId> fallback = std::nullopt) const {
    auto number = file.integer(str("tokenizer.ggml.", key));
    if (number && *number >= 0 && *number < int64_t(tokens.size())) return static_cast<TokenId>(*number);
    if (fallback && *fallback < static_cast<TokenId>(tokens.size())) return fallback;
    return std::nullopt;
  }
  ModelData data() const {
    ModelData out;
    out.vocabulary.reserve(tokens.size(), tokens.size() * 8);
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (out.vocabulary.find(tokens[i]) >= 0)
        refuse(file.name(), str("has the token '", tokens[i], "' twice"), fetch_file_again);
      out.vocabulary.add(tokens[i], static_cast<TokenId>(i));
    }
    out.scores = scores;
    return out;
  }
};

Gguf read_lists(const weights::GgufMetadata& file) {
  Gguf out{file, {}, {}, {}};
  auto tokens = file.texts("tokenizer.ggml.tokens");
  if (tokens.empty()) refuse(file.name(), "has no tokens", "give a file with a vocabulary");
  if (tokens.size() >= 1 << 24) refuse(file.name(), str("has ", tokens.size(), " tokens"), "at most 16777215");
  for (size_t i = 0; i < tokens.size(); ++i)
    out.tokens.push_back(tokens[i].empty() ? str("[EMPTY_", i, "]") : std::string(tokens[i]));
  auto kinds = file.integers("tokenizer.ggml.token_type");
  out.scores = file.numbers("tokenizer.ggml.scores");
  if ((!kinds.empty() && kinds.size() < tokens.size()) || (!out.scores.empty() && out.scores.size() < tokens.size()))
    refuse(file.name(), "has fewer scores or types than tokens", fetch_file_again);
  out.scores.resize(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    int64_t kind = kinds.empty() ? 1 : kinds[i];
    out.kinds.push_back(kind >= 1 && kind <= 6 ? static_cast<PieceKind>(kind) : PieceKind::unused);
  }
  return out;
}

void make_byte_pairs(const Gguf& gguf, ReadTokenizer& out, bool& adds_bos) {
  using Pieces = GgufPattern::Pieces;
  const std::string& name = gguf.file.name();
  std::string model(gguf.file.text("tokenizer.ggml.model").value_or(""));
  std::string pre(gguf.file.text("tokenizer.ggml.pre").value_or(""));
  GgufPattern pattern = gguf_pattern(model == "gemma4" ? "gemma4" : pre, name);
  adds_bos = pattern.adds_bos;
  ModelData data = gguf.data();
  auto merges = gguf.file.texts("tokenizer.ggml.merges");
  if (merges.empty() && pre != "kimi-k2") refuse(name, "has no merges", fetch_file_again);
  if (merges.empty()) {
    TextBpeRules rules;
    rules.mapped_bytes = rules.whole_first = true;
    for (size_t i = 0; i < gguf.tokens.size(); ++i)
      rules.ranks.push_back(gguf.kinds[i] == PieceKind::normal ? uint32_t(i) : UINT32_MAX);
    set_byte_level(out.parts, pattern.patterns);
    out.parts.model = make_text_bpe(std::move(rules), std::move(data));
    return;
  }
  for (std::string_view merge : merges) {
    size_t at = merge.find(' ', 1);
    if (at == std::string_view::npos) continue;
    std::string_view left = merge.substr(0, at), right = merge.substr(at + 1);
    // Skips merges whose result is not a token, as llama.cpp never finds them.
    if (data.vocabulary.find(left) >= 0 && data.vocabulary.find(right) >= 0 &&
        data.vocabulary.find(std::string(left) + std::string(right)) >= 0)
      data.merges.emplace_back(left, right);
  }
  Value options = Value::map();
  options.set("ignore_merges", Value::boolean(pattern.ignore_merges));
  if (pattern.pieces != Pieces::mapped_bytes) options.set("byte_fallback", Value::boolean(true));
  if (pattern.pieces == Pieces::words) {
    const bool lower = gguf.flag("normalizer.lowercase", false);
    set_steps(out.parts, lower ? R"({"type": "Lowercase"})" : "", R"({"type": "WhitespaceSplit"})",
              R"({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]})");
  } else if (pattern.pieces == Pieces::escaped_blanks) {
    set_steps(out.parts, R"({"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"})",
              R"({"type": "Split", "pattern": {"Regex": "[^\\n]+|[\\n]+"}, "behavior": "Isolated", "invert": false})",
              R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                  {"type": "ByteFallback"}, {"type": "Fuse"}]})");
  } else {
    set_byte_level(out.parts, pattern.patterns);
  }
  out.parts.model = make_bpe(options, std::move(data), pattern.pieces == Pieces::mapped_bytes);
}

void make_pieces(const Gguf& gguf, ReadTokenizer& out, bool unigram) {
  SentencePieceRules rules;
  rules.add_dummy_prefix = gguf.flag("add_space_prefix", !unigram);
  rules.remove_extra_whitespaces = gguf.flag("remove_extra_whitespaces", false);
  const auto map = gguf.file.bytes("tokenizer.ggml.precompiled_charsmap");
  const bool has_map = unigram && !map.empty();
  if (has_map) rules.charsmap = Charsmap(map);
  out.unk = gguf.id("unknown_token_id", unigram ? 2 : 0);
  if (out.unk) rules.unknown = gguf.tokens[size_t(*out.unk)];
  if (unigram) {
    UnigramRules model;
    model.unknown = out.unk.value_or(-1);
    model.user_defined_is_zero = true;
    model.kinds = gguf.kinds;
    out.parts.model = make_unigram(std::move(model), gguf.data());
  } else {
    TextBpeRules model = ranks_by_score(gguf.scores);
    model.kinds = gguf.kinds;
    model.all_kinds = true;
    model.byte_fallback = true;
    model.unknown = out.unk.value_or(-1);
    out.parts.model = make_text_bpe(std::move(model), gguf.data());
  }
  out.parts.steps = sentencepiece_step_texts(rules, has_map ? std::string_view(map) : std::string_view(), false);
  out.parts.decoder = make_sentencepiece_decoder(rules);
  out.parts.normalizer = make_sentencepiece_normalizer(std::move(rules));
  out.parts.cutter = Cutter{};
}

// There, words begin with U+2581 and continuations have no mark: the reverse of WordPiece's convention.
void make_word_pieces(Gguf& gguf, ReadTokenizer& out) {
  for (size_t i = 0; i < gguf.tokens.size(); ++i) {
    std::string& token = gguf.tokens[i];
    if (gguf.kinds[i] == PieceKind::control || gguf.kinds[i] == PieceKind::unknown ||
        (token.starts_with('[') && token.ends_with(']')))
      continue;
    token = token.starts_with(gguf_blank) ? token.substr(gguf_blank.size()) : "##" + token;
  }
  // If two tokens would get the same text, the later one keeps its name from the file.
  std::vector<std::string> seen = gguf.tokens;
  std::sort(seen.begin(), seen.end());
  if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) {
    Vocabulary known;
    for (size_t i = 0; i < gguf.tokens.size(); ++i) {
      if (known.find(gguf.tokens[i]) >= 0) gguf.tokens[i] = str("[DUPLICATE_", i, "]");
      known.add(gguf.tokens[i], static_cast<TokenId>(i));
    }
  }
  bool lower = gguf.flag("normalizer.lowercase", true);
  Value normalizer = Value::map();
  normalizer.set("type", Value::text("BertNormalizer"));
  normalizer.set("lowercase", Value::boolean(lower));
  normalizer.set("strip_accents", Value::boolean(gguf.flag("normalizer.strip_accents", lower)));
  set_steps(out.parts, to_json(normalizer), R"({"type": "BertPreTokenizer"})",
            R"({"type": "WordPiece", "prefix": "##", "cleanup": true})");
  out.unk = gguf.id("unknown_token_id", 100);
  Value options = Value::map();
  if (out.unk) options.set("unk_token", Value::text(gguf.tokens[size_t(*out.unk)]));
  out.parts.model = make_word_piece(options, gguf.data());
}

// \t \n \r \xHH and \ before anything else.
std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    char c = text[++i];
    if (c == 'x' && i + 2 < text.size()) {
      out += char(std::strtol(std::string(text.substr(i + 1, 2)).c_str(), nullptr, 16));
      i += 2;
    } else {
      out += c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
    }
  }
  return out;
}

void make_rwkv(const Gguf& gguf, ReadTokenizer& out) {
  ModelData data;
  for (size_t i = 0; i < gguf.tokens.size(); ++i) {
    bool plain = gguf.kinds[i] == PieceKind::normal;
    data.vocabulary.add(plain ? map_bytes(unescaped(gguf.tokens[i])) : gguf.tokens[i], static_cast<TokenId>(i));
  }
  out.parts.model = make_longest_first(std::move(data));
  set_byte_level(out.parts, {});
}

}  // namespace

ReadTokenizer read_gguf(const weights::GgufMetadata& file) try {
  auto model = file.text("tokenizer.ggml.model");
  if (!model) refuse(file.name(), "has no vocabulary (tokenizer.ggml.model)", "give a GGUF file with one");
  Gguf gguf = read_lists(file);
  ReadTokenizer out;
  bool adds_bos = false, adds_eos = false, words = *model == "bert";
  std::optional<TokenId> bos, eos;
  if (*model == "gpt2" || *model == "gemma4" || *model == "whitespace") {
    make_byte_pairs(gguf, out, adds_bos);
  } else if (*model == "llama") {
    make_pieces(gguf, out, false);
    adds_bos = true;
    bos = 1, eos = 2;
  } else if (*model == "t5") {
    make_pieces(gguf, out, true);
    adds_eos = true;
    eos = 1;
  } else if (words) {
    make_word_pieces(gguf, out);
  } else if (*model == "rwkv") {
    make_rwkv(gguf, out);
  } else {
    refuse(file.name(), str("has a vocabulary of the kind '", *model, "', which is not built yet"),
           "built: gpt2, llama, bert, t5, rwkv, gemma4, whitespace");
  }
  std::string title(file.text("general.name").value_or(""));
  for (char& c : title) c = char(std::tolower(static_cast<unsigned char>(c)));
  bool phi3 = title.find("phi-3") != std::string::npos || title.find("phi3") != std::string::npos;
  std::vector<AddedToken> added;
  for (size_t i = 0; i < gguf.tokens.size(); ++i) {
    PieceKind kind = gguf.kinds[i];
    if (kind != PieceKind::control && kind != PieceKind::user_defined && kind != PieceKind::unknown) continue;
    added.push_back(special_token(gguf.tokens[i], static_cast<TokenId>(i)));
    added.back().special = kind != PieceKind::user_defined;
    // GGUF does not say which tokens strip blanks; for Phi 3 it is known.
    const std::string& token = gguf.tokens[i];
    added.back().rstrip = phi3 && token != "<unk>" && token != "<s>" && token != "<|endoftext|>";
  }
  out.parts.added.add(added, out.parts.model->vocabulary(), nullptr);
  out.bos = gguf.id("bos_token_id", bos);
  out.eos = gguf.id("eos_token_id", eos);
  out.pad = gguf.id("padding_token_id");
  if (auto text = file.text("tokenizer.chat_template")) out.chat_template = std::string(*text);
  auto special = [&](std::optional<TokenId> id) -> std::optional<SpecialToken> {
    if (!id) return std::nullopt;
    return SpecialToken{*id, gguf.tokens[size_t(*id)]};
  };
  if (words) {
    auto cls = special(gguf.id("cls_token_id", gguf.id("bos_token_id", 101))),
         sep = special(gguf.id("seperator_token_id", 102));
    if (cls && sep) {
      Value processor = parse_json(R"({"type": "BertProcessing", "sep": [], "cls": []})");
      processor.find("sep")->items = {Value::text(sep->content), Value::integer(sep->id)};
      processor.find("cls")->items = {Value::text(cls->content), Value::integer(cls->id)};
      out.parts.post_processor = make_post_processor(processor);
    }
    return out;
  }
  adds_bos = gguf.flag("add_bos_token", adds_bos);
  adds_eos = gguf.flag("add_eos_token", adds_eos);
  if (adds_bos || adds_eos)
    out.parts.post_processor =
        make_bos_eos(adds_bos ? special(out.bos) : std::nullopt, adds_eos ? special(out.eos) : std::nullopt);
  return out;
} catch (const UserError& error) {
  rethrow_at(file.name(), error);
}

ReadTokenizer read_gguf(const std::filesystem::path& path) { return read_gguf(weights::GgufMetadata::open(path)); }

}  // namespace easydel::text
