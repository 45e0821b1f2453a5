// Reading a SentencePiece model file. Format: google/sentencepiece src/sentencepiece_model.proto.
#include "easydel/base/error.h"
#include "easydel/text/formats.h"
#include "easydel/text/protobuf.h"
#include "easydel/text/sentencepiece_steps.h"
#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

constexpr const char* again = "fetch the tokenizer again";

enum class ModelType : uint8_t { unigram = 1, bpe = 2, word = 3, character = 4 };

struct Piece {
  std::string_view text;
  float score = 0;
  PieceKind kind = PieceKind::normal;
};

struct File {
  std::vector<Piece> pieces;
  ModelType type = ModelType::unigram;
  bool byte_fallback = false;
  int64_t bos = 1, eos = 2, pad = -1;
  SentencePieceRules rules;
};

Piece read_piece(std::string_view bytes, const std::string& name) {
  Piece out;
  Protobuf message(bytes, name);
  for (Protobuf::Field field; message.next(field);) {
    if (field.number == 1) out.text = field.bytes;
    if (field.number == 2) out.score = field.as_float();
    if (field.number == 3) {
      if (field.value < 1 || field.value > 6) refuse(name, str("has a piece of the unknown kind ", field.value), again);
      out.kind = static_cast<PieceKind>(field.value);
    }
  }
  return out;
}

void read_trainer(std::string_view bytes, const std::string& name, File& out) {
  Protobuf message(bytes, name);
  auto id = [](const Protobuf::Field& field) { return static_cast<int64_t>(static_cast<int32_t>(field.value)); };
  for (Protobuf::Field field; message.next(field);) switch (field.number) {
      case 3:
        if (field.value < 1 || field.value > 4)
          refuse(name, str("is a model of the unknown type ", field.value), again);
        out.type = static_cast<ModelType>(field.value);
        break;
      case 24:
        out.rules.treat_whitespace_as_suffix = field.value != 0;
        break;
      case 35:
        out.byte_fallback = field.value != 0;
        break;
      case 41:
        out.bos = id(field);
        break;
      case 42:
        out.eos = id(field);
        break;
      case 43:
        out.pad = id(field);
        break;
      case 44:
        out.rules.unknown_surface = field.bytes;
        break;
      default:
        break;
    }
}

void read_normalizer(std::string_view bytes, const std::string& name, SentencePieceRules& out) {
  Protobuf message(bytes, name);
  for (Protobuf::Field field; message.next(field);) {
    if (field.number == 2 && !field.bytes.empty()) out.charsmap = Charsmap(field.bytes);
    if (field.number == 3) out.add_dummy_prefix = field.value != 0;
    if (field.number == 4) out.remove_extra_whitespaces = field.value != 0;
    if (field.number == 5) out.escape_whitespaces = field.value != 0;
  }
}

File read_file(std::string_view bytes, const std::string& name) {
  File out;
  Protobuf message(bytes, name);
  for (Protobuf::Field field; message.next(field);) {
    if (field.number == 1) out.pieces.push_back(read_piece(field.bytes, name));
    if (field.number == 2) read_trainer(field.bytes, name, out);
    if (field.number == 3) read_normalizer(field.bytes, name, out.rules);
  }
  if (out.pieces.empty()) refuse(name, "is no SentencePiece model: it has no pieces", again);
  if (out.pieces.size() >= 1 << 24) refuse(name, str("has ", out.pieces.size(), " pieces"), "at most 16777215");
  return out;
}

// A model of whole words or characters: what stands between blanks (or each character) is a piece or unknown.
class WholePieces final : public Model {
 public:
  WholePieces(ModelData data, TokenId unknown, bool characters) : unknown_(unknown), characters_(characters) {
    vocabulary_ = std::move(data.vocabulary);
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
        out.back().length += static_cast<uint32_t>(piece.size());
        continue;
      }
      out.push_back({id >= 0 ? id : unknown_, static_cast<uint32_t>(piece.size()), id < 0});
      joins = id < 0;
    }
  }

 private:
  TokenId unknown_;
  bool characters_;
};

std::unique_ptr<const Model> make_model(File& file, ModelData data, std::vector<PieceKind> kinds, TokenId unknown) {
  if (file.type == ModelType::unigram) {
    UnigramRules rules;
    rules.unknown = unknown;
    rules.byte_fallback = file.byte_fallback;
    rules.in_floats = true;
    rules.kinds = std::move(kinds);
    return make_unigram(std::move(rules), std::move(data));
  }
  if (file.type == ModelType::bpe) {
    TextBpeRules rules = ranks_by_score(data.scores);
    rules.kinds = std::move(kinds);
    rules.byte_fallback = file.byte_fallback;
    rules.unknown = unknown;
    return make_text_bpe(std::move(rules), std::move(data));
  }
  return std::make_unique<WholePieces>(std::move(data), unknown, file.type == ModelType::character);
}

}  // namespace

SentencePieces read_pieces(std::string_view bytes, const std::string& name) {
  const File file = read_file(bytes, name);
  SentencePieces out;
  out.byte_pairs = file.type == ModelType::bpe;
  for (const Piece& piece : file.pieces) {
    out.scores.push_back(piece.score);
    out.kinds.push_back(piece.kind);
  }
  return out;
}

ReadTokenizer read_sentencepiece(std::string_view bytes, const std::string& name, bool prefix_only_at_start) try {
  File file = read_file(bytes, name);
  file.rules.prefix_only_at_start = prefix_only_at_start;
  ReadTokenizer out;
  ModelData data;
  data.vocabulary.reserve(file.pieces.size(), bytes.size());
  std::vector<PieceKind> kinds;
  std::vector<AddedToken> added;
  for (size_t i = 0; i < file.pieces.size(); ++i) {
    const Piece& piece = file.pieces[i];
    auto id = static_cast<TokenId>(i);
    if (piece.text.empty() || valid_prefix(piece.text) != piece.text.size())
      refuse(name, str("piece ", i, " is empty or no UTF-8"), again);
    if (data.vocabulary.find(piece.text) >= 0) refuse(name, str("the piece '", piece.text, "' is there twice"), again);
    data.vocabulary.add(piece.text, id);
    data.scores.push_back(piece.score);
    kinds.push_back(piece.kind);
    if (piece.kind == PieceKind::unknown) {
      if (out.unk) refuse(name, "has two unknown pieces", again);
      out.unk = id;
      file.rules.unknown = piece.text;
    }
    if (piece.kind == PieceKind::control) added.push_back(special_token(std::string(piece.text), id));
    if (piece.kind == PieceKind::user_defined) file.rules.user_defined.emplace_back(piece.text);
  }
  if (!out.unk) refuse(name, "has no unknown piece", again);
  auto control = [&](int64_t id) -> std::optional<TokenId> {
    if (id < 0 || id >= static_cast<int64_t>(kinds.size()) || kinds[static_cast<size_t>(id)] != PieceKind::control)
      return std::nullopt;
    return static_cast<TokenId>(id);
  };
  out.bos = control(file.bos);
  out.eos = control(file.eos);
  out.pad = control(file.pad);
  out.parts.model = make_model(file, std::move(data), std::move(kinds), *out.unk);
  out.parts.added.add(added, out.parts.model->vocabulary(), nullptr);
  out.parts.decoder = make_sentencepiece_decoder(file.rules);
  out.parts.normalizer = make_sentencepiece_normalizer(std::move(file.rules));
  out.parts.cutter = Cutter{};
  return out;
} catch (const UserError& error) {
  std::string text = error.what();
  constexpr std::string_view placeholder = "tokenizer.json: ";
  throw UserError(text.starts_with(placeholder) ? name + ": " + text.substr(placeholder.size()) : text);
}

}  // namespace easydel::text
