// The pipeline of a text: added tokens, normalizer, pre-tokenizer, model, post-processor; and decoding.
// The order is that of tokenizers' extract_and_normalize (added_vocabulary.rs).
#include "easydel/text/tokenizers/json_tokenizer.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/simdjson.h"
#include "easydel/text/tokenizers/byte_level.h"
#include "easydel/text/tokenizers/scratch.h"
#include "easydel/text/tokenizers/write_json.h"

namespace easydel::text {
namespace {

// Returns `text`, or `repaired`, made from it, if it is not valid UTF-8.
std::string_view valid(std::string_view text, std::string& repaired) {
  if (simdjson::validate_utf8(text.data(), text.size())) return text;
  repaired = replace_invalid(text);
  return repaired;
}

}  // namespace

JsonTokenizer::JsonTokenizer(TokenizerParts parts, TokenizerSettings settings)
    : parts_(std::move(parts)), settings_(std::move(settings)) {
  framed_ = true;
  if (!parts_.post_processor) return;
  // Finds the prefix and the suffix by applying the post-processor to a token that no vocabulary has.
  Encoding mark;
  mark.ids = {-1};
  mark.tokens = {"x"};
  mark.offsets = {{0, 1}};
  mark.special_tokens_mask = {0};
  mark.type_ids = {0};
  std::vector<Encoding> encodings = {mark};
  parts_.post_processor->apply(encodings, true);
  std::vector<TokenId> ids = joined(std::move(encodings)).ids;
  auto middle = std::find(ids.begin(), ids.end(), -1);
  framed_ = std::count(ids.begin(), ids.end(), -1) == 1;
  if (!framed_) return;
  prefix_.assign(ids.begin(), middle);
  suffix_.assign(middle + 1, ids.end());
}

std::vector<TokenId> JsonTokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (!framed_ || options.file_limits) return encode_full(text, std::nullopt, options).ids;
  std::string repaired;
  text = valid(text, repaired);
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 3 + prefix_.size() + suffix_.size() + 4);
  if (options.add_special_tokens) ids = prefix_;
  append_ids(text, options.parse_special, ids);
  if (options.add_special_tokens) ids.insert(ids.end(), suffix_.begin(), suffix_.end());
  return ids;
}

void JsonTokenizer::append_ids(std::string_view text, bool parse_special, std::vector<TokenId>& ids) const {
  if (parts_.pre_tokenizer && parts_.pre_tokenizer->needs_origins()) {
    Encoding encoding = encode_one(text, parse_special);
    ids.insert(ids.end(), encoding.ids.begin(), encoding.ids.end());
    return;
  }
  std::vector<AddedTokens::Found> found;
  parts_.added.find(text, false, parse_special, found);
  for (const auto& part : found)
    if (part.id >= 0)
      ids.push_back(part.id);
    else
      append_normalized(text.substr(part.begin, part.end - part.begin), part.begin, parse_special, ids);
}

void JsonTokenizer::append_normalized(std::string_view text, size_t begin, bool parse_special,
                                      std::vector<TokenId>& ids) const {
  std::optional<NormalizedText> normalized;
  if (parts_.normalizer && !parts_.normalizer->keeps(text)) {
    normalized.emplace(text, false, begin);
    parts_.normalizer->apply(*normalized);
    text = normalized->bytes();
  }
  if (parts_.added.empty(true)) return append_pieces(text, ids);
  std::vector<AddedTokens::Found> found;
  parts_.added.find(text, true, parse_special, found);
  for (const auto& part : found)
    if (part.id >= 0)
      ids.push_back(part.id);
    else
      append_pieces(text.substr(part.begin, part.end - part.begin), ids);
}

void JsonTokenizer::append_pieces(std::string_view text, std::vector<TokenId>& ids) const {
  thread_local std::vector<Token> own_tokens;
  const Scratch scratch(own_tokens);
  std::vector<Token>& tokens = scratch.items;
  const Model& model = *parts_.model;
  if (parts_.cutter && parts_.cutter->byte_level == model.takes_raw_bytes()) {
    thread_local std::vector<uint32_t> own_ends;
    const Scratch ends(own_ends);
    parts_.cutter->cut(text, ends.items);
    uint32_t begin = 0;
    for (uint32_t end : ends.items) {
      model.tokenize(text.substr(begin, end - begin), tokens);
      begin = end;
    }
  } else {
    std::vector<NormalizedText> pieces;
    pieces.emplace_back(text, false);
    if (parts_.pre_tokenizer) parts_.pre_tokenizer->apply(pieces);
    for (const NormalizedText& piece : pieces) {
      auto raw = model.takes_raw_bytes() ? unmap_bytes(piece.bytes()) : std::nullopt;
      if (raw)
        model.tokenize(*raw, tokens);
      else
        model.tokenize_characters(piece.bytes(), tokens);
    }
  }
  for (const Token& token : tokens) ids.push_back(token.id);
}

Encoding JsonTokenizer::encode_one(std::string_view text, bool parse_special, std::span<const size_t> breaks) const {
  Encoding out;
  std::vector<uint32_t> character_of(text.size() + 1);  // by byte
  uint32_t characters = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    characters += (text[i] & 0xc0) != 0x80;
    character_of[i] = characters - 1;
  }
  character_of[text.size()] = characters;

  std::vector<AddedTokens::Found> found, inner;
  parts_.added.find(text, false, parse_special, found);
  // Makes text of special tokens over a break. `origin_of`: the bytes of `text` that a token was made of.
  const auto break_up = [&](std::vector<AddedTokens::Found>& pieces, const auto& origin_of) {
    const auto is_broken = [&](const AddedTokens::Found& piece) {
      if (piece.id < 0 || !parts_.added.token(piece.id)->special) return false;
      const Span origin = origin_of(piece);
      const auto next = std::ranges::upper_bound(breaks, size_t(origin.begin));
      return next != breaks.end() && *next < origin.end;
    };
    std::vector<AddedTokens::Found> out;
    for (AddedTokens::Found piece : pieces) {
      if (is_broken(piece)) piece.id = -1;
      if (piece.id < 0 && !out.empty() && out.back().id < 0)
        out.back().end = piece.end;
      else
        out.push_back(piece);
    }
    pieces = std::move(out);
  };
  if (!breaks.empty()) break_up(found, [](const AddedTokens::Found& one) { return Span{one.begin, one.end}; });
  auto add = [&](TokenId id, std::string_view spelled, Span origin) {
    out.ids.push_back(id);
    out.tokens.emplace_back(spelled);
    out.offsets.emplace_back(character_of[origin.begin], character_of[origin.end]);
  };
  for (const auto& part : found) {
    if (part.id >= 0) {
      add(part.id, text.substr(part.begin, part.end - part.begin), {part.begin, part.end});
      continue;
    }
    NormalizedText normalized(text.substr(part.begin, part.end - part.begin), true, part.begin);
    if (parts_.normalizer) parts_.normalizer->apply(normalized);
    inner.clear();
    parts_.added.find(normalized.bytes(), true, parse_special, inner);
    if (!breaks.empty())
      break_up(inner, [&](const AddedTokens::Found& one) { return normalized.origin(one.begin, one.end); });
    for (const auto& piece : inner) {
      if (piece.id >= 0) {
        add(piece.id, std::string_view(normalized.bytes()).substr(piece.begin, piece.end - piece.begin),
            normalized.origin(piece.begin, piece.end));
        continue;
      }
      std::vector<NormalizedText> pieces = {normalized.slice(piece.begin, piece.end)};
      if (parts_.pre_tokenizer) parts_.pre_tokenizer->apply(pieces);
      for (const NormalizedText& each : pieces) encode_piece(each, character_of, out);
    }
  }
  out.special_tokens_mask.assign(out.ids.size(), 0);
  out.type_ids.assign(out.ids.size(), 0);
  return out;
}

void JsonTokenizer::encode_piece(const NormalizedText& piece, const std::vector<uint32_t>& character_of,
                                 Encoding& out) const {
  std::vector<Token> tokens;
  const std::string& bytes = piece.bytes();
  std::optional<std::string> raw;
  if (parts_.model->takes_raw_bytes()) raw = unmap_bytes(bytes);
  if (raw)
    parts_.model->tokenize(*raw, tokens);
  else
    parts_.model->tokenize_characters(bytes, tokens);
  size_t at = 0, begin = 0, byte = 0;
  for (const Token& token : tokens) {
    if (token.length) begin = at;
    if (raw) {  // each known byte is one character of the piece; as upstream, unknown bytes shift what follows left
      for (uint32_t i = 0; i < token.length && byte < raw->size(); ++i, ++byte) {
        while (byte + 1 < raw->size() && !parts_.model->knows_byte(uint8_t((*raw)[byte]))) ++byte;
        at += character_of_byte(uint8_t((*raw)[byte])) < 0x80 ? 1 : 2;
      }
    } else {
      at += token.length;
    }
    at = std::min(bytes.size(), at);
    out.ids.push_back(token.id);
    out.tokens.emplace_back(token.is_surface ? std::string_view(bytes).substr(begin, at - begin)
                                             : parts_.model->vocabulary().token(token.id));
    Span origin = begin < at ? piece.origin(begin, at) : Span{};
    out.offsets.emplace_back(character_of[origin.begin], character_of[origin.end]);
  }
}

Encoding JsonTokenizer::encode_full(std::string_view text, const std::optional<std::string>& pair,
                                    const EncodeOptions& options) const {
  std::string repaired;
  std::vector<Encoding> parts;
  parts.push_back(encode_one(valid(text, repaired), options.parse_special));
  if (pair) {
    parts.push_back(encode_one(valid(*pair, repaired), options.parse_special));
    parts[1].type_ids.assign(parts[1].ids.size(), 1);
  }
  if (options.file_limits && parts_.truncation) {
    int64_t added =
        parts_.post_processor && options.add_special_tokens ? parts_.post_processor->added(parts.size()) : 0;
    parts_.truncation->apply(parts, added);
  }
  if (parts_.post_processor) parts_.post_processor->apply(parts, options.add_special_tokens);
  Encoding out = joined(std::move(parts));
  if (options.file_limits && parts_.padding) parts_.padding->apply(out);
  return out;
}

Encoding JsonTokenizer::encode_with_breaks(std::string_view text, std::span<const size_t> breaks,
                                           const EncodeOptions& options) const {
  std::vector<Encoding> parts;
  parts.push_back(encode_one(text, options.parse_special, breaks));
  if (parts_.post_processor) parts_.post_processor->apply(parts, options.add_special_tokens);
  return joined(std::move(parts));
}

std::optional<std::string_view> JsonTokenizer::shown(TokenId id, bool skip_special_tokens) const {
  const Vocabulary& vocabulary = parts_.model->vocabulary();
  std::optional<std::string_view> token;
  const AddedToken* spelled = nullptr;
  if (const AddedToken* added = parts_.added.token(id)) {
    // As upstream, skipping is decided by the text, which differs if the normalizer changed the token.
    spelled = added->normalized ? parts_.added.token(added->decoded) : added;
    token = added->decoded;
  } else if (vocabulary.has(id)) {
    token = vocabulary.token(id);
    spelled = vocabulary.has_twins() ? parts_.added.token(*token) : nullptr;
  }
  if (skip_special_tokens && spelled && spelled->special) return std::nullopt;
  return token;
}

std::string JsonTokenizer::decode(std::span<const TokenId> ids, bool skip_special_tokens, std::optional<bool> clean,
                                  bool time_stamps) const {
  std::vector<TokenId> of_class;
  if (!settings_.decoding.empty()) ids = of_class = settings_.decoding.ids(ids, *this, skip_special_tokens);
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (TokenId id : ids)
    if (const auto token = shown(id, skip_special_tokens)) tokens.emplace_back(*token);
  std::string out;
  if (parts_.decoder) {
    parts_.decoder->apply(tokens);
    for (const std::string& token : tokens) out += token;
  } else {
    for (size_t i = 0; i < tokens.size(); ++i) out += (i ? " " : "") + tokens[i];
  }
  if (!settings_.decoding.empty()) out = settings_.decoding.text(std::move(out), time_stamps);
  return clean.value_or(settings_.clean_up) ? text::clean_up(std::move(out)) : out;
}

std::optional<std::string> JsonTokenizer::bytes_of(TokenId id, TextPlace& place) const {
  const auto token = shown(id, true);
  if (!token || !settings_.decoding.empty()) return std::nullopt;  // a class changes whole texts
  LoneToken lone{std::string(*token), place};
  if (parts_.decoder) {
    if (!parts_.decoder->apply_alone(lone)) return std::nullopt;
  } else if (place != TextPlace::start) {
    lone.text.insert(0, " ");
  }
  place = lone.next;
  return std::move(lone.text);
}

TokenId JsonTokenizer::id_limit() const {
  auto limit = static_cast<TokenId>(parts_.model->vocabulary().id_limit());
  for (const AddedToken& added : parts_.added.all()) limit = std::max(limit, added.id + 1);
  return limit;
}

int64_t JsonTokenizer::vocabulary_size() const {
  const Vocabulary& vocabulary = parts_.model->vocabulary();
  return int64_t(vocabulary.size() + parts_.added.count_outside(vocabulary));
}

std::optional<TokenId> JsonTokenizer::id_of(std::string_view token) const {
  if (const AddedToken* added = parts_.added.token(token)) return added->id;
  TokenId id = parts_.model->vocabulary().find(token);
  if (id < 0) return std::nullopt;
  return id;
}

std::string JsonTokenizer::token_of(TokenId id) const {
  if (const AddedToken* added = parts_.added.token(id)) return added->content;
  return std::string(parts_.model->vocabulary().token(id));
}

std::string JsonTokenizer::as_json() const { return tokenizer_json(parts_); }

bool JsonTokenizer::is_special(TokenId id) const {
  const AddedToken* added = parts_.added.token(id);
  return added && added->special;
}

}  // namespace easydel::text
