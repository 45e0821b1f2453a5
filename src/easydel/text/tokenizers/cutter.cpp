// Pre-tokenizers that only split, as stages over the bytes of a text.
#include <array>
#include <memory>

#include "easydel/text/tokenizers/byte_level.h"
#include "easydel/text/tokenizers/json_fields.h"
#include "easydel/text/tokenizers/pre_tokenizers.h"
#include "easydel/text/tokenizers/regex.h"
#include "easydel/text/tokenizers/scratch.h"

namespace easydel::text {
namespace {

// Splits at characters for which `is` is true: each is a piece (Isolated), or each run of them (Contiguous). With
// mapped bytes, each byte is a character.
Cutter::Stage by_character(bool (*is)(char32_t), bool contiguous, bool mapped) {
  std::array<bool, 256> of_byte{};
  for (int byte = 0; byte < 256; ++byte)
    of_byte[byte] = is(mapped ? character_of_byte(uint8_t(byte)) : static_cast<char32_t>(byte));
  return [is, contiguous, mapped, of_byte](std::string_view text, std::vector<uint32_t>& ends) {
    bool before = false;
    for (size_t at = 0; at < text.size();) {
      size_t from = at;
      auto lead = uint8_t(text[at]);
      bool here = mapped || lead < 0x80 ? (++at, of_byte[lead]) : is(next_character(text, at));
      if (from > 0 && (here != before || (here && !contiguous))) ends.push_back(uint32_t(from));
      before = here;
    }
    if (!text.empty()) ends.push_back(uint32_t(text.size()));
  };
}

bool add_split(const Value& node, Cutter& out) {
  const Value* pattern = node.find("pattern");
  const Value* regex = pattern ? pattern->find("Regex") : nullptr;
  if (!regex) return false;
  std::string behavior = string_field(node, "behavior", "Isolated");
  Scanner scan = out.byte_level ? nullptr : scanner_for(regex->scalar);
  // The scanners' pieces cover the whole text, so isolating matches and removing the gaps is the same.
  if (behavior != "Isolated" && !(scan && behavior == "Removed" && bool_field(node, "invert", false))) return false;
  if (scan) {
    out.stages.emplace_back(scan);
    return true;
  }
  auto compiled = std::make_shared<const Regex>(regex->scalar);
  if (out.byte_level && !compiled->is_fast()) return false;
  out.stages.emplace_back([compiled, mapped = out.byte_level](std::string_view text, std::vector<uint32_t>& ends) {
    compiled->cut(text, mapped, ends);
  });
  return true;
}

bool add_stages(const Value& node, Cutter& out) {
  std::string type = string_field(node, "type");
  if (type == "Sequence") {
    for (const Value& part : list_field(node, "pretokenizers").items)
      if (!add_stages(part, out)) return false;
    return true;
  }
  if (type == "Split") return add_split(node, out);
  if (type == "ByteLevel") {
    if (out.byte_level || bool_field(node, "add_prefix_space", true)) return false;
    if (bool_field(node, "use_regex", true)) out.stages.emplace_back(scanner_for(gpt2_pattern));
    out.byte_level = true;
    return true;
  }
  if (type == "Digits") {
    out.stages.push_back(by_character(is_number, !bool_field(node, "individual_digits", false), out.byte_level));
    return true;
  }
  if (type == "Punctuation") {
    std::string behavior = string_field(node, "behavior", "Isolated");
    if (behavior != "Isolated" && behavior != "Contiguous") return false;
    out.stages.push_back(by_character(is_punctuation, behavior == "Contiguous", out.byte_level));
    return true;
  }
  return false;
}

}  // namespace

void Cutter::cut(std::string_view text, std::vector<uint32_t>& ends) const {
  if (text.empty()) return;
  if (stages.empty()) return ends.push_back(uint32_t(text.size()));
  if (stages.size() == 1) return stages[0](text, ends);
  thread_local std::vector<uint32_t> own_pieces, own_cuts;
  const Scratch of_pieces(own_pieces), of_cuts(own_cuts);
  std::vector<uint32_t>&pieces = of_pieces.items, &cuts = of_cuts.items;
  pieces.assign(1, uint32_t(text.size()));
  for (const Stage& stage : stages) {
    cuts.clear();
    uint32_t begin = 0;
    for (uint32_t end : pieces) {
      size_t before = cuts.size();
      stage(text.substr(begin, end - begin), cuts);
      for (size_t i = before; i < cuts.size(); ++i) cuts[i] += begin;
      begin = end;
    }
    pieces.swap(cuts);
  }
  ends.insert(ends.end(), pieces.begin(), pieces.end());
}

std::optional<Cutter> make_cutter(const Value& node) {
  Cutter out;
  if (!add_stages(node, out)) return std::nullopt;
  return out;
}

}  // namespace easydel::text
