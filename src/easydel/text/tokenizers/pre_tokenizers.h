// The pre-tokenizers of tokenizer files: split a normalized text into the pieces that the model encodes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/text/tokenizers/normalized_text.h"
#include "easydel/text/tokenizers/scanners.h"

namespace easydel::text {

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(std::vector<NormalizedText>& pieces) const = 0;
  virtual bool makes_byte_level() const { return false; }
  virtual bool needs_origins() const { return false; }
};

// A chain of pre-tokenizers that only splits (and maps bytes). It runs directly on the bytes of the text.
class Cutter {
 public:
  // Appends the ends of the pieces that cover `text`.
  using Stage = std::function<void(std::string_view text, std::vector<uint32_t>& ends)>;
  void cut(std::string_view text, std::vector<uint32_t>& ends) const;

  std::vector<Stage> stages;  // each splits the pieces of the previous one; none: one piece
  bool byte_level = false;    // the pieces stand for mapped bytes
};

std::unique_ptr<const PreTokenizer> make_pre_tokenizer(const Value& node);
std::optional<Cutter> make_cutter(const Value& node);  // nullopt: the chain does more

}  // namespace easydel::text
