// Reads the messages of a SentencePiece model file without interpreting them.
#include "easydel/text/tokenizers/sentencepiece_file.h"

#include "easydel/base/error.h"
#include "easydel/text/tokenizers/protobuf.h"
#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

constexpr const char* fetch_model_again = "fetch the tokenizer again";

SentencePieceFile::Piece read_piece(std::string_view bytes, const std::string& name) {
  SentencePieceFile::Piece out;
  Protobuf message(bytes, name);
  for (Protobuf::Field field; message.next(field);) {
    if (field.number == 1) out.text = field.bytes;
    if (field.number == 2) out.score = field.as_float();
    if (field.number == 3) {
      if (field.value < 1 || field.value > 6)
        refuse(name, str("has a piece of the unknown kind ", field.value), fetch_model_again);
      out.kind = static_cast<PieceKind>(field.value);
    }
  }
  return out;
}

void read_trainer(std::string_view bytes, const std::string& name, SentencePieceFile& out) {
  Protobuf message(bytes, name);
  auto id = [](const Protobuf::Field& field) { return int64_t(int32_t(field.value)); };
  for (Protobuf::Field field; message.next(field);) switch (field.number) {
      case 3:
        if (field.value < 1 || field.value > 4)
          refuse(name, str("is a model of the unknown type ", field.value), fetch_model_again);
        out.type = static_cast<SentencePieceFile::Type>(field.value);
        break;
      case 24:
        out.treat_whitespace_as_suffix = field.value != 0;
        break;
      case 35:
        out.byte_fallback = field.value != 0;
        break;
      case 40:
        out.unk = id(field);
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
        out.unknown_surface = field.bytes;
        break;
      default:
        break;
    }
}

SentencePieceFile::Normalization read_normalization(std::string_view bytes, const std::string& name) {
  SentencePieceFile::Normalization out;
  Protobuf message(bytes, name);
  for (Protobuf::Field field; message.next(field);) {
    if (field.number == 2) out.charsmap = field.bytes;
    if (field.number == 3) out.add_dummy_prefix = field.value != 0;
    if (field.number == 4) out.remove_extra_whitespaces = field.value != 0;
    if (field.number == 5) out.escape_whitespaces = field.value != 0;
  }
  return out;
}

}  // namespace

SentencePieceFile parse_sentencepiece(std::string_view bytes, const std::string& name) {
  SentencePieceFile out;
  Protobuf message(bytes, name);
  for (Protobuf::Field field; message.next(field);) {
    if (field.number == 1) out.pieces.push_back(read_piece(field.bytes, name));
    if (field.number == 2) read_trainer(field.bytes, name, out);
    if (field.number == 3) out.normalizer = read_normalization(field.bytes, name);
    if (field.number == 5) out.denormalizer = read_normalization(field.bytes, name);
  }
  if (out.pieces.empty()) refuse(name, "is not a SentencePiece model: it has no pieces", fetch_model_again);
  if (out.pieces.size() >= 1 << 24) refuse(name, str("has ", out.pieces.size(), " pieces"), "at most 16777215");
  for (size_t i = 0; i < out.pieces.size(); ++i) {
    std::string_view text = out.pieces[i].text;
    if (text.empty() || valid_prefix(text) != text.size())
      refuse(name, str("piece ", i, " is empty or no UTF-8"), fetch_model_again);
  }
  return out;
}

}  // namespace easydel::text
