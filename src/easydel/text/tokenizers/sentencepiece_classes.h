// The classes of transformers that renumber the pieces of a SentencePiece model, or add steps of Hugging Face's.
// Source: transformers 5, the classes' tokenization_*.py and convert_slow_tokenizer.py.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "easydel/text/tokenizers/formats.h"

namespace easydel::text {

struct SentencePieceClass {
  enum class Numbering : uint8_t {
    file,       // the file's order
    fairseq,    // bos pad eos unk, the pieces except three, languages, mask
    nllb,       // bos pad eos unk, all other pieces
    seamless,   // <pad> <unk> <s> </s>, then the pieces, shifted by one
    camembert,  // five tokens, the pieces except one, mask
    pegasus,    // pad eos, two masks, <unk_2> ..., the pieces except two
    sentinels,  // the pieces, <extra_id_99> ... <extra_id_0>
  };
  using Names = NamedTokens::Names;

  std::string_view name, families;  // families: model types of config.json
  Numbering numbering = Numbering::file;
  bool merges = false;  // byte pairs; false: unigrams
  // The id of the unknown token; -1: the file's. If it is searched by name, the fallback.
  int64_t unknown = 3;
  bool finds_unknown = false;
  Names named;                                // as NamedTokens::keys; "": none
  NamedTokens::Key first = NamedTokens::bos;  // the token that fairseq's numbering begins with
  bool mask_takes_blank = false, mask_is_normalized = false;
  // Additional special tokens of the class: languages (25 or 52, with ids of fairseq's numbering), and this many
  // <madeupword0> ...
  std::span<const std::string_view> languages = {};
  int made_up = 0;
  bool all_special = false;  // user-defined pieces of the file are special, too
  // JSON of tokenizer.json, one step per line, or "charsmap" for the file's map. "key?step" applies if the
  // configuration's key is true, "key!step" if it is false; `lowers` and `keeps_accents` are the defaults of the keys.
  std::string_view normalizers = {};
  std::string_view without_charsmap = {};  // the normalizers for a file without a map, if they differ
  bool lowers = false, keeps_accents = false;
  std::string_view pre_tokenizers = "WhitespaceSplit\nMetaspace";
  std::string_view prefix = "always";                     // Metaspace's prepend_scheme ...
  std::string_view without_prefix = "always";             // ... and with add_prefix_space: false
  std::string_view single = {}, pair = {};                // frames as in read_frame; "lang": the language
  bool yields = false;                                    // as in Frame
  std::string_view legacy_single = {}, legacy_pair = {};  // with legacy_behaviour
  std::string_view language_key = "src_lang", language = "en_XX";
  bool language_keeps_name = false;  // as FrameStep::keeps_content
};

}  // namespace easydel::text
