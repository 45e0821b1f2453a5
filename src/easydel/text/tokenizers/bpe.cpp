// Byte pair encoding (arXiv:1508.07909) with the details of tokenizers' models/bpe: byte fallback, unknown tokens,
// ignore_merges. Pairs are merged lowest rank first, leftmost first; a short piece by scanning, a long one by a heap.
#include <algorithm>
#include <array>
#include <bit>

#include "easydel/base/error.h"
#include "easydel/text/tokenizers/byte_level.h"
#include "easydel/text/tokenizers/json_fields.h"
#include "easydel/text/tokenizers/long_pieces.h"
#include "easydel/text/tokenizers/merge_symbols.h"
#include "easydel/text/tokenizers/model.h"
#include "easydel/text/tokenizers/scratch.h"
#include "easydel/text/tokenizers/word_memory.h"
#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

constexpr size_t long_piece = 48;                   // bytes; longer pieces are merged faster without a heap
constexpr std::string_view blank = "\xE2\x96\x81";  // U+2581, SentencePiece's space

// Maps (left, right) to the rank and the result of the merge.
class MergeTable {
 public:
  struct Entry {
    uint64_t pair = UINT64_MAX;
    uint32_t rank = no_rank;
    TokenId whole = -1;
  };
  void reserve(size_t merges) {
    entries_.assign(std::bit_ceil(merges * 3 / 2 + 16), Entry());
    shift_ = 64 - std::countr_zero(entries_.size());
  }
  void add(TokenId left, TokenId right, uint32_t rank, TokenId whole) {
    uint64_t pair = key(left, right);
    size_t i = slot(pair);
    while (entries_[i].pair != UINT64_MAX && entries_[i].pair != pair) i = (i + 1) & (entries_.size() - 1);
    entries_[i] = {pair, rank, whole};
  }
  void prefetch(TokenId left, TokenId right) const { __builtin_prefetch(&entries_[slot(key(left, right))], 1); }
  // The merges by rank.
  std::vector<std::pair<TokenId, TokenId>> all() const {
    std::vector<Entry> found;
    std::copy_if(entries_.begin(), entries_.end(), std::back_inserter(found),
                 [](const Entry& entry) { return entry.pair != UINT64_MAX; });
    std::sort(found.begin(), found.end(), [](const Entry& a, const Entry& b) { return a.rank < b.rank; });
    std::vector<std::pair<TokenId, TokenId>> out;
    for (const Entry& entry : found)
      out.emplace_back(static_cast<TokenId>(entry.pair >> 32), static_cast<TokenId>(entry.pair));
    return out;
  }
  const Entry* find(TokenId left, TokenId right) const {
    uint64_t pair = key(left, right);
    for (size_t i = slot(pair);; i = (i + 1) & (entries_.size() - 1)) {
      if (entries_[i].pair == pair) return &entries_[i];
      if (entries_[i].pair == UINT64_MAX) return nullptr;
    }
  }

 private:
  static uint64_t key(TokenId left, TokenId right) { return uint64_t(uint32_t(left)) << 32 | uint32_t(right); }
  size_t slot(uint64_t pair) const { return (pair * 0x9E3779B97F4A7C15u) >> shift_; }
  std::vector<Entry> entries_;
  int shift_ = 63;
};

class Bpe final : public Model {
 public:
  Bpe(const Value& options, ModelData data, bool byte_level)
      : fuse_unknown_(bool_field(options, "fuse_unk", false)),
        byte_fallback_(bool_field(options, "byte_fallback", false)),
        ignore_merges_(bool_field(options, "ignore_merges", false)),
        prefix_(string_field(options, "continuing_subword_prefix", "")),
        suffix_(string_field(options, "end_of_word_suffix", "")) {
    if (const Value* dropout = options.find("dropout"); !is_absent(dropout)) {
      double share = dropout->as_double().value_or(-1);
      if (!(share >= 0 && share <= 1))
        refuse("tokenizer.json", str("BPE has 'dropout': ", dropout->scalar), "it must be from 0 to 1");
      if (share > 0 && share < 1)
        refuse("tokenizer.json",
               str("BPE has 'dropout': ", dropout->scalar, "; tokens that change from call to call are not built"),
               "set it to null, or to 1 for none of the merges");
      if (share == 1) {
        ignore_merges_ = false;
        data.merges.clear();
      }
    }
    vocabulary_ = std::move(data.vocabulary);
    unknown_text_ = string_field(options, "unk_token", "");
    if (!is_absent(options.find("unk_token"))) {
      has_unknown_ = true;
      unknown_ = vocabulary_.find(unknown_text_);
    }
    for (int b = 0; b < 256; ++b) {
      char code[8];
      std::snprintf(code, sizeof code, "<0x%02X>", b);
      fallback_[b] = vocabulary_.find(code);
      std::string mapped;
      append_utf8(mapped, character_of_byte(uint8_t(b)));
      byte_[b] = vocabulary_.find(mapped);
    }
    // If all bytes of UTF-8 are tokens, or unknown ones are dropped, the raw text can be used instead of mapped
    // characters.
    bool all_bytes = true;
    for (int b = 0; b < 256; ++b) all_bytes = all_bytes && (byte_[b] >= 0 || b == 0xc0 || b == 0xc1 || b > 0xf4);
    raw_ = byte_level && (all_bytes || (!has_unknown_ && !byte_fallback_)) && prefix_.empty() && suffix_.empty();
    read_merges(data.merges);
  }

  ModelSection section() const override {
    ModelSection out;
    out.options.set("type", Value::text("BPE"));
    out.options.set("dropout", Value());
    out.options.set("unk_token", has_unknown_ ? Value::text(unknown_text_) : Value());
    out.options.set("continuing_subword_prefix", prefix_.empty() ? Value() : Value::text(prefix_));
    out.options.set("end_of_word_suffix", suffix_.empty() ? Value() : Value::text(suffix_));
    out.options.set("fuse_unk", Value::boolean(fuse_unknown_));
    out.options.set("byte_fallback", Value::boolean(byte_fallback_));
    out.options.set("ignore_merges", Value::boolean(ignore_merges_));
    out.merges = merges_.all();
    return out;
  }
  bool is_bpe() const override { return true; }
  bool takes_raw_bytes() const override { return raw_; }
  bool knows_byte(uint8_t byte) const override { return byte_[byte] >= 0; }

  void tokenize(std::string_view piece, std::vector<Token>& out) const override {
    if (!cuts_) return remembered(piece, out);
    size_t begin = 0;
    for (size_t at = piece.find(blank, 1); at != std::string_view::npos; at = piece.find(blank, at + blank.size())) {
      if (piece.substr(begin, at - begin).ends_with(blank)) continue;
      remembered(piece.substr(begin, at - begin), out);
      begin = at;
    }
    remembered(piece.substr(begin), out);
  }

  void tokenize_characters(std::string_view piece, std::vector<Token>& out) const override {
    if (!raw_) return tokenize(piece, out);
    if (TokenId id = ignore_merges_ ? vocabulary_.find(piece) : -1; id >= 0)
      return out.push_back({id, uint32_t(piece.size())});
    merge(piece, out, false);
  }

 private:
  void remembered(std::string_view piece, std::vector<Token>& out) const {
    if (piece.empty()) return;
    memory_.tokenize(piece, out,
                     [this](std::string_view text, std::vector<Token>& tokens) { whole_or_merged(text, tokens); });
  }

  void read_merges(const std::vector<std::pair<std::string_view, std::string_view>>& merges) {
    merges_.reserve(merges.size());
    // If no merge makes a token with a blank after something else, text can be split before every such blank.
    cuts_ = !raw_ && !ignore_merges_ && prefix_.empty() && suffix_.empty() && vocabulary_.find(blank) >= 0;
    // Several merges at a time, so that memory latencies overlap: the tables are larger than the caches.
    constexpr size_t at_once = 32;
    std::array<std::array<uint64_t, 2>, at_once> hashes;
    std::array<std::array<TokenId, 3>, at_once> ids;
    std::string whole;
    TokenId last = -1;
    for (size_t begin = 0; begin < merges.size(); begin += at_once) {
      size_t count = std::min(at_once, merges.size() - begin);
      for (size_t i = 0; i < count; ++i) {
        hashes[i] = {hash_of(merges[begin + i].first), hash_of(merges[begin + i].second)};
        for (uint64_t hash : hashes[i]) vocabulary_.prefetch_slot(hash);
      }
      for (size_t i = 0; i < count; ++i)
        for (uint64_t hash : hashes[i]) vocabulary_.prefetch_token(hash);
      for (size_t i = 0; i < count; ++i) {
        auto [left, right] = merges[begin + i];
        std::string_view rest = right.substr(std::min(right.size(), prefix_.size()));
        TokenId a = vocabulary_.find(left, hashes[i][0]), b = vocabulary_.find(right, hashes[i][1]);
        // Merges are mostly in the order of their results.
        TokenId c = spells(last, left, rest) ? last : spells(last + 1, left, rest) ? last + 1 : -1;
        if (c < 0) c = vocabulary_.find(whole.assign(left).append(rest));
        if (a < 0 || b < 0 || c < 0) refuse_merge(begin + i, left, right, a < 0 ? left : b < 0 ? right : whole);
        last = c;
        ids[i] = {a, b, c};
        merges_.prefetch(a, b);
        if (cuts_) cuts_ = keeps_cuts(vocabulary_.token(c));
      }
      for (size_t i = 0; i < count; ++i) merges_.add(ids[i][0], ids[i][1], uint32_t(begin + i), ids[i][2]);
    }
  }

  bool spells(TokenId id, std::string_view left, std::string_view right) const {
    std::string_view token = vocabulary_.token(id);
    return token.size() == left.size() + right.size() && token.starts_with(left) && token.ends_with(right);
  }

  static bool keeps_cuts(std::string_view token) {
    for (size_t at = token.find(blank, 1); at != std::string_view::npos; at = token.find(blank, at + 1))
      if (!token.substr(0, at).ends_with(blank)) return false;
    return true;
  }

  [[noreturn]] static void refuse_merge(size_t rank, std::string_view left, std::string_view right,
                                        std::string_view missing) {
    refuse("tokenizer.json",
           str("merge ", rank, " ('", left, "' with '", right, "') needs the token '", missing,
               "', which is not in the vocabulary"),
           "fetch the tokenizer again");
  }

  void whole_or_merged(std::string_view piece, std::vector<Token>& out) const {
    if (ignore_merges_ && piece.size() <= vocabulary_.longest()) {
      TokenId id = raw_ ? vocabulary_.find(map_bytes(piece)) : vocabulary_.find(piece);
      if (id >= 0) return out.push_back({id, uint32_t(piece.size())});
    }
    bool long_one = piece.size() > long_piece && prefix_.empty() && suffix_.empty() && (raw_ || all_known(piece));
    if (long_one && long_.tokenize(
                        piece, out, [this] { return keys(); },
                        [this](std::string_view text, std::vector<Token>& tokens) { merge(text, tokens, raw_); }))
      return;
    merge(piece, out, raw_);
  }

  void merge(std::string_view piece, std::vector<Token>& out, bool raw) const {
    thread_local std::vector<Symbol> own_symbols;
    const Scratch scratch(own_symbols);
    std::vector<Symbol>& symbols = scratch.items;
    if (raw)
      raw_symbols(piece, symbols);
    else
      character_symbols(piece, symbols);
    merging::merge(symbols, [this](const Symbol& left, const Symbol& right, uint32_t) {
      const auto* entry = merges_.find(left.id, right.id);
      return entry ? std::pair(entry->rank, entry->whole) : std::pair(no_rank, TokenId{-1});
    });
    for (const Symbol& symbol : symbols) out.push_back({symbol.id, symbol.length});
  }

  bool all_known(std::string_view piece) const {
    for (size_t at = 0; at < piece.size();) {
      size_t length = std::min(utf8_length(static_cast<unsigned char>(piece[at])), piece.size() - at);
      if (vocabulary_.find(piece.substr(at, length)) < 0) return false;
      at += length;
    }
    return true;
  }

  LongPieces::Keys keys() const {
    LongPieces::Keys out;
    for (size_t i = 0; i < vocabulary_.id_limit(); ++i) {
      auto id = static_cast<TokenId>(i);
      if (!vocabulary_.has(id)) continue;
      if (!raw_) {
        out.emplace_back(vocabulary_.token(id), id);
      } else if (auto bytes = unmap_bytes(vocabulary_.token(id))) {
        key_bytes_.push_back(std::move(*bytes));
        out.emplace_back(std::string_view(), id);
      }
    }
    if (raw_)
      for (size_t i = 0; i < out.size(); ++i) out[i].first = key_bytes_[i];
    std::erase_if(out, [](auto& key) { return key.first.empty(); });
    return out;
  }

  void raw_symbols(std::string_view piece, std::vector<Symbol>& symbols) const {
    for (char c : piece) {
      TokenId id = byte_[uint8_t(c)];
      if (id >= 0) symbols.push_back({id, 1});
    }
  }

  void character_symbols(std::string_view piece, std::vector<Symbol>& symbols) const {
    uint32_t unknown_length = 0;  // length of a pending unknown token, not yet a symbol
    auto flush = [&] {
      if (unknown_length) symbols.push_back({unknown_, unknown_length});
      unknown_length = 0;
    };
    std::string changed;
    for (size_t at = 0; at < piece.size();) {
      size_t length = std::min(utf8_length(static_cast<unsigned char>(piece[at])), piece.size() - at);
      std::string_view character = piece.substr(at, length);
      bool first = at == 0;
      at += length;
      if ((!first && !prefix_.empty()) || (at == piece.size() && !suffix_.empty())) {
        changed = (first ? "" : prefix_) + std::string(character) + (at == piece.size() ? suffix_ : "");
        character = changed;
      }
      if (TokenId id = vocabulary_.find(character); id >= 0) {
        flush();
        symbols.push_back({id, uint32_t(length)});
        continue;
      }
      if (byte_fallback_) {
        bool all = std::all_of(character.begin(), character.end(), [&](char c) { return fallback_[uint8_t(c)] >= 0; });
        if (all) {
          // A pending unknown token stays pending here, as upstream.
          for (char c : character) symbols.push_back({fallback_[uint8_t(c)], 1});
          continue;
        }
      }
      if (!has_unknown_) continue;
      if (unknown_ < 0)
        refuse("tokenizer.json", "the unknown token is not in the vocabulary", "fetch the tokenizer again");
      if (!fuse_unknown_) flush();
      unknown_length += uint32_t(length);
    }
    flush();
  }

  bool fuse_unknown_, byte_fallback_, ignore_merges_, has_unknown_ = false, raw_ = false, cuts_ = false;
  std::string prefix_, suffix_, unknown_text_;
  TokenId unknown_ = -1;
  std::array<TokenId, 256> fallback_{}, byte_{};
  MergeTable merges_;
  WordMemory memory_;
  LongPieces long_;
  mutable std::vector<std::string> key_bytes_;  // filled once, with long_
};

}  // namespace

std::unique_ptr<const Model> make_bpe(const Value& options, ModelData data, bool byte_level) {
  return std::make_unique<Bpe>(options, std::move(data), byte_level);
}

}  // namespace easydel::text
