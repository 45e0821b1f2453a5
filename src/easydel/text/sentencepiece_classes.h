// Which classes of transformers number the pieces of a SentencePiece model anew, or put steps of Hugging Face's around
// them. The figures are those of transformers 5: the classes' tokenization_*.py, and convert_slow_tokenizer.py.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "easydel/text/formats.h"

namespace easydel::text {

struct SentencePieceClass {
  enum class Numbering : uint8_t {
    file,       // as the pieces stand there
    fairseq,    // bos pad eos unk, the pieces but three, languages, mask
    nllb,       // bos pad eos unk, all other pieces
    seamless,   // <pad> <unk> <s> </s>, and the pieces one later
    camembert,  // five tokens, the pieces but one, mask
    pegasus,    // pad eos, two masks, <unk_2> ..., the pieces but two
    sentinels,  // the pieces, <extra_id_99> ... <extra_id_0>
  };
  using Names = NamedTokens::Names;

  std::string_view name, families;  // families: model types of config.json
  Numbering numbering = Numbering::file;
  bool merges = false;  // byte pairs; else unigrams
  // The unknown token: this id, -1 for the file's; where it is looked for by name, what counts if it is not found.
  int64_t unknown = 3;
  bool finds_unknown = false;
  Names named;                                // as NamedTokens::keys; "": none
  NamedTokens::Key first = NamedTokens::bos;  // the token that fairseq's numbering begins with
  bool mask_takes_blank = false, mask_is_normalized = false;
  // Special tokens of the class beside those: languages (25 or 52 of them, with ids of fairseq's numbering), and as
  // many <madeupword0> ...
  std::span<const std::string_view> languages = {};
  int made_up = 0;
  bool all_special = false;  // what the file's user defined too
  // JSON of tokenizer.json, one a line, or "charsmap" for the file's map. "key?step" stands where the config's key is
  // true, "key!step" where it is false; `lowers` and `keeps_accents` are what the keys are where it does not say.
  std::string_view normalizers = {};
  std::string_view without_charsmap = {};  // the normalizers of a file without a map, where those are others
  bool lowers = false, keeps_accents = false;
  std::string_view pre_tokenizers = "WhitespaceSplit\nMetaspace";
  std::string_view prefix = "always";                     // Metaspace's prepend_scheme ...
  std::string_view without_prefix = "always";             // ... and with add_prefix_space: false
  std::string_view single = {}, pair = {};                // as read_frame reads them; "lang": the language
  bool yields = false;                                    // as Frame's
  std::string_view legacy_single = {}, legacy_pair = {};  // with legacy_behaviour
  std::string_view language_key = "src_lang", language = "en_XX";
  bool language_keeps_name = false;  // as FrameStep's keeps_content
};

}  // namespace easydel::text
