// After SentencePiece's normalizer.cc and the Decode of sentencepiece_processor.cc.
#include "easydel/text/tokenizers/sentencepiece_steps.h"

#include "easydel/base/error.h"
#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

constexpr std::string_view blank_piece = "\xE2\x96\x81";

class SentencePieceNormalizer final : public Normalizer {
 public:
  explicit SentencePieceNormalizer(SentencePieceRules rules) : rules_(std::move(rules)) {
    std::vector<std::pair<std::string_view, int32_t>> keys;
    for (const std::string& text : rules_.user_defined) keys.emplace_back(text, 0);
    if (!keys.empty()) user_defined_ = PrefixTrie(keys);
  }

  void apply(NormalizedText& text) const override {
    const std::string& in = text.bytes();
    Made made;
    size_t at = 0;
    if (rules_.remove_extra_whitespaces)
      while (at < in.size()) {
        auto [part, length] = next(in, at);
        if (part != " ") break;
        at += length;
      }
    if (at < in.size()) {
      bool prefix = rules_.add_dummy_prefix && (!rules_.prefix_only_at_start || text.original_begin() == 0);
      if (prefix && !rules_.treat_whitespace_as_suffix) add_blank(made, {uint32_t(at), uint32_t(at)});
      bool after_blank = rules_.remove_extra_whitespaces;
      while (at < in.size()) {
        auto [part, length] = next(in, at);
        Span from{uint32_t(at), uint32_t(at + length)};
        while (after_blank && part.starts_with(' ')) part.remove_prefix(1);
        for (char c : part)
          if (c == ' ')
            add_blank(made, from);
          else
            made.add({&c, 1}, from);
        if (!part.empty()) after_blank = part.ends_with(' ');
        if (!rules_.remove_extra_whitespaces) after_blank = false;
        at += length;
      }
      std::string_view written = rules_.escape_whitespaces ? blank_piece : " ";
      if (rules_.remove_extra_whitespaces)
        while (made.bytes.ends_with(written)) made.bytes.resize(made.bytes.size() - written.size());
      made.from.resize(made.bytes.size());
      auto end = uint32_t(in.size());
      if (prefix && rules_.treat_whitespace_as_suffix) add_blank(made, {end, end});
    }
    text.rewrite(std::move(made.bytes), made.from);
  }

 private:
  struct Made {
    std::string bytes;
    std::vector<Span> from;
    void add(std::string_view part, Span origin) {
      bytes += part;
      from.resize(bytes.size(), origin);
    }
  };
  void add_blank(Made& made, Span from) const { made.add(rules_.escape_whitespaces ? blank_piece : " ", from); }

  // The replacement of the text at `at`, and the number of bytes that it replaces.
  std::pair<std::string_view, size_t> next(std::string_view in, size_t at) const {
    size_t length = 0;
    if (user_defined_.longest(in, at, length) >= 0) return {in.substr(at, length), length};
    if (auto found = rules_.charsmap.longest(in.substr(at))) return {found->replacement, found->length};
    length = std::min(utf8_length(static_cast<unsigned char>(in[at])), in.size() - at);
    return {in.substr(at, length), length};
  }

  SentencePieceRules rules_;
  PrefixTrie user_defined_;
};

int byte_of_code(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int value = 0;
  for (char c : token.substr(3, 2)) {
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

class SentencePieceDecoder final : public Decoder {
 public:
  SentencePieceDecoder(const SentencePieceRules& rules, std::unique_ptr<const Normalizer> denormalizer)
      : unknown_(rules.unknown),
        surface_(rules.unknown_surface),
        trims_(rules.add_dummy_prefix || rules.remove_extra_whitespaces),
        trims_all_(rules.remove_extra_whitespaces),
        denormalizer_(std::move(denormalizer)) {}

  void apply(std::vector<std::string>& tokens) const override {
    std::string text, bytes;
    bool at_start = true, seen = false;
    auto flush = [&] {
      // Each byte that is not part of a character becomes U+FFFD.
      for (size_t at = 0; at < bytes.size();) {
        size_t good = valid_prefix(std::string_view(bytes).substr(at));
        text.append(bytes, at, good);
        at += good;
        if (at == bytes.size()) break;
        text += "\xEF\xBF\xBD";
        ++at;
      }
      bytes.clear();
    };
    for (const std::string& token : tokens) {
      if (int byte = byte_of_code(token); byte >= 0) {
        bytes += char(byte);
        continue;
      }
      flush();
      if (seen || !text.empty()) at_start = false;
      seen = false;
      if (token == unknown_) {
        text += surface_;
        continue;
      }
      std::string_view rest = token;
      if (at_start && trims_ && rest.starts_with(blank_piece)) {
        rest.remove_prefix(blank_piece.size());
        seen = !trims_all_;
      }
      for (size_t at; (at = rest.find(blank_piece)) != std::string_view::npos;
           rest.remove_prefix(at + blank_piece.size())) {
        text += rest.substr(0, at);
        text += ' ';
      }
      text += rest;
    }
    flush();
    if (denormalizer_) {
      NormalizedText changed(text, false);
      denormalizer_->apply(changed);
      text = changed.bytes();
    }
    tokens = {std::move(text)};
  }

  bool apply_alone(LoneToken& token) const override {
    if (denormalizer_) return false;  // it changes whole texts
    std::vector<std::string> alone = {token.text};
    if (const int byte = byte_of_code(token.text); byte >= 0) {
      token.text = char(byte);
      return true;
    }
    // A piece that is not the first keeps its blank: one that cannot be stripped is put before it.
    const bool strips = trims_ && token.place == TextPlace::start;
    if (!strips) alone.insert(alone.begin(), "x");
    apply(alone);
    token.text = strips ? alone[0] : alone[0].substr(1);
    if (strips && trims_all_ && token.text.empty()) token.next = TextPlace::start;
    return true;
  }

 private:
  std::string unknown_, surface_;
  bool trims_, trims_all_;
  std::unique_ptr<const Normalizer> denormalizer_;
};

}  // namespace

StepTexts sentencepiece_step_texts(const SentencePieceRules& rules, std::string_view charsmap, bool denormalizes) {
  StepTexts out;
  if (denormalizes) out.missing = "changes decoded texts by a denormalizer_spec, which only SentencePiece has";
  if (rules.treat_whitespace_as_suffix) out.missing = "puts blanks after words instead of before them";
  const auto list_of = [](std::string_view type, std::string_view key, const std::vector<std::string>& steps) {
    std::string text = str(R"({"type": ")", type, R"(", ")", key, "\": [");
    for (size_t i = 0; i < steps.size(); ++i) text += (i ? ", " : "") + steps[i];
    return text + "]}";
  };
  const auto replaced = [](std::string_view kind, std::string_view pattern, std::string_view content) {
    return str(R"({"type": "Replace", "pattern": {")", kind, "\": ", to_json(Value::text(std::string(pattern))),
               R"(}, "content": )", to_json(Value::text(std::string(content))), "}");
  };
  const std::string written = rules.escape_whitespaces ? std::string(blank_piece) : " ";
  std::vector<std::string> steps;
  if (!charsmap.empty())
    steps.push_back(str(R"({"type": "Precompiled", "precompiled_charsmap": ")", encode_base64(charsmap), "\"}"));
  if (rules.remove_extra_whitespaces) {
    // At the end also blanks that the text itself has as U+2581.
    steps.push_back(replaced("Regex", str(R"(\A +|[ )", rules.escape_whitespaces ? blank_piece : "", R"(]+\z)"), ""));
    steps.push_back(replaced("Regex", " {2,}", " "));
  }
  const bool prefix = rules.add_dummy_prefix;
  if (prefix && !rules.prefix_only_at_start)
    steps.push_back(str(R"({"type": "Prepend", "prepend": )", to_json(Value::text(written)), "}"));
  if (prefix && rules.prefix_only_at_start)
    out.pre_tokenizer = str(R"({"type": "Metaspace", "replacement": ")", blank_piece,
                            R"(", "prepend_scheme": "first", "split": false})");
  else if (rules.escape_whitespaces)
    steps.push_back(replaced("String", " ", blank_piece));
  if (!steps.empty()) out.normalizer = list_of("Sequence", "normalizers", steps);

  // The blank at the beginning is removed, but not that of the text for unknown pieces: a character for private use
  // keeps it until then.
  const bool strips = prefix || rules.remove_extra_whitespaces;
  const std::string surface = rules.unknown_surface, kept = "\xEF\xA3\xBF" + surface;
  const bool keeps = strips && surface.starts_with(' ');
  std::vector<std::string> decoders = {replaced("String", rules.unknown, keeps ? kept : surface),
                                       replaced("String", blank_piece, " "), R"({"type": "ByteFallback"})",
                                       R"({"type": "Fuse"})"};
  if (strips) decoders.emplace_back(R"({"type": "Strip", "content": " ", "start": 1, "stop": 0})");
  if (keeps) decoders.push_back(replaced("String", kept, surface));
  out.decoder = list_of("Sequence", "decoders", decoders);

  // Pieces that the user defined are found in the text before it is changed; those with blanks, after.
  for (const std::string& piece : rules.user_defined) {
    AddedToken token;
    token.content = piece;
    token.special = false;
    token.normalized = !prefix && piece.find(blank_piece) != std::string::npos;
    out.added.push_back(std::move(token));
  }
  return out;
}

std::unique_ptr<const Normalizer> make_sentencepiece_normalizer(SentencePieceRules rules) {
  return std::make_unique<SentencePieceNormalizer>(std::move(rules));
}

std::unique_ptr<const Decoder> make_sentencepiece_decoder(const SentencePieceRules& rules,
                                                          std::unique_ptr<const Normalizer> denormalizer) {
  return std::make_unique<SentencePieceDecoder>(rules, std::move(denormalizer));
}

}  // namespace easydel::text
