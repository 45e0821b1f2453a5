#include "easydel/nn/layer_pattern.h"

#include <algorithm>
#include <cctype>

#include "easydel/base/error.h"

namespace easydel::nn {

RegularExpression pattern_expression(const std::string& pattern, const std::string& where) {
  try {
    return RegularExpression(pattern);
  } catch (const InvalidRegularExpression&) {
    refuse(where, "'" + pattern + "' is not a regular expression", R"(for example: "self_attn|mlp")");
  }
}

namespace {

// The words of a regular expression that it looks for: runs of letters and underscores outside of (?!...).
std::vector<std::string> words_of(const std::string& pattern) {
  std::vector<std::string> out;
  int depth = 0, refused = 0;  // groups that are open; the first of them that is (?!
  std::string word;
  const auto end_word = [&] {
    if (word.size() >= 3 && refused == 0) out.push_back(word);
    word.clear();
  };
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') {
      word += c;
      continue;
    }
    end_word();
    if (c == '\\') {
      ++i;
    } else if (c == '(') {
      ++depth;
      if (refused == 0 && pattern.compare(i, 3, "(?!") == 0) refused = depth;
    } else if (c == ')') {
      if (refused == depth) refused = 0;
      --depth;
    }
  }
  end_word();
  return out;
}

}  // namespace

LayerPattern::LayerPattern(const std::string& pattern, const std::string& where)
    : empty_(pattern.empty()), pattern_(pattern_expression(pattern, where)), words_(words_of(pattern)) {}

bool LayerPattern::takes(const Entry& entry, const std::string& layer, bool shared) const {
  return empty_ ? !entry.head && !shared : pattern_.found_in(layer);
}

bool LayerPattern::names(const Entry& entry) const {
  const std::string layer = layer_name(entry), own = layer.substr(layer.rfind('.') + 1);
  const bool stack = entry.shape.size() == 3;
  return pattern_.found_in(layer) && std::ranges::any_of(words_, [&](const std::string& word) {
           return stack ? word.find("expert") != std::string::npos : own.find(word) != std::string::npos;
         });
}

}  // namespace easydel::nn
