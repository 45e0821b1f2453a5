// The shared DecoderSpec has only members that at least two families set; what one family needs is in its own file.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "architecture/source.h"

namespace easydel::test {
namespace {

using Names = std::set<std::string>;

std::string without_comments(const std::string& text) { return std::regex_replace(text, std::regex("//[^\n]*"), ""); }

// "qwen3_next_keys" of "src/easydel/models/qwen3_next_keys.h"
std::string stem(const std::string& path) { return std::filesystem::path(path).stem().string(); }

// The names of a struct's members, in order.
std::vector<std::string> members_of(const std::string& header, const std::string& name) {
  const std::string text = without_comments(header);
  const size_t begin = text.find("struct " + name + " {\n"), end = text.find("\n};", begin);
  EXPECT_NE(begin, std::string::npos) << name;
  std::vector<std::string> members;
  // A name before "=", "," or ";" outside of parentheses and template arguments.
  int depth = 0;
  std::string word;
  bool value = false;
  for (size_t i = text.find('{', begin) + 1; i < end + 1; ++i) {
    const char c = text[i];
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == '}') --depth;
    if (depth > 0 || c == '>' || c == ')' || c == '}') continue;
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':') {
      if (!value) word += c;
      continue;
    }
    if (c == '=' || c == ',' || c == ';') {
      if (!value && !word.empty()) members.push_back(word);
      value = c == '=';
    }
    if (c == ',' || c == ';' || (!value && (c == ' ' || c == '\n'))) {
      // Keeps the last word: the text before it is the type.
      if (c == ' ' || c == '\n') {
        const size_t next = text.find_first_not_of(" \n", i);
        if (next < end && text[next] != '=' && text[next] != ',' && text[next] != ';' && text[next] != '<')
          word.clear();
      } else {
        word.clear();
      }
    }
  }
  return members;
}

struct ModelFiles {
  std::map<std::string, std::string> text;  // by file stem: header and source together
  Names families;                           // stems of files that define a family
  std::map<std::string, Names> includes;

  ModelFiles() {
    const std::regex family(R"((?:^|\n)Family family\(\) \{)"), include(R"rx(easydel/models/(?:\w+/)?(\w+)\.h")rx");
    const Names shared = {"decoder",       "decoder_model",     "decoder_parts", "decoder_attention",
                          "decoder_block", "decoder_embedding", "decoder_feed"};
    for (const SourceFile& file : source_files("src/easydel/models", {".h", ".cpp"})) {
      const std::string name = stem(file.path);
      if (shared.contains(name)) continue;
      text[name] += without_comments(file.text);
      if (std::regex_search(file.text, family)) families.insert(name);
      for (const std::string& header : all_matches(file.text, include)) includes[name].insert(header);
    }
  }

  // The families that use a file: the family of the file itself, or those that include it, directly or through another
  // shared reader.
  Names served_by(const std::string& name, Names seen = {}) const {
    if (families.contains(name)) return {name};
    Names out;
    if (!seen.insert(name).second) return out;
    for (const auto& [other, headers] : includes)
      if (other != name && headers.contains(name)) out.merge(served_by(other, seen));
    return out;
  }
};

// Names that `text` sets on a variable matching `variables` ("spec.norm.epsilon = ..." sets norm), or in the braces of
// "names = {.base = ...}".
Names set_in(const std::string& text, const std::string& variables, bool in_braces) {
  const std::regex access("(?:" + variables + R"()(?:\.|->)(\w+)((?:\.|->|\w|\[\w+\])*)\s*(=[^=]|[-+*/]=|\())");
  Names out;
  for (std::sregex_iterator match(text.begin(), text.end(), access), end; match != end; ++match) {
    const std::string path = (*match)[2], action = (*match)[3];
    if (action != "(" || path.ends_with("resize") || path.ends_with("emplace")) out.insert((*match)[1]);
  }
  if (in_braces)
    for (const std::string& braces : all_matches(text, std::regex(R"(\bnames = \{([^}]*)\})")))
      for (const std::string& member : all_matches(braces, std::regex(R"(\.(\w+) =)"))) out.insert(member);
  return out;
}

TEST(DecoderSpec, HoldsWhatAtLeastTwoFamiliesSet) {
  const ModelFiles files;
  ASSERT_GT(files.families.size(), 90u);
  const std::string header = read_file(source_root() / "src/easydel/models/decoder.h");
  const std::pair<const char*, const char*> structs[] = {
      {"DecoderSpec", R"(\b(?:spec|built|beside|first))"},
      {"DecoderLayerSpec", R"(\blayer|\bindex|layers\[[^\n;]*\]|layers\.front\(\))"},
      {"DecoderNames", R"(\bnames)"}};
  for (const auto& [name, variables] : structs) {
    std::map<std::string, Names> users_of;
    for (const auto& [file, text] : files.text)
      for (const std::string& member : set_in(text, variables, std::string_view(name) == "DecoderNames"))
        users_of[member].merge(files.served_by(file));
    const auto members = members_of(header, name);
    EXPECT_GT(members.size(), 8u) << name;
    for (const std::string& member : members) {
      const Names& users = users_of[member];
      EXPECT_GE(users.size(), 2u) << name << "::" << member << " is set by "
                                  << (users.empty() ? "nobody" : *users.begin())
                                  << " alone: it belongs into the family's file (docs/adding_a_model.md)";
    }
  }
}

}  // namespace
}  // namespace easydel::test
