#include "easydel/cli/prompts.h"

#include <filesystem>

#include "easydel/base/error.h"
#include "easydel/text/unicode.h"

namespace easydel::cli {
namespace {

// "text", {"prompt": "text"} or {"messages": [...]}.
Prompt prompt_of(const Value& line, const FilePlace& place) {
  if (line.is_text()) return {line.scalar};
  const Value* const prompt = line.is_map() ? line.find("prompt") : nullptr;
  const Value* const messages = line.is_map() ? line.find("messages") : nullptr;
  if (prompt && prompt->is_text()) return {prompt->scalar};
  if (messages && messages->is_list() && !messages->items.empty()) return {"", *messages};
  refuse(place, "is not a prompt",
         R"(write a JSON text, {"prompt": "..."} or {"messages": [{"role": "user", "content": "..."}]})");
}

Value parse_line(const std::string& line, const FilePlace& place) try {
  return parse_json(line, place.file);
} catch (const UserError& error) {  // the parser saw only this line
  refuse(FilePlace{place.file, place.line, error.place.column}, error.problem,
         error.remedy.empty() ? "each line holds one JSON value" : error.remedy);
}

void add_lines(const std::string& file, std::vector<Prompt>& out) {
  const std::string all = read_input(file);
  const std::string ending = std::filesystem::path(file).extension().string();
  const bool json = ending == ".jsonl" || ending == ".ndjson" || ending == ".json";
  int number = 0;
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find('\n', begin), all.size());
    std::string line = all.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    const FilePlace place{file, number, 0};
    if (text::valid_prefix(line) != line.size()) refuse(place, "is not UTF-8 text", "save the file as UTF-8");
    if (json)
      out.push_back(prompt_of(parse_line(line, place), place));
    else
      out.push_back({line});
  }
}

}  // namespace

std::string Prompt::last_words() const {
  if (messages.items.empty()) return "";
  const Value* const content = messages.items.back().find("content");
  return content && content->is_text() ? content->scalar : "";
}

std::vector<Prompt> read_prompts(const GenerateOptions& options) {
  std::vector<Prompt> out;
  for (const std::string& text : options.prompts) out.push_back({text});
  if (!options.prompts_file.empty()) {
    add_lines(options.prompts_file, out);
    if (out.empty()) refuse(options.prompts_file, "has no prompts", "write one on each line");
  }
  if (!out.empty()) return out;
  std::string text = read_input("-");
  if (text.ends_with('\n')) text.pop_back();
  if (text.empty())
    refuse("easydel generate", "there is no prompt",
           "give one with -p 'text', several with --prompts-file, or one on standard input");
  out.push_back({text});
  return out;
}

}  // namespace easydel::cli
