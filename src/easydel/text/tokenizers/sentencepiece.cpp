// A SentencePiece model, run as by its own library.
#include "easydel/base/error.h"
#include "easydel/text/tokenizers/formats.h"
#include "easydel/text/tokenizers/json_fields.h"
#include "easydel/text/tokenizers/sentencepiece_file.h"
#include "easydel/text/tokenizers/sentencepiece_steps.h"
#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

// A word or character model: the text between blanks (or each character) is a piece or unknown.
class WholePieces final : public Model {
 public:
  WholePieces(ModelData data, TokenId unknown, bool characters) : unknown_(unknown), characters_(characters) {
    vocabulary_ = std::move(data.vocabulary);
  }
  ModelSection section() const override {
    refuse("tokenizer.json", "is a SentencePiece model of whole words or characters");
  }
  void tokenize(std::string_view text, std::vector<Token>& out) const override {
    constexpr std::string_view blank = "\xE2\x96\x81";
    bool joins = false;
    for (size_t at = 0; at < text.size();) {
      size_t length = utf8_length(static_cast<unsigned char>(text[at]));
      if (!characters_) length = text.find(blank, at + 1) - at;
      std::string_view piece = text.substr(at, length);
      at += piece.size();
      TokenId id = vocabulary_.find(piece);
      if (id < 0 && joins) {
        out.back().length += uint32_t(piece.size());
        continue;
      }
      out.push_back({id >= 0 ? id : unknown_, uint32_t(piece.size()), id < 0});
      joins = id < 0;
    }
  }

 private:
  TokenId unknown_;
  bool characters_;
};

std::unique_ptr<const Model> make_model(const SentencePieceFile& file, ModelData data, std::vector<PieceKind> kinds,
                                        TokenId unknown) {
  if (file.type == SentencePieceFile::Type::unigram) {
    UnigramRules rules;
    rules.unknown = unknown;
    rules.byte_fallback = file.byte_fallback;
    rules.in_floats = true;
    rules.kinds = std::move(kinds);
    return make_unigram(std::move(rules), std::move(data));
  }
  if (file.type == SentencePieceFile::Type::bpe) {
    TextBpeRules rules = ranks_by_score(data.scores);
    rules.kinds = std::move(kinds);
    rules.byte_fallback = file.byte_fallback;
    rules.unknown = unknown;
    return make_text_bpe(std::move(rules), std::move(data));
  }
  return std::make_unique<WholePieces>(std::move(data), unknown, file.type == SentencePieceFile::Type::character);
}

SentencePieceRules rules_of(const SentencePieceFile::Normalization& given) {
  SentencePieceRules rules;
  if (!given.charsmap.empty()) rules.charsmap = Charsmap(given.charsmap);
  rules.add_dummy_prefix = given.add_dummy_prefix;
  rules.remove_extra_whitespaces = given.remove_extra_whitespaces;
  rules.escape_whitespaces = given.escape_whitespaces;
  return rules;
}

}  // namespace

SentencePieces read_pieces(std::string_view bytes, const std::string& name) {
  const SentencePieceFile file = parse_sentencepiece(bytes, name);
  SentencePieces out;
  out.byte_pairs = file.type == SentencePieceFile::Type::bpe;
  for (const SentencePieceFile::Piece& piece : file.pieces) {
    out.scores.push_back(piece.score);
    out.kinds.push_back(piece.kind);
  }
  return out;
}

ReadTokenizer read_sentencepiece(std::string_view bytes, const std::string& name, bool prefix_only_at_start) try {
  SentencePieceFile file = parse_sentencepiece(bytes, name);
  SentencePieceRules rules = rules_of(file.normalizer);
  rules.treat_whitespace_as_suffix = file.treat_whitespace_as_suffix;
  rules.prefix_only_at_start = prefix_only_at_start;
  rules.unknown_surface = file.unknown_surface;
  ReadTokenizer out;
  ModelData data;
  data.vocabulary.reserve(file.pieces.size(), bytes.size());
  std::vector<PieceKind> kinds;
  std::vector<AddedToken> added;
  for (size_t i = 0; i < file.pieces.size(); ++i) {
    const SentencePieceFile::Piece& piece = file.pieces[i];
    auto id = static_cast<TokenId>(i);
    if (data.vocabulary.find(piece.text) >= 0)
      refuse(name, str("the piece '", piece.text, "' is there twice"), fetch_tokenizer_again);
    data.vocabulary.add(piece.text, id);
    data.scores.push_back(piece.score);
    kinds.push_back(piece.kind);
    if (piece.kind == PieceKind::unknown) {
      if (out.unk) refuse(name, "has two unknown pieces", fetch_tokenizer_again);
      out.unk = id;
      rules.unknown = piece.text;
    }
    if (piece.kind == PieceKind::control) added.push_back(special_token(std::string(piece.text), id));
    if (piece.kind == PieceKind::user_defined) rules.user_defined.emplace_back(piece.text);
  }
  if (!out.unk) refuse(name, "has no unknown piece", fetch_tokenizer_again);
  auto control = [&](int64_t id) -> std::optional<TokenId> {
    if (id < 0 || id >= int64_t(kinds.size()) || kinds[size_t(id)] != PieceKind::control) return std::nullopt;
    return static_cast<TokenId>(id);
  };
  out.bos = control(file.bos);
  out.eos = control(file.eos);
  out.pad = control(file.pad);
  out.parts.model = make_model(file, std::move(data), std::move(kinds), *out.unk);
  out.parts.added.add(added, out.parts.model->vocabulary(), nullptr);
  out.parts.decoder = make_sentencepiece_decoder(
      rules, file.denormalizer.charsmap.empty() ? nullptr : make_sentencepiece_normalizer(rules_of(file.denormalizer)));
  out.parts.steps = sentencepiece_step_texts(rules, file.normalizer.charsmap, !file.denormalizer.charsmap.empty());
  out.parts.normalizer = make_sentencepiece_normalizer(std::move(rules));
  out.parts.cutter = Cutter{};
  return out;
} catch (const UserError& error) {
  rethrow_at(name, error);
}

}  // namespace easydel::text
