#include "easydel/elarge/answer_cache.h"

#include <utility>

#include "easydel/base/document.h"
#include "easydel/base/error.h"

namespace easydel::elarge {
namespace {

// A line is the key, a blank and the answer.
constexpr size_t key_size = 64;

std::map<std::string, std::string> read_answers(const std::filesystem::path& file) {
  std::map<std::string, std::string> out;
  if (!files::exists(file)) return out;
  const std::string text = files::read(file);
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (line.size() <= key_size || line[key_size] != ' ' || line[key_size + 1] != '{')
      refuse(file.string(), "is not a file of answers", "name another file in eval.use_cache, or remove this one");
    out.insert_or_assign(std::string(line.substr(0, key_size)), std::string(line.substr(key_size + 1)));
  }
  return out;
}

}  // namespace

AnswerCache::AnswerCache(const std::filesystem::path& file, std::string model)
    : model_(std::move(model)), answers_(read_answers(file)), file_(file) {}

std::string AnswerCache::key_of(const std::string& line) const { return files::sha256(model_ + "\n" + line); }

const std::string* AnswerCache::find(const std::string& line) const {
  const auto found = answers_.find(key_of(line));
  return found == answers_.end() ? nullptr : &found->second;
}

void AnswerCache::add(const std::string& line, const std::string& answer) {
  if (answer.starts_with(R"({"error")")) return;
  std::string key = key_of(line);
  file_.line(key + " " + answer);
  answers_.insert_or_assign(std::move(key), answer);
}

}  // namespace easydel::elarge
