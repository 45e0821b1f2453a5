// The kinds of decoders, named after "type" in the file.
#include "easydel/text/tokenizers/decoders.h"

#include <algorithm>

#include "easydel/text/tokenizers/byte_level.h"
#include "easydel/text/tokenizers/json_fields.h"
#include "easydel/text/tokenizers/normalizers.h"
#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  if (from.empty()) return std::string(text);
  std::string out;
  size_t last = 0;
  for (size_t at; (at = text.find(from, last)) != std::string_view::npos; last = at + from.size())
    out.append(text, last, at - last).append(to);
  return out.append(text, last);
}

// The rules in order; WordPiece's own clean-up (`pieces`) knows one more contraction.
std::string tidied(std::string text, bool pieces) {
  const std::string_view only_of_pieces = " do not";
  for (auto [from, to] : {std::pair{" .", "."},
                          {" ?", "?"},
                          {" !", "!"},
                          {" ,", ","},
                          {" ' ", "'"},
                          {" n't", "n't"},
                          {" 'm", "'m"},
                          {" do not", " don't"},
                          {" 's", "'s"},
                          {" 've", "'ve"},
                          {" 're", "'re"}})
    if (pieces || from != only_of_pieces) text = replaced(text, from, to);
  return text;
}

struct ByteLevel : Decoder {
  void apply(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) bytes += unmap_bytes(token).value_or(token);
    tokens = {replace_invalid(bytes)};
  }
  bool apply_alone(LoneToken& token) const override {
    if (auto bytes = unmap_bytes(token.text)) token.text = *std::move(bytes);
    return token.fused = true;
  }
};

struct Replace : Decoder {
  Pattern pattern;
  std::string content;
  Replace(Pattern pattern, std::string content) : pattern(std::move(pattern)), content(std::move(content)) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) token = changed(token);
  }
  bool apply_alone(LoneToken& token) const override {
    if (token.fused) return false;
    token.text = changed(token.text);
    return true;
  }
  std::string changed(const std::string& token) const {
    std::vector<Segment> parts;
    pattern.find_all(token, parts);
    std::string out;
    for (const Segment& part : parts)
      if (part.match)
        out += content;
      else
        out.append(token, part.begin, part.end - part.begin);
    return out;
  }
};

struct Fuse : Decoder {
  void apply(std::vector<std::string>& tokens) const override {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens = {std::move(all)};
  }
  bool apply_alone(LoneToken& token) const override { return token.fused = true; }
};

struct Strip : Decoder {
  std::string content;
  int64_t start, stop;
  Strip(std::string content, int64_t start, int64_t stop) : content(std::move(content)), start(start), stop(stop) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (int64_t i = 0; i < start && rest.starts_with(content); ++i) rest.remove_prefix(content.size());
      for (int64_t i = 0; i < stop && rest.ends_with(content); ++i) rest.remove_suffix(content.size());
      token = std::string(rest);
    }
  }
  bool apply_alone(LoneToken& token) const override {
    if (token.fused && (stop > 0 || start > 1)) return false;
    if (token.fused && token.place != TextPlace::start) return true;
    std::vector<std::string> alone = {std::move(token.text)};
    apply(alone);
    token.text = std::move(alone[0]);
    return true;
  }
};

struct ByteFallback : Decoder {
  static int byte_of(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return -1;
    int value = 0;
    for (char c : token.substr(3, 2)) {
      int digit = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                         : -1;
      if (digit < 0) return -1;
      value = value * 16 + digit;
    }
    return value;
  }
  void apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    std::string bytes;
    auto flush = [&] {
      if (bytes.empty()) return;
      if (valid_prefix(bytes) == bytes.size())
        out.push_back(bytes);
      else
        out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
      bytes.clear();
    };
    for (std::string& token : tokens) {
      int byte = byte_of(token);
      if (byte >= 0) {
        bytes += char(byte);
        continue;
      }
      flush();
      out.push_back(std::move(token));
    }
    flush();
    tokens = std::move(out);
  }
  bool apply_alone(LoneToken& token) const override {
    if (const int byte = byte_of(token.text); byte >= 0) token.text = char(byte);
    return true;
  }
};

struct Metaspace : Decoder {
  std::string replacement;
  bool prepends = true;
  explicit Metaspace(const Value& node) : replacement(string_field(node, "replacement", "\xE2\x96\x81")) {
    prepends = bool_field(node, "add_prefix_space", true);
    std::string word = string_field(node, "prepend_scheme", "");
    if (!word.empty()) prepends = word != "never";
  }
  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced(tokens[i], replacement, i == 0 && prepends ? "" : " ");
  }
  bool apply_alone(LoneToken& token) const override {
    token.text = replaced(token.text, replacement, token.place == TextPlace::start && prepends ? "" : " ");
    return true;
  }
};

struct WordPiece : Decoder {
  std::string prefix;
  bool cleanup;
  explicit WordPiece(const Value& node)
      : prefix(string_field(node, "prefix", "##")), cleanup(bool_field(node, "cleanup", true)) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = changed(std::move(tokens[i]), i == 0);
  }
  bool apply_alone(LoneToken& token) const override {
    token.text = changed(std::move(token.text), token.place == TextPlace::start);
    return true;
  }
  std::string changed(std::string token, bool first) const {
    if (!first) token = token.starts_with(prefix) ? token.substr(prefix.size()) : " " + token;
    return cleanup ? tidied(std::move(token), true) : token;
  }
};

struct Suffix : Decoder {
  std::string suffix;
  explicit Suffix(std::string suffix) : suffix(std::move(suffix)) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = replaced(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
  }
  // The blank after a word belongs to what follows it.
  bool apply_alone(LoneToken& token) const override {
    if (suffix.empty()) return true;
    const bool ends_word = token.text.ends_with(suffix);
    if (ends_word) token.text.resize(token.text.size() - suffix.size());
    if (token.text.find(suffix) != std::string::npos) return false;
    if (token.place == TextPlace::after_a_word) token.text.insert(0, " ");
    if (ends_word) token.next = TextPlace::after_a_word;
    return true;
  }
};

struct Ctc : Decoder {
  std::string pad, delimiter;
  bool cleanup;
  explicit Ctc(const Value& node)
      : pad(string_field(node, "pad_token", "<pad>")),
        delimiter(string_field(node, "word_delimiter_token", "|")),
        cleanup(bool_field(node, "cleanup", true)) {}
  void apply(std::vector<std::string>& tokens) const override {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) {
      token = replaced(token, pad, "");
      if (cleanup) token = replaced(tidied(std::move(token), true), delimiter, " ");
    }
    std::erase_if(tokens, [](const std::string& token) { return token.empty(); });
  }
  bool apply_alone(LoneToken&) const override { return false; }  // a repeated token adds nothing
};

struct Sequence : Decoder {
  std::vector<std::unique_ptr<const Decoder>> parts;
  void apply(std::vector<std::string>& tokens) const override {
    for (auto& part : parts) part->apply(tokens);
  }
  bool apply_alone(LoneToken& token) const override {
    return std::ranges::all_of(parts, [&](const auto& part) { return part->apply_alone(token); });
  }
};

}  // namespace

std::unique_ptr<const Decoder> make_decoder(const Value& node) {
  std::string type = string_field(node, "type");
  if (type == "ByteLevel") return std::make_unique<ByteLevel>();
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "ByteFallback") return std::make_unique<ByteFallback>();
  if (type == "Metaspace") return std::make_unique<Metaspace>(node);
  if (type == "WordPiece") return std::make_unique<WordPiece>(node);
  if (type == "BPEDecoder") return std::make_unique<Suffix>(string_field(node, "suffix", "</w>"));
  if (type == "CTC") return std::make_unique<Ctc>(node);
  if (type == "Strip") {
    std::string content = string_field(node, "content");
    if (count_characters(content) != 1)
      refuse("tokenizer.json", "the decoder Strip has the content '" + content + "'", "it must be one character");
    return std::make_unique<Strip>(content, int_field(node, "start", 0), int_field(node, "stop", 0));
  }
  if (type == "Replace") {
    const Value* pattern = node.find("pattern");
    if (!pattern) refuse("tokenizer.json", "the decoder Replace has no 'pattern'", "fetch the tokenizer again");
    return std::make_unique<Replace>(make_pattern(*pattern), string_field(node, "content"));
  }
  if (type == "Sequence") {
    auto out = std::make_unique<Sequence>();
    for (const Value& part : list_field(node, "decoders").items) out->parts.push_back(make_decoder(part));
    return out;
  }
  refuse("tokenizer.json", "the decoder '" + type + "' is not known",
         "known: ByteLevel, Sequence, Replace, Fuse, Strip, ByteFallback, Metaspace, WordPiece, BPEDecoder, CTC");
}

std::string clean_up(std::string text) { return tidied(std::move(text), false); }

}  // namespace easydel::text
