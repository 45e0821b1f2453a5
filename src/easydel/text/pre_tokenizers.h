// The pre-tokenizers of tokenizer files: how a normalized text is cut into the pieces that the model sees.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/text/normalized_text.h"
#include "easydel/text/scanners.h"

namespace easydel::text {

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(std::vector<NormalizedText>& pieces) const = 0;
  virtual bool makes_byte_level() const { return false; }
  virtual bool needs_origins() const { return false; }
};

// What a chain of pre-tokenizers comes down to where it only cuts (and maps bytes): it can run on the bytes of the text
// itself.
class Cutter {
 public:
  // Appends the ends of the pieces that cover `text`.
  using Stage = std::function<void(std::string_view text, std::vector<uint32_t>& ends)>;
  void cut(std::string_view text, std::vector<uint32_t>& ends) const;

  std::vector<Stage> stages;  // each cuts the pieces of the one before; none: one piece
  bool byte_level = false;    // the pieces are meant in mapped bytes
};

std::unique_ptr<const PreTokenizer> make_pre_tokenizer(const Value& node);
std::optional<Cutter> make_cutter(const Value& node);  // nullopt: the chain does more

}  // namespace easydel::text
