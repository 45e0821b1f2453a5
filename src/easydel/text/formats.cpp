// What the readers of other files share.
#include "easydel/text/formats.h"

namespace easydel::text {

AddedToken special_token(std::string content, TokenId id) {
  AddedToken out;
  out.id = id;
  out.content = std::move(content);
  out.special = true;
  out.normalized = false;
  return out;
}

void set_steps(TokenizerParts& parts, std::string_view normalizer, std::string_view pre_tokenizer,
               std::string_view decoder) {
  if (!normalizer.empty()) parts.normalizer = make_normalizer(parse_json(normalizer));
  parts.cutter = Cutter{};
  if (!pre_tokenizer.empty()) {
    Value node = parse_json(pre_tokenizer);
    parts.pre_tokenizer = make_pre_tokenizer(node);
    parts.cutter = make_cutter(node);
  }
  parts.byte_level = (parts.pre_tokenizer && parts.pre_tokenizer->makes_byte_level()) ||
                     (parts.normalizer && parts.normalizer->makes_byte_level());
  if (!decoder.empty()) parts.decoder = make_decoder(parse_json(decoder));
}

void set_byte_level(TokenizerParts& parts, const std::vector<std::string>& patterns) {
  Value steps = Value::list();
  for (const std::string& pattern : patterns) {
    Value split = parse_json(R"({"type": "Split", "pattern": {}, "behavior": "Isolated", "invert": false})");
    split.find("pattern")->set("Regex", Value::text(pattern));
    steps.items.push_back(std::move(split));
  }
  steps.items.push_back(
      parse_json(R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false})"));
  Value node = parse_json(R"({"type": "Sequence", "pretokenizers": []})");
  *node.find("pretokenizers") = std::move(steps);
  set_steps(parts, "", to_json(node), R"({"type": "ByteLevel"})");
}

}  // namespace easydel::text
