// Functions shared by the readers of other files.
#include "easydel/text/tokenizers/formats.h"

#include "easydel/base/error.h"

namespace easydel::text {

AddedToken special_token(std::string content, TokenId id) {
  AddedToken out;
  out.id = id;
  out.content = std::move(content);
  out.special = true;
  out.normalized = false;
  return out;
}

void NamedTokens::fill(const Names& names) {
  for (size_t i = 0; i < names.size(); ++i)
    if (!given[i] && !names[i].empty()) tokens[i] = special_token(std::string(names[i]));
}

std::string NamedTokens::content(Key key, const Names& names) const {
  return tokens[key] ? tokens[key]->content : std::string(names[key]);
}

std::vector<FrameStep> read_frame(std::string_view words, const NamedTokens& named, const NamedTokens::Names& names,
                                  const std::function<void(std::string_view, FrameStep&)>& token) {
  std::vector<FrameStep> out;
  each_part(words, ' ', [&](std::string_view word) {
    FrameStep step;
    if (const size_t colon = word.find(':'); colon != std::string_view::npos) {
      step.type = uint8_t(word[colon + 1] - '0');
      word = word.substr(0, colon);
    }
    if (const size_t equals = word.find('='); equals != std::string_view::npos) {
      step.token.id = word[equals + 1] - '0';
      word = word.substr(0, equals);
    }
    const auto key = std::find(NamedTokens::keys.begin(), NamedTokens::keys.end(), str(word, "_token"));
    if (word == "A" || word == "B")
      step.text = word == "A" ? 0 : 1;
    else if (key != NamedTokens::keys.end())
      step.token.content = named.content(static_cast<NamedTokens::Key>(key - NamedTokens::keys.begin()), names);
    else
      token(word, step);
    out.push_back(std::move(step));
  });
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
  parts.steps = {std::string(normalizer), std::string(pre_tokenizer), std::string(decoder)};
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
