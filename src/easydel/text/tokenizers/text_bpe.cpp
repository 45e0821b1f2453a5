// Byte pair encoding without a list of merges: two neighbours may merge if their joint text is a piece. SentencePiece
// (bpe_model.cc) merges this way by score, tiktoken by rank.
#include <algorithm>
#include <array>
#include <map>

#include "easydel/base/error.h"
#include "easydel/text/tokenizers/byte_level.h"
#include "easydel/text/tokenizers/long_pieces.h"
#include "easydel/text/tokenizers/merge_symbols.h"
#include "easydel/text/tokenizers/model.h"
#include "easydel/text/tokenizers/prefix_trie.h"
#include "easydel/text/tokenizers/scratch.h"
#include "easydel/text/tokenizers/word_memory.h"
#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

constexpr size_t long_piece = 48;  // bytes
constexpr std::string_view merged_blank = "\xE2\x96\x81";

class TextBpe final : public Model {
 public:
  TextBpe(TextBpeRules rules, ModelData data) : rules_(std::move(rules)) {
    vocabulary_ = std::move(data.vocabulary);
    if (rules_.mapped_bytes) {
      // The vocabulary uses mapped characters, the text is raw bytes.
      pieces_.reserve(vocabulary_.size(), vocabulary_.size() * 8);
      for (size_t id = 0; id < vocabulary_.id_limit(); ++id)
        if (auto bytes = unmap_bytes(vocabulary_.token(static_cast<TokenId>(id)));
            bytes && !bytes->empty() && rules_.rank_of(static_cast<TokenId>(id)) != no_rank)
          pieces_.add(*bytes, static_cast<TokenId>(id));
    } else {
      pieces_.reserve(vocabulary_.size(), vocabulary_.size() * 8);
      std::vector<std::pair<std::string_view, int32_t>> frozen;
      for (size_t i = 0; i < vocabulary_.id_limit(); ++i) {
        auto id = static_cast<TokenId>(i);
        PieceKind kind = rules_.kind_of(id);
        std::string_view token = vocabulary_.token(id);
        if (token.empty() || (!rules_.all_kinds &&
                              (kind == PieceKind::unknown || kind == PieceKind::control || kind == PieceKind::byte)))
          continue;
        if (pieces_.find(token) < 0) pieces_.add(token, id);
        if (kind == PieceKind::user_defined && !rules_.all_kinds) frozen.emplace_back(token, id);
        has_unused_ = has_unused_ || (kind == PieceKind::unused && !rules_.all_kinds);
        // If no piece has a merged_blank after something else, text can be split before every such merged_blank.
        for (size_t at = token.find(merged_blank, 1); at != std::string_view::npos;
             at = token.find(merged_blank, at + 1))
          cuts_ = cuts_ && token.substr(0, at).ends_with(merged_blank);
      }
      if (!frozen.empty()) frozen_ = PrefixTrie(frozen);
    }
    for (int b = 0; b < 256; ++b) {
      char code[8];
      std::snprintf(code, sizeof code, "<0x%02X>", b);
      fallback_[size_t(b)] = vocabulary_.find(code);
      char raw = char(b);
      byte_[size_t(b)] = pieces_.find({&raw, 1});
    }
  }

  // A merge for each cut of a piece into two pieces, in the order of the ranks of what they make; cuts of one piece in
  // the order of their own ranks, as transformers converts such files. Where one piece can be made in two ways from
  // overlapping neighbours, the leftmost way wins here, and the merge that is listed first there.
  ModelSection section() const override {
    if (has_unused_)
      refuse("tokenizer.json",
             "has pieces that are merged but never given out ('unused'), which only SentencePiece has");
    ModelSection out;
    out.options.set("type", Value::text("BPE"));
    out.options.set("dropout", Value());
    out.options.set("unk_token",
                    rules_.unknown >= 0 ? Value::text(std::string(vocabulary_.token(rules_.unknown))) : Value());
    out.options.set("continuing_subword_prefix", Value());
    out.options.set("end_of_word_suffix", Value());
    out.options.set("fuse_unk", Value::boolean(rules_.unknown >= 0));
    out.options.set("byte_fallback", Value::boolean(rules_.byte_fallback));
    out.options.set("ignore_merges", Value::boolean(rules_.whole_first));
    struct Merge {
      std::array<uint32_t, 3> ranks;  // of the whole, the left and the right piece
      std::pair<TokenId, TokenId> pair;
    };
    std::vector<Merge> merges;
    for (size_t id = 0; id < pieces_.id_limit(); ++id) {
      const auto whole = static_cast<TokenId>(id);
      if (!pieces_.has(whole) || rules_.rank_of(whole) == no_rank || is_user_defined(whole)) continue;
      const std::string_view text = pieces_.token(whole);
      const auto length = [&](size_t at) {
        return rules_.mapped_bytes ? 1 : utf8_length(static_cast<unsigned char>(text[at]));
      };
      for (size_t at = length(0); at < text.size(); at += length(at)) {
        const TokenId left = pieces_.find(text.substr(0, at)), right = pieces_.find(text.substr(at));
        if (left < 0 || right < 0 || is_user_defined(left) || is_user_defined(right)) continue;
        merges.push_back({{rules_.rank_of(whole), rules_.rank_of(left), rules_.rank_of(right)}, {left, right}});
      }
    }
    std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) { return a.ranks < b.ranks; });
    for (const Merge& merge : merges) out.merges.push_back(merge.pair);
    return out;
  }
  bool is_bpe() const override { return true; }
  bool takes_raw_bytes() const override { return rules_.mapped_bytes; }

  void tokenize(std::string_view text, std::vector<Token>& out) const override {
    if (text.empty()) return;
    auto encode = [this](std::string_view piece, std::vector<Token>& tokens) { merge(piece, tokens); };
    if (rules_.mapped_bytes || !cuts_) return memory_.tokenize(text, out, encode);
    size_t begin = 0;
    for (size_t at = text.find(merged_blank, 1); at != std::string_view::npos;
         at = text.find(merged_blank, at + merged_blank.size())) {
      if (text.substr(begin, at - begin).ends_with(merged_blank)) continue;
      add_joined(text.substr(begin, at - begin), out, encode);
      begin = at;
    }
    add_joined(text.substr(begin), out, encode);
  }

 private:
  bool is_user_defined(TokenId id) const { return !rules_.all_kinds && rules_.kind_of(id) == PieceKind::user_defined; }

  // Unknown characters on both sides of a split are one token.
  template <class Encode>
  void add_joined(std::string_view piece, std::vector<Token>& out, Encode&& encode) const {
    size_t before = out.size();
    memory_.tokenize(piece, out, encode);
    if (before > 0 && before < out.size() && out[before - 1].is_surface && out[before].is_surface) {
      out[before - 1].length += out[before].length;
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(before));
    }
  }

  void merge(std::string_view piece, std::vector<Token>& out) const {
    if (rules_.whole_first)
      if (TokenId id = pieces_.find(piece); id >= 0) return out.push_back({id, uint32_t(piece.size())});
    if (piece.size() > long_piece && !has_unused_ && frozen_.empty() && all_known(piece) &&
        long_.tokenize(
            piece, out, [this] { return keys(); },
            [this](std::string_view text, std::vector<Token>& tokens) { merge_all(text, tokens); }))
      return;
    merge_all(piece, out);
  }

  bool all_known(std::string_view piece) const {
    for (size_t at = 0; at < piece.size();) {
      size_t length =
          rules_.mapped_bytes ? 1 : std::min(utf8_length(static_cast<unsigned char>(piece[at])), piece.size() - at);
      if (pieces_.find(piece.substr(at, length)) < 0) return false;
      at += length;
    }
    return true;
  }

  LongPieces::Keys keys() const {
    LongPieces::Keys out;
    for (size_t id = 0; id < pieces_.id_limit(); ++id)
      if (pieces_.has(static_cast<TokenId>(id)))
        out.emplace_back(pieces_.token(static_cast<TokenId>(id)), static_cast<TokenId>(id));
    return out;
  }

  void merge_all(std::string_view piece, std::vector<Token>& out) const {
    thread_local std::vector<Symbol> own_symbols;
    const Scratch scratch(own_symbols);
    std::vector<Symbol>& symbols = scratch.items;
    std::map<TokenId, std::pair<Symbol, Symbol>> parts;  // the two parts of each unused piece of this text
    for (size_t at = 0; at < piece.size();) {
      size_t length = 0;
      TokenId id = -1;
      if (rules_.mapped_bytes) {
        length = 1;
        id = byte_[uint8_t(piece[at])];
      } else if (TokenId whole = frozen_.longest(piece, at, length); whole >= 0) {
        id = whole | frozen_bit;
      } else {
        length = std::min(utf8_length(static_cast<unsigned char>(piece[at])), piece.size() - at);
        id = pieces_.find(piece.substr(at, length));
      }
      symbols.push_back({id, uint32_t(length)});
      at += length;
    }
    merging::merge(symbols,
                   [&](const Symbol& left, const Symbol& right, uint32_t begin) -> std::pair<uint32_t, TokenId> {
                     if (is_frozen(left) || is_frozen(right)) return {no_rank, -1};
                     TokenId whole = pieces_.find(piece.substr(begin, left.length + right.length));
                     if (whole < 0) return {no_rank, -1};
                     if (has_unused_ && rules_.kind_of(whole) == PieceKind::unused) parts[whole] = {left, right};
                     return {rules_.rank_of(whole), whole};
                   });
    size_t at = 0;
    for (const Symbol& symbol : symbols) add(symbol, piece, at, parts, out);
  }

  void add(const Symbol& symbol, std::string_view piece, size_t& at,
           const std::map<TokenId, std::pair<Symbol, Symbol>>& parts, std::vector<Token>& out) const {
    TokenId id = is_frozen(symbol) ? symbol.id & ~frozen_bit : symbol.id;
    if (id >= 0 && has_unused_ && rules_.kind_of(id) == PieceKind::unused) {
      if (auto made_of = parts.find(id); made_of != parts.end()) {
        Symbol left = made_of->second.first, right = made_of->second.second;
        add(left, piece, at, parts, out);
        return add(right, piece, at, parts, out);
      }
    }
    std::string_view text = piece.substr(at, symbol.length);
    at += symbol.length;
    if (id >= 0) return out.push_back({id, symbol.length});
    if (rules_.mapped_bytes) return;  // a byte that is missing in the vocabulary
    bool bytes = rules_.byte_fallback &&
                 std::all_of(text.begin(), text.end(), [&](char c) { return fallback_[uint8_t(c)] >= 0; });
    if (bytes) {
      for (char c : text) out.push_back({fallback_[uint8_t(c)], 1});
      return;
    }
    if (rules_.unknown < 0)
      refuse("tokenizer", "met a character that it does not know, and has no unknown token",
             "fetch the tokenizer again");
    if (!out.empty() && out.back().is_surface && at > symbol.length) {
      out.back().length += symbol.length;
      return;
    }
    out.push_back({rules_.unknown, symbol.length, true});
  }

  static constexpr TokenId frozen_bit = 1 << 30;
  static bool is_frozen(const Symbol& symbol) { return symbol.id >= 0 && (symbol.id & frozen_bit); }

  TextBpeRules rules_;
  Vocabulary pieces_;
  PrefixTrie frozen_;
  std::array<TokenId, 256> fallback_{}, byte_{};
  bool has_unused_ = false, cuts_ = true;
  WordMemory memory_;
  LongPieces long_;
};

}  // namespace

TextBpeRules ranks_by_score(const std::vector<double>& scores) {
  TextBpeRules out;
  std::vector<double> order = scores;
  std::sort(order.begin(), order.end(), std::greater<>());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  for (double score : scores)
    out.ranks.push_back(
        uint32_t(std::lower_bound(order.begin(), order.end(), score, std::greater<>()) - order.begin()));
  return out;
}

std::unique_ptr<const Model> make_text_bpe(TextBpeRules rules, ModelData data) {
  return std::make_unique<TextBpe>(std::move(rules), std::move(data));
}

}  // namespace easydel::text
