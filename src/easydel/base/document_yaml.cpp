// Parses YAML text from libyaml's events: every value keeps its place, and what libyaml accepts (duplicate keys,
// cycles, alias bombs, a second document) is refused here.
#include <yaml.h>

#include <array>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "easydel/base/document.h"
#include "easydel/base/error.h"

namespace easydel {
namespace {

// What usually helps against an error of libyaml.
std::string remedy_for(std::string_view problem) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> remedies{{
      {"could not find expected ':'", "write 'key: value', with a blank after the colon, one on each line"},
      {"mapping values are not allowed",
       "the keys of a section begin in one column; a text with ': ' in it needs quotes"},
      {"',' or '}'", "a brace is not closed, or a comma is missing between two keys"},
      {"',' or ']'", "a bracket is not closed, or a comma is missing between two items"},
      {"expected node content", "a value is missing after a bracket, a comma or a colon"},
      {"did not find expected key", "look for a bracket, a quote or an indentation that does not fit, here or above"},
      {"unexpected end of stream", "a quote is not closed"},
      {"cannot start any token", "put the text in quotes"},
      {"expected <document start>", "is this a YAML file?"},
  }};
  for (const auto& [part, remedy] : remedies)
    if (problem.find(part) != std::string_view::npos) return std::string(remedy);
  return "";
}

constexpr int max_yaml_depth = 200;
constexpr size_t max_alias_weight = 250'000;  // nodes (long texts count more) that aliases may multiply into

class YamlReader {
 public:
  YamlReader(std::string_view text, std::string_view name) : text_(text), name_(name) {
    check(yaml_parser_initialize(&parser_) == 1, "libyaml: no parser");
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  ~YamlReader() {
    drop_event();
    yaml_parser_delete(&parser_);
  }
  YamlReader(const YamlReader&) = delete;
  YamlReader& operator=(const YamlReader&) = delete;

  Value document() {
    next();  // stream start
    next();
    Value root;
    if (event_.type == YAML_DOCUMENT_START_EVENT) {
      next();
      root = node(0);
      next();  // document end
      next();
    }
    if (event_.type != YAML_STREAM_END_EVENT)
      wrong(here(), "a second document begins here", "put one document in a file; '---' separates documents");
    return root;
  }

 private:
  struct Anchor {
    Value value;
    size_t weight = 0;
    bool finished = false;
  };

  // Parses one node. The current event is its first one before the call, and its last one after.
  Value node(int depth) {
    if (depth > max_yaml_depth) wrong(here(), str("is nested more than ", max_yaml_depth, " levels deep"));
    switch (event_.type) {
      case YAML_ALIAS_EVENT:
        return alias(text_of(event_.data.alias.anchor));
      case YAML_SCALAR_EVENT: {
        const std::string anchor = text_of(event_.data.scalar.anchor);
        Value value = scalar();
        if (!anchor.empty()) anchors_[anchor] = {value, 1 + value.scalar.size() / 32, true};
        ++weight_, weight_ += value.scalar.size() / 32;
        return value;
      }
      case YAML_SEQUENCE_START_EVENT:
        return collection(text_of(event_.data.sequence_start.anchor), event_.data.sequence_start.tag, "seq", depth);
      case YAML_MAPPING_START_EVENT:
        return collection(text_of(event_.data.mapping_start.anchor), event_.data.mapping_start.tag, "map", depth);
      default:
        throw Bug(str(name_, ": unexpected YAML event ", int(event_.type)));
    }
  }

  Value alias(const std::string& name) {
    const auto found = anchors_.find(name);
    if (found == anchors_.end()) wrong(here(), "*" + name + ": no such anchor", "define it above with &" + name);
    if (!found->second.finished)
      wrong(here(), "*" + name + " is inside the value that it names", "a value cannot contain itself");
    weight_ += found->second.weight, aliased_ += found->second.weight;
    if (aliased_ > max_alias_weight) wrong(here(), "*" + name + ": aliases make this document too large");
    return found->second.value;
  }

  Value scalar() {
    const auto& data = event_.data.scalar;
    Value value{.place = here(), .scalar = std::string(reinterpret_cast<const char*>(data.value), data.length)};
    const bool plain = data.style == YAML_PLAIN_SCALAR_STYLE;
    value.kind = plain ? Value::Kind::plain : Value::Kind::text;
    const std::string tag = short_tag(data.tag);
    if (tag == "str" || tag == "!") {
      value.kind = Value::Kind::text;
    } else if (tag == "int" || tag == "float" || tag == "bool" || tag == "null") {
      value.kind = Value::Kind::plain;
    } else if (!tag.empty()) {
      unknown_tag(tag);
    }
    const bool null = value.scalar.empty() || value.scalar == "~" || value.scalar == "null" || value.scalar == "Null" ||
                      value.scalar == "NULL";
    if (value.kind == Value::Kind::plain && null) value = {.place = value.place};
    return value;
  }

  Value collection(const std::string& anchor, const yaml_char_t* raw_tag, std::string_view own_tag, int depth) {
    const std::string tag = short_tag(raw_tag);
    if (!tag.empty() && tag != own_tag && tag != "!") unknown_tag(tag);
    const size_t weight_before = weight_++;
    if (!anchor.empty()) anchors_[anchor] = {};
    Value value = own_tag == "seq" ? sequence(depth) : mapping(depth);
    if (!anchor.empty()) anchors_[anchor] = {value, weight_ - weight_before, true};
    return value;
  }

  Value sequence(int depth) {
    Value value{.kind = Value::Kind::list, .place = here()};
    for (next(); event_.type != YAML_SEQUENCE_END_EVENT; next()) value.items.push_back(node(depth + 1));
    return value;
  }

  Value mapping(int depth) {
    Value value{.kind = Value::Kind::map, .place = here()};
    std::unordered_set<std::string> seen;
    Value merged;
    for (next(); event_.type != YAML_MAPPING_END_EVENT; next()) {
      const Place place = here();
      const bool bare = event_.type == YAML_SCALAR_EVENT && event_.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
      Value key = node(depth + 1);
      if (key.is_list() || key.is_map()) wrong(place, "a key must be a word, not a list or a map");
      if (key.is_null()) key.scalar = "null";
      if (!seen.insert(key.scalar).second) wrong(place, "'" + key.scalar + "' is given twice", "keep one of them");
      next();
      Value child = node(depth + 1);
      if (bare && key.scalar == "<<") {
        merged = std::move(child);
        merged.place = place;
        continue;
      }
      value.entries.emplace_back(std::move(key.scalar), std::move(child));
      value.key_places.push_back(place);
    }
    if (seen.contains("<<") && value.entries.size() < seen.size()) merge(value, merged, seen);
    return value;
  }

  // The map's own keys take precedence over merged ones, and earlier maps of a list over later ones.
  void merge(Value& into, const Value& from, std::unordered_set<std::string>& seen) {
    if (from.is_list()) {
      for (const Value& item : from.items) {
        if (!item.is_map()) wrong(from.place, "'<<' needs a map, or a list of maps");
        merge(into, item, seen);
      }
      return;
    }
    if (!from.is_map()) wrong(from.place, "'<<' needs a map, or a list of maps", "for example '<<: *defaults'");
    for (size_t i = 0; i < from.entries.size(); ++i) {
      if (!seen.insert(from.entries[i].first).second) continue;
      into.entries.push_back(from.entries[i]);
      into.key_places.push_back(from.key_places[i]);
    }
  }

  void next() {
    drop_event();
    if (yaml_parser_parse(&parser_, &event_) == 1) {
      have_event_ = true;
      return;
    }
    const std::string problem = parser_.problem ? parser_.problem : "cannot be read";
    if (parser_.error == YAML_READER_ERROR) {
      Place place{1, 1};
      for (size_t i = 0; i < std::min(parser_.problem_offset, text_.size()); ++i)
        text_[i] == '\n' ? (void)(++place.line, place.column = 1) : (void)++place.column;
      wrong(place, "is not YAML: " + problem, "a YAML file must be UTF-8 text");
    }
    if (parser_.error == YAML_MEMORY_ERROR) throw std::bad_alloc();
    std::string what = "is not YAML: " + problem;
    if (parser_.context)
      what += str(" (", parser_.context, " that begins in line ", parser_.context_mark.line + 1, ")");
    const Place place = place_of(parser_.problem_mark);
    const bool tab = problem.find("cannot start any token") != std::string::npos && byte_at(place) == '\t';
    wrong(place, what, tab ? "this is a tab; YAML uses spaces for indentation" : remedy_for(problem));
  }

  void drop_event() {
    if (have_event_) yaml_event_delete(&event_);
    have_event_ = false;
  }

  // libyaml counts columns in characters; places count bytes, as compilers and editors do.
  Place place_of(const yaml_mark_t& mark) {
    if (mark.line < lines_) lines_ = 0, line_begin_ = 0, characters_ = 0, at_ = 0;
    for (; lines_ < mark.line && line_begin_ < text_.size(); ++lines_) {
      at_ = line_begin_ = after_line(line_begin_);
      characters_ = 0;
    }
    if (mark.column < characters_) characters_ = 0, at_ = line_begin_;
    for (; characters_ < mark.column && at_ < text_.size(); ++characters_) at_ += width(at_);
    return {int(mark.line) + 1, int(at_ - line_begin_) + 1};
  }
  size_t width(size_t at) const {
    const auto lead = static_cast<unsigned char>(text_[at]);
    return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  }
  // libyaml also breaks lines at a single CR, NEL, LS and PS.
  size_t after_line(size_t at) const {
    for (; at < text_.size(); at += width(at)) {
      const std::string_view rest = text_.substr(at);
      if (rest.starts_with("\r\n")) return at + 2;
      if (rest[0] == '\n' || rest[0] == '\r') return at + 1;
      if (rest.starts_with("\xc2\x85")) return at + 2;
      if (rest.starts_with("\xe2\x80\xa8") || rest.starts_with("\xe2\x80\xa9")) return at + 3;
    }
    return text_.size();
  }
  char byte_at(const Place& place) const {
    const size_t at = line_begin_ + size_t(place.column) - 1;
    return at < text_.size() ? text_[at] : '\0';
  }
  Place here() { return place_of(event_.start_mark); }

  [[noreturn]] void wrong(const Place& place, const std::string& what, const std::string& remedy = "") {
    refuse(FilePlace{std::string(name_), place.line, place.column}, what, remedy);
  }
  [[noreturn]] void unknown_tag(const std::string& tag) {
    wrong(here(), "the tag !" + tag + " is not known",
          "leave it out; known tags are !!str, !!int, !!float, !!bool and !!null");
  }

  static std::string text_of(const yaml_char_t* text) { return text ? reinterpret_cast<const char*>(text) : ""; }
  static std::string short_tag(const yaml_char_t* raw) {
    std::string tag = text_of(raw);
    const std::string core = "tag:yaml.org,2002:";
    if (tag.starts_with(core)) return tag.substr(core.size());
    return tag.size() > 1 && tag[0] == '!' ? tag.substr(1) : tag;
  }

  std::string_view text_, name_;
  yaml_parser_t parser_ = {};
  yaml_event_t event_ = {};
  bool have_event_ = false;
  std::map<std::string, Anchor> anchors_;
  size_t weight_ = 0, aliased_ = 0;
  // The place that was looked up last: its line and where that begins, its column in characters, its byte. Lookups go
  // on from there, so that all of a long line cost one pass over it.
  size_t lines_ = 0, line_begin_ = 0, characters_ = 0, at_ = 0;
};

}  // namespace

Value parse_yaml(std::string_view text, std::string_view name) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return YamlReader(text, name).document();
}

}  // namespace easydel
