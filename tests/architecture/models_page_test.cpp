// docs/models.md agrees with the families' files and the stored golden vectors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
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

// Calls such as of_parts("gemma3", ...) and text_part("gemma3_text", ...): function and first argument, in order.
std::vector<std::pair<std::string, std::string>> parts_in(const std::string& list) {
  const std::regex call(R"rx((of_parts|text_part|vision_part|audio_part)\("([a-z0-9_]+)")rx");
  std::vector<std::pair<std::string, std::string>> out;
  for (auto match = std::sregex_iterator(list.begin(), list.end(), call); match != std::sregex_iterator(); ++match)
    out.emplace_back((*match)[1], (*match)[2]);
  return out;
}

std::string page() {
  const std::string list = read_file(source_root() / "src/easydel/models/family_configs.cpp");
  const auto held = goldens();
  std::string out =
      "# Families of models\n"
      "\n"
      "A test generates this page from the first lines of `src/easydel/models/zoo/*.cpp`, the list in\n"
      "`models/family_configs.cpp` and the golden vectors in `tests/data/hf_goldens`.\n"
      "\n"
      "Goldens are models with random weights: their logits, loss, gradient norms and greedy tokens are compared with\n"
      "transformers. none: the family was written from a description, and is tested by properties and by random "
      "models.\n"
      "\n"
      "In addition to the architectures of the list, every family has `...Model`, `...ForSequenceClassification`,\n"
      "`...ForTokenClassification` and `...ForQuestionAnswering` (`model.task`: `base-module`, "
      "`sequence-classification`,\n"
      "`token-classification`, `question-answering`, `embedding`; `masked-language-model` where the list has one), "
      "with transformers' parameter names.\n"
      "\n"
      "| model_type | architectures | | goldens |\n"
      "|---|---|---|---|\n";
  const std::regex row(R"rx(FamilyConfig\{\s*"([a-z0-9_-]+)", \{([^}]*)\})rx");
  for (auto match = std::sregex_iterator(list.begin(), list.end(), row); match != std::sregex_iterator(); ++match) {
    const std::string type = (*match)[1], architectures = std::regex_replace((*match)[2].str(), std::regex("\""), "");
    const auto count = held.find(type);
    const std::string file = std::regex_replace(type, std::regex("-"), "_");
    out += "| `" + type + "` | " + architectures + " | " +
           opening(read_file(source_root() / ("src/easydel/models/zoo/" + file + ".cpp"))) + " | " +
           (count == held.end() ? "none" : std::to_string(count->second)) + " |\n";
  }
  out +=
      "\n"
      "## Models of several parts\n"
      "\n"
      "These folders are loaded as their text part. Saving writes the whole model: tensors of the other parts are "
      "written back\n"
      "unchanged. Text is computed as the class of the whole model computes it without images.\n"
      "\n"
      "| model_type | text part, unless text_config names another | other parts | goldens |\n"
      "|---|---|---|---|\n";
  struct Row {
    std::string type, text, others;
  };
  std::vector<Row> rows;
  for (const auto& [kind, name] : parts_in(list))
    if (kind == "of_parts")
      rows.push_back({name, "", ""});
    else if (kind == "text_part")
      rows.back().text = name;
    else
      rows.back().others +=
          (rows.back().others.empty() ? "" : ", ") + kind.substr(0, kind.find('_')) + " (`" + name + "`)";
  for (const Row& row : rows) {
    const auto count = held.find(row.type);
    out += "| `" + row.type + "` | `" + row.text + "` | " + row.others + " | " +
           (count == held.end() ? "none" : std::to_string(count->second)) + " |\n";
  }
  return out;
}

TEST(ModelsPage, AgreesWithEveryFamilysFile) {
  const std::string expected = page();
  if (read_file(source_root() / "docs/models.md") == expected) return;
  if (std::getenv("EASYDEL_WRITE_PAGES")) return write_file(source_root() / "docs/models.md", expected);
  ADD_FAILURE() << "docs/models.md is not what the families say; write it by\n"
                   "    EASYDEL_WRITE_PAGES=1 ./easydel.sh test ModelsPage";
}

}  // namespace
}  // namespace easydel::test
