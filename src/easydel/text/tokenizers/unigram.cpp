// The unigram language model (arXiv:1804.10959): the most likely segmentation of a text, by Viterbi. Sums are doubles
// as in tokenizers' models/unigram, or floats as in SentencePiece's unigram_model.cc.
#include <algorithm>
#include <array>
#include <limits>

#include "easydel/base/error.h"
#include "easydel/text/tokenizers/json_fields.h"
#include "easydel/text/tokenizers/model.h"
#include "easydel/text/tokenizers/prefix_trie.h"
#include "easydel/text/tokenizers/scratch.h"
#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

constexpr double unknown_penalty = 10;
constexpr const char* no_unknown = "met a character that it does not know, and has no unknown token";

template <class Sum>
class Unigram final : public Model {
 public:
  Unigram(ModelData data, UnigramRules rules) : rules_(std::move(rules)) {
    vocabulary_ = std::move(data.vocabulary);
    scores_ = std::move(data.scores);
    vocabulary_.count_all(scores_.size());
    if (rules_.unknown >= int64_t(scores_.size()))
      refuse("tokenizer.json", str("'unk_id' is ", rules_.unknown, " and there are ", scores_.size(), " tokens"),
             "fetch the tokenizer again");
    std::vector<std::pair<std::string_view, int32_t>> keys;
    keys.reserve(scores_.size());
    auto kind = [&](size_t id) { return id < rules_.kinds.size() ? rules_.kinds[id] : PieceKind::normal; };
    double min_score = std::numeric_limits<float>::max(), max_score = std::numeric_limits<float>::min();
    for (size_t id = 0; id < scores_.size(); ++id) {
      if (kind(id) != PieceKind::normal) continue;
      min_score = std::min(min_score, scores_[id]);
      max_score = std::max(max_score, scores_[id]);
    }
    unknown_score_ = static_cast<Sum>(min_score) - static_cast<Sum>(unknown_penalty);
    for (size_t id = 0; id < scores_.size(); ++id) {
      if (kind(id) != PieceKind::normal && kind(id) != PieceKind::user_defined) continue;
      std::string_view token = vocabulary_.token(static_cast<TokenId>(id));
      keys.emplace_back(token, int32_t(id));
      // A user-defined piece beats every segmentation of the same characters.
      if (kind(id) == PieceKind::user_defined)
        scores_[id] = rules_.user_defined_is_zero ? 0 : double(float(token.size()) * float(max_score)) - 0.1;
    }
    trie_ = PrefixTrie(keys);
    for (int b = 0; b < 256; ++b) {
      char code[8];
      std::snprintf(code, sizeof code, "<0x%02X>", b);
      fallback_[b] = vocabulary_.find(code);
    }
  }

  ModelSection section() const override {
    if (std::find(rules_.kinds.begin(), rules_.kinds.end(), PieceKind::unused) != rules_.kinds.end())
      refuse("tokenizer.json", "has pieces that no text is cut into ('unused'), which only SentencePiece has");
    ModelSection out;
    out.options.set("type", Value::text("Unigram"));
    out.options.set("unk_id", rules_.unknown < 0 ? Value() : Value::integer(rules_.unknown));
    out.options.set("byte_fallback", Value::boolean(rules_.byte_fallback));
    out.scores = scores_;
    return out;
  }

  void tokenize(std::string_view piece, std::vector<Token>& out) const override {
    if (piece.empty()) return;
    struct Best {
      Sum score;
      uint32_t begin;
      TokenId id = -1;  // -1: no segmentation ends here yet
    };
    thread_local std::vector<Best> own_best;
    const Scratch of_best(own_best);
    std::vector<Best>& best = of_best.items;
    best.assign(piece.size() + 1, Best{});
    auto offer = [&](size_t begin, size_t end, double score, TokenId id) {
      Best& there = best[end];
      if (there.id < 0 || score > there.score) there = {static_cast<Sum>(score), uint32_t(begin), id};
    };
    for (size_t at = 0; at < piece.size();) {
      size_t length = std::min(utf8_length(static_cast<unsigned char>(piece[at])), piece.size() - at);
      Sum here = at ? best[at].score : 0;
      bool single = false;
      trie_.each_prefix(piece, at, [&](size_t found, int32_t id) {
        offer(at, at + found, scores_[id] + here, id);
        single = single || found == length;
      });
      if (!single) {
        if (rules_.unknown < 0) refuse("tokenizer", no_unknown, "fetch the tokenizer again");
        offer(at, at + length, unknown_score_ + here, static_cast<TokenId>(rules_.unknown));
      }
      at += length;
    }
    thread_local std::vector<Token> own_backwards;
    const Scratch of_backwards(own_backwards);
    std::vector<Token>& backwards = of_backwards.items;
    for (size_t end = piece.size(); end > 0; end = best[end].begin) {
      auto length = uint32_t(end - best[end].begin);
      // Adjacent unknown characters are one token.
      if (best[end].id == rules_.unknown && !backwards.empty() && backwards.back().id == rules_.unknown)
        backwards.back().length += length;
      else
        backwards.push_back({best[end].id, length});
    }
    size_t at = 0;
    for (size_t i = backwards.size(); i-- > 0;) {
      Token token = backwards[i];
      if (token.id == rules_.unknown)
        add_unknown(piece.substr(at, token.length), out);
      else
        out.push_back(token);
      at += token.length;
    }
  }

 private:
  void add_unknown(std::string_view text, std::vector<Token>& out) const {
    TokenId id = vocabulary_.find(text);
    if (id >= 0 && rules_.kinds.empty()) return out.push_back({id, uint32_t(text.size())});
    bool bytes = rules_.byte_fallback &&
                 std::all_of(text.begin(), text.end(), [&](char c) { return fallback_[uint8_t(c)] >= 0; });
    if (!bytes) return out.push_back({static_cast<TokenId>(rules_.unknown), uint32_t(text.size()), true});
    // Each of the byte tokens covers the whole run.
    auto length = uint32_t(text.size());
    for (char c : text) {
      out.push_back({fallback_[uint8_t(c)], length});
      length = 0;
    }
  }

  UnigramRules rules_;
  std::vector<double> scores_;
  Sum unknown_score_ = 0;
  PrefixTrie trie_;
  std::array<TokenId, 256> fallback_{};
};

}  // namespace

std::unique_ptr<const Model> make_unigram(const Value& options, ModelData data) {
  UnigramRules rules;
  rules.unknown = int_field(options, "unk_id", -1);
  rules.byte_fallback = bool_field(options, "byte_fallback", false);
  return std::make_unique<Unigram<double>>(std::move(data), std::move(rules));
}

std::unique_ptr<const Model> make_unigram(UnigramRules rules, ModelData data) {
  if (rules.in_floats) return std::make_unique<Unigram<float>>(std::move(data), std::move(rules));
  return std::make_unique<Unigram<double>>(std::move(data), std::move(rules));
}

}  // namespace easydel::text
