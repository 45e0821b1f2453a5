// The kinds of post-processors, named after "type" in the file.
#include "easydel/text/tokenizers/post_processors.h"

#include <map>

#include "easydel/text/tokenizers/byte_level.h"
#include "easydel/text/tokenizers/json_fields.h"
#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

// One step of a template: a special token, or text A (0) or B (1).
struct Step {
  std::vector<TokenId> ids;
  std::vector<std::string> tokens;
  int sequence = -1;
  uint8_t type = 0;
};

Encoding special(const Step& step) {
  Encoding out;
  out.ids = step.ids;
  out.tokens = step.tokens;
  out.offsets.assign(step.ids.size(), {0, 0});
  out.special_tokens_mask.assign(step.ids.size(), 1);
  out.type_ids.assign(step.ids.size(), step.type);
  return out;
}

void trim_offsets(Encoding& encoding, bool add_prefix_space);

struct Template : PostProcessor {
  std::vector<Step> single, pair;
  std::optional<bool> trim;  // as in Frame

  void apply(std::vector<Encoding>& parts, bool add_special_tokens) const override {
    std::vector<Encoding> out;
    if (trim)
      for (Encoding& part : parts) trim_offsets(part, *trim);
    for (const Step& step : parts.size() > 1 ? pair : single) {
      if (step.sequence < 0) {
        if (add_special_tokens) out.push_back(special(step));
      } else if (size_t(step.sequence) < parts.size()) {
        out.push_back(parts[step.sequence]);
        out.back().type_ids.assign(out.back().ids.size(), step.type);
      }
    }
    parts = std::move(out);
  }
  int64_t added(size_t texts) const override {
    int64_t count = 0;
    for (const Step& step : texts > 1 ? pair : single) count += int64_t(step.ids.size());
    return count;
  }
  Value as_json() const override;
};

Value ids_and_tokens(const Step& step) {
  Value ids = Value::list(), tokens = Value::list(), out = Value::map();
  for (const TokenId id : step.ids) ids.items.push_back(Value::integer(id));
  for (const std::string& token : step.tokens) tokens.items.push_back(Value::text(token));
  out.set("ids", std::move(ids));
  out.set("tokens", std::move(tokens));
  return out;
}

Value byte_level_json(bool trims, bool add_prefix_space) {
  Value out = parse_json(R"({"type": "ByteLevel"})");
  out.set("add_prefix_space", Value::boolean(add_prefix_space));
  out.set("trim_offsets", Value::boolean(trims));
  out.set("use_regex", Value::boolean(true));
  return out;
}

Value Template::as_json() const {
  Value specials = Value::map();
  const auto steps_json = [&](const std::vector<Step>& steps) {
    Value out = Value::list();
    for (const Step& step : steps) {
      Value body = Value::map(), item = Value::map();
      body.set("id", Value::text(step.sequence == 0 ? "A" : step.sequence == 1 ? "B" : step.tokens.front()));
      body.set("type_id", Value::integer(step.type));
      if (step.sequence < 0) {
        Value special = Value::map();
        special.set("id", Value::text(step.tokens.front()));
        const Value named = ids_and_tokens(step);
        special.set("ids", *named.find("ids"));
        special.set("tokens", *named.find("tokens"));
        specials.set(step.tokens.front(), std::move(special));
      }
      item.set(step.sequence < 0 ? "SpecialToken" : "Sequence", std::move(body));
      out.items.push_back(std::move(item));
    }
    return out;
  };
  Value out = parse_json(R"({"type": "TemplateProcessing"})");
  out.set("single", steps_json(single));
  out.set("pair", steps_json(pair));
  out.set("special_tokens", std::move(specials));
  if (!trim) return out;
  Value both = parse_json(R"({"type": "Sequence", "processors": []})");
  both.find("processors")->items = {byte_level_json(true, *trim), std::move(out)};
  return both;
}

std::vector<Step> read_steps(const Value& node, std::string_view key, const std::map<std::string, Step>& specials) {
  std::vector<Step> out;
  for (const Value& item : list_field(node, key).items) {
    const Value* sequence = item.find("Sequence");
    const Value* token = item.find("SpecialToken");
    const Value& body = sequence ? *sequence : token ? *token : item;
    std::string id = string_field(body, "id");
    Step step;
    if (sequence) {
      if (id != "A" && id != "B")
        refuse("tokenizer.json", "a template has the sequence '" + id + "'", "it must be A or B");
      step.sequence = id == "A" ? 0 : 1;
    } else {
      auto it = specials.find(id);
      if (it == specials.end())
        refuse("tokenizer.json", "a template has the special token '" + id + "', which its 'special_tokens' lack",
               "fetch the tokenizer again");
      step = it->second;
    }
    step.type = uint8_t(int_field(body, "type_id", 0));
    out.push_back(std::move(step));
  }
  return out;
}

std::unique_ptr<const PostProcessor> make_template(const Value& node) {
  std::map<std::string, Step> specials;
  if (const Value* tokens = node.find("special_tokens"); tokens && tokens->is_map())
    for (auto& [name, item] : tokens->entries) {
      Step step;
      for (const Value& id : list_field(item, "ids").items)
        step.ids.push_back(static_cast<TokenId>(id.as_int().value_or(0)));
      for (const Value& token : list_field(item, "tokens").items) step.tokens.push_back(token.scalar);
      if (step.ids.size() != step.tokens.size())
        refuse("tokenizer.json", "the special token '" + name + "' has not as many ids as tokens",
               "fetch the tokenizer again");
      specials.emplace(name, std::move(step));
    }
  auto out = std::make_unique<Template>();
  out->single = read_steps(node, "single", specials);
  out->pair = read_steps(node, "pair", specials);
  return out;
}

// Offsets without the spaces at both ends of a token.
void trim_offsets(Encoding& encoding, bool add_prefix_space) {
  const char32_t blank = character_of_byte(' ');
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    std::u32string token = to_utf32(encoding.tokens[i]);
    auto is_blank = [&](char32_t c) { return c == blank || is_space(c); };
    int64_t leading = 0, trailing = 0;
    auto size = int64_t(token.size());
    while (leading < size && is_blank(token[leading])) ++leading;
    while (trailing < size && is_blank(token[size - 1 - trailing])) ++trailing;
    auto& [begin, end] = encoding.offsets[i];
    if (leading > 0) {
      // A single space may be the one that was added before the text, which is not part of it.
      if ((i == 0 || begin == 0) && add_prefix_space && leading == 1) leading = 0;
      begin = std::min(begin + leading, end);
    }
    if (trailing > 0 && end >= trailing) end = std::max(end - trailing, begin);
  }
  for (Encoding& rest : encoding.overflowing) trim_offsets(rest, add_prefix_space);
}

struct ByteLevel : PostProcessor {
  bool trims, add_prefix_space;
  explicit ByteLevel(const Value& node)
      : trims(bool_field(node, "trim_offsets", true)), add_prefix_space(bool_field(node, "add_prefix_space", true)) {}
  Value as_json() const override { return byte_level_json(trims, add_prefix_space); }
  void apply(std::vector<Encoding>& parts, bool) const override {
    if (trims)
      for (Encoding& part : parts) trim_offsets(part, add_prefix_space);
  }
};

Step read_pair(const Value& node, std::string_view key) {
  const Value& pair = list_field(node, key);
  if (pair.items.size() != 2 || !pair.items[0].is_text() || !pair.items[1].as_int())
    refuse("tokenizer.json", str("'", key, "' is not a pair of a token and its id"), "fetch the tokenizer again");
  Step step;
  step.tokens = {pair.items[0].scalar};
  step.ids = {static_cast<TokenId>(*pair.items[1].as_int())};
  return step;
}

// [CLS] A [SEP] B [SEP] of Bert, <s> A </s> </s> B </s> of Roberta.
struct ClsSep : PostProcessor {
  Step cls, sep;
  bool roberta, trims = false, add_prefix_space = true;
  ClsSep(const Value& node, bool roberta) : cls(read_pair(node, "cls")), sep(read_pair(node, "sep")), roberta(roberta) {
    if (!roberta) return;
    trims = bool_field(node, "trim_offsets", true);
    add_prefix_space = bool_field(node, "add_prefix_space", true);
  }
  void apply(std::vector<Encoding>& parts, bool add_special_tokens) const override {
    if (trims)
      for (Encoding& part : parts) trim_offsets(part, add_prefix_space);
    if (roberta)
      for (Encoding& part : parts) part.type_ids.assign(part.ids.size(), 0);
    if (!add_special_tokens) return;
    for (size_t i = 0; i < parts.size(); ++i) {
      Step end = sep;
      if (!roberta && i > 0) end.type = 1;
      std::vector<Encoding> whole;
      if (i == 0)
        whole.push_back(special(cls));
      else if (roberta)
        whole.push_back(special(sep));
      parts[i].special_tokens_mask.assign(parts[i].ids.size(), 0);
      whole.push_back(std::move(parts[i]));
      whole.push_back(special(end));
      parts[i] = joined(std::move(whole));
    }
  }
  int64_t added(size_t texts) const override { return texts == 1 ? 2 : roberta ? 4 : 3; }
  Value as_json() const override {
    const auto token_and_id = [](const Step& step) {
      Value out = Value::list();
      out.items = {Value::text(step.tokens.front()), Value::integer(step.ids.front())};
      return out;
    };
    Value out = Value::map();
    out.set("type", Value::text(roberta ? "RobertaProcessing" : "BertProcessing"));
    out.set("sep", token_and_id(sep));
    out.set("cls", token_and_id(cls));
    if (!roberta) return out;
    out.set("trim_offsets", Value::boolean(trims));
    out.set("add_prefix_space", Value::boolean(add_prefix_space));
    return out;
  }
};

struct Sequence : PostProcessor {
  std::vector<std::unique_ptr<const PostProcessor>> parts;
  void apply(std::vector<Encoding>& encodings, bool add_special_tokens) const override {
    for (auto& part : parts) part->apply(encodings, add_special_tokens);
  }
  int64_t added(size_t texts) const override {
    int64_t count = 0;
    for (auto& part : parts) count += part->added(texts);
    return count;
  }
  Value as_json() const override {
    Value out = parse_json(R"({"type": "Sequence", "processors": []})");
    for (auto& part : parts) out.find("processors")->items.push_back(part->as_json());
    return out;
  }
};

}  // namespace

std::unique_ptr<const PostProcessor> make_post_processor(const Value& node) {
  std::string type = string_field(node, "type");
  if (type == "TemplateProcessing") return make_template(node);
  if (type == "ByteLevel") return std::make_unique<ByteLevel>(node);
  if (type == "BertProcessing") return std::make_unique<ClsSep>(node, false);
  if (type == "RobertaProcessing") return std::make_unique<ClsSep>(node, true);
  if (type == "Sequence") {
    auto out = std::make_unique<Sequence>();
    for (const Value& part : list_field(node, "processors").items) out->parts.push_back(make_post_processor(part));
    return out;
  }
  refuse("tokenizer.json", "the post-processor '" + type + "' is not known",
         "known: TemplateProcessing, ByteLevel, BertProcessing, RobertaProcessing, Sequence");
}

std::unique_ptr<const PostProcessor> make_frame(const Frame& frame) {
  auto steps = [](const std::vector<FrameStep>& from) {
    std::vector<Step> out;
    for (const FrameStep& each : from) {
      Step step;
      step.sequence = each.text;
      step.type = each.type;
      if (each.text < 0) {
        step.ids = {each.token.id};
        step.tokens = {each.token.content};
      }
      out.push_back(std::move(step));
    }
    return out;
  };
  auto out = std::make_unique<Template>();
  out->single = steps(frame.single);
  out->pair = steps(frame.pair);
  out->trim = frame.trim;
  return out;
}

std::unique_ptr<const PostProcessor> make_bos_eos(std::optional<SpecialToken> bos, std::optional<SpecialToken> eos) {
  Frame frame;
  for (uint8_t text : {0, 1}) {
    if (bos) frame.pair.push_back({-1, *bos, text});
    frame.pair.push_back({text, {}, text});
    if (eos) frame.pair.push_back({-1, *eos, text});
    if (text == 0) frame.single = frame.pair;
  }
  return make_frame(frame);
}

namespace {

// Combines every overflowing part with all others.
void append_part(Encoding& out, const Encoding& part) {
  std::vector<Encoding> overflowing;
  auto add = [&](const Encoding& one, const Encoding& other) {
    overflowing.push_back(one);
    append_part(overflowing.back(), other);
  };
  for (const Encoding& mine : out.overflowing) {
    add(mine, part);
    for (const Encoding& other : part.overflowing) add(mine, other);
  }
  for (const Encoding& other : part.overflowing) add(out, other);
  auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  append(out.ids, part.ids);
  append(out.tokens, part.tokens);
  append(out.offsets, part.offsets);
  append(out.special_tokens_mask, part.special_tokens_mask);
  append(out.type_ids, part.type_ids);
  out.overflowing = std::move(overflowing);
}

}  // namespace

Encoding joined(std::vector<Encoding> parts) {
  if (parts.size() == 1) return std::move(parts[0]);
  Encoding out;
  for (const Encoding& part : parts) append_part(out, part);
  return out;
}

}  // namespace easydel::text
