#include "easydel/cli/arguments.h"

#include <cstddef>
#include <string_view>

namespace easydel::cli {

std::vector<std::string> without_nproc(int argc, char** argv) {
  std::vector<std::string> out;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--nproc") {
      ++i;
    } else if (!word.starts_with("--nproc=")) {
      out.emplace_back(word);
    }
  }
  return out;
}

std::vector<std::string> with_command(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  size_t first = 0;
  while (first < words.size() && words[first].starts_with("-")) {
    const bool takes_a_word = words[first] == "--nproc" || words[first] == "--plugin";
    first += takes_a_word ? 2 : 1;
  }
  if (first >= words.size()) return words;
  const std::string word = words[first];
  const auto at = words.begin() + static_cast<std::ptrdiff_t>(first);
  if (word == "help") {
    words.erase(at);
    words.emplace_back("--help");
  } else if (word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json")) {
    words.insert(at, "run");
  }
  return words;
}

}  // namespace easydel::cli
