// docs/models.md is what the families' files and the stored golden vectors say.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "architecture/source.h"
#include "easydel/base/document.h"

namespace easydel::test {
namespace {

namespace fs = std::filesystem;

// The comment that opens a file, as one line.
std::string opening(const std::string& text) {
  std::string out;
  for (size_t begin = 0; text.compare(begin, 3, "// ") == 0;) {
    const size_t end = text.find('\n', begin);
    out += (out.empty() ? "" : " ") + text.substr(begin + 3, end - begin - 3);
    begin = end + 1;
  }
  return out;
}

// How many stored golden vectors each family has.
std::map<std::string, int> goldens() {
  std::map<std::string, int> out;
  for (const auto& entry : fs::directory_iterator(test_data("hf_goldens"))) {
    const Value config = parse_file(entry.path() / "config.json");
    ++out[config.find("model_type")->as_string().value_or("")];
  }
  return out;
}

std::string page() {
  const std::string list = read_file(source_root() / "src/easydel/models/family_configs.cpp");
  const auto held = goldens();
  std::string out =
      "# Families of models\n\nMade of the opening lines of `src/easydel/models/zoo/*.cpp`, of the list in\n"
      "`models/family_configs.cpp` and of the golden vectors in `tests/data/hf_goldens`; a test holds this page to "
      "them.\n\n"
      "Goldens: models with random weights of which logits, loss, every gradient's norm and greedy tokens are compared "
      "with\n"
      "what transformers computes; none: made from a description, tested by properties and by random models.\n\n"
      "Beside the architectures of the list every family has `...Model`, `...ForSequenceClassification`,\n"
      "`...ForTokenClassification` and `...ForQuestionAnswering` (`model.task`: `base-module`, "
      "`sequence-classification`,\n"
      "`embedding`), under the names that transformers gives their parameters.\n\n"
      "| model_type | architectures | | goldens |\n|---|---|---|---|\n";
  const std::regex row(R"rx(FamilyConfig\{"([a-z0-9_-]+)", \{([^}]*)\})rx");
  for (auto match = std::sregex_iterator(list.begin(), list.end(), row); match != std::sregex_iterator(); ++match) {
    const std::string type = (*match)[1], architectures = std::regex_replace((*match)[2].str(), std::regex("\""), "");
    const auto count = held.find(type);
    const std::string file = std::regex_replace(type, std::regex("-"), "_");
    out += "| `" + type + "` | " + architectures + " | " +
           opening(read_file(source_root() / ("src/easydel/models/zoo/" + file + ".cpp"))) + " | " +
           (count == held.end() ? "none" : std::to_string(count->second)) + " |\n";
  }
  out +=
      "\n## The text part of models that also see or hear\n\n"
      "A folder of these is loaded as its language model, and saved as what it was: tensors of the other parts are "
      "left alone\n"
      "and written back. Text is computed as the class of the whole model computes it without images.\n\n"
      "| model_type | language model, where text_config does not say | goldens |\n|---|---|---|\n";
  const std::string wholes = read_file(source_root() / "src/easydel/models/text_config.cpp");
  const std::regex whole(R"rx(\n    \{"([a-z0-9_]+)", "([a-z0-9_]+)")rx");
  for (auto match = std::sregex_iterator(wholes.begin(), wholes.end(), whole); match != std::sregex_iterator();
       ++match) {
    const auto count = held.find((*match)[1]);
    out += "| `" + (*match)[1].str() + "` | `" + (*match)[2].str() + "` | " +
           (count == held.end() ? "none" : std::to_string(count->second)) + " |\n";
  }
  return out;
}

TEST(ModelsPage, SaysOfEveryFamilyWhatItsFileSays) {
  const std::string expected = page();
  if (read_file(source_root() / "docs/models.md") == expected) return;
  const fs::path made = fs::temp_directory_path() / "models.md";
  write_file(made, expected);
  ADD_FAILURE() << "docs/models.md is not what the families say; the right page is " << made;
}

}  // namespace
}  // namespace easydel::test
