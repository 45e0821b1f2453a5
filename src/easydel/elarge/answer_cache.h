// Answers that an earlier evaluation had, in a file: eval.use_cache. A stopped evaluation goes on where it was.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "easydel/base/files.h"

namespace easydel::elarge {

class AnswerCache {
 public:
  // `model`: a digest of all that an answer depends on besides its line: weights, tokenizer, template, limits.
  AnswerCache(const std::filesystem::path& file, std::string model);

  // The stored answer to a line; null: there is none.
  const std::string* find(const std::string& line) const;
  // Written at once, so that a killed process loses nothing. Errors are not stored.
  void add(const std::string& line, const std::string& answer);

 private:
  std::string key_of(const std::string& line) const;

  std::string model_;
  std::map<std::string, std::string> answers_;
  files::Appender file_;
};

}  // namespace easydel::elarge
