// Collects the problems of a configuration. Every problem has the file, line and column of its key.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/base/error.h"

namespace easydel::config {

struct Problem {
  std::string path;  // "esurge.page_size", "mixture.informs[0].type"; empty: the document itself
  Place place;       // of the value, or of the key if the key is wrong
  std::string what;
  std::string remedy;  // what would work; may be empty
};

class Problems {
 public:
  explicit Problems(std::string file = "config") : file_(std::move(file)) {}

  void add(std::string path, Place place, std::string what, std::string remedy = "");
  // The same at the place of the path's value, or of the closest section above it in the document.
  void add(std::string path, std::string what, std::string remedy = "");
  // Adds an error of another layer: to the key at or below `path` that it names, otherwise to `path` itself.
  void add(const std::string& path, const UserError& error);
  // Runs a check of another layer and adds what it throws.
  template <class Check>
  void collect(const std::string& path, Check check) {
    try {
      check();
    } catch (const UserError& error) {
      add(path, error);
    }
  }

  // Adds a line for the user that does not stop the run.
  void note(std::string_view path, std::string_view text);
  // Collected into one note: "has no effect here: loader.from_torch, esurge.compile_runner (why)".
  void no_effect(std::string path, std::string why);

  // Records the place of a key of the document, by its canonical path.
  void saw(const std::string& path, Place place) { places_[path] = place; }
  bool given(const std::string& path) const { return places_.contains(path); }
  Place place_of(std::string path) const;  // {0, 0}: neither it nor a section above it is in the document
  // Keys at and below `path` were given by `source` ("--set trainer.seed=x") instead of the file.
  void comes_from(std::string path, std::string source) { sources_[std::move(path)] = std::move(source); }

  bool empty() const { return problems_.empty(); }
  bool any_at(std::string_view path) const;  // at this key or below it
  size_t size() const { return problems_.size(); }
  const std::string& file() const { return file_; }
  std::vector<Problem> sorted() const;  // in the order of the file
  std::vector<std::string> notes() const;
  UserError error_of(const Problem& problem) const;
  // All of them and "4 problems in run.yaml; nothing was run."
  std::string text() const;
  void throw_if_any() const;  // ConfigError

 private:
  FilePlace file_place(const std::string& path, Place place) const;
  std::string file_;
  std::vector<Problem> problems_;
  std::map<std::string, std::set<std::string>, std::less<>> known_;  // what was said of each path
  std::vector<std::string> notes_;
  std::set<std::string, std::less<>> seen_notes_;
  std::vector<std::pair<std::string, std::string>> no_effect_;
  std::map<std::string, Place> places_;
  std::map<std::string, std::string> sources_;
};

// Everything that is wrong with a document. what() lists all problems; the fields are those of the first.
class ConfigError : public UserError {
 public:
  explicit ConfigError(const Problems& problems);  // at least one
  const std::vector<UserError> problems;           // in the order of the file
};

// Gives a section's settle() access to the problems of its own keys, by name.
class Keys {
 public:
  Keys(Problems& problems, std::string path) : problems_(problems), path_(std::move(path)) {}
  bool given(std::string_view key) const;  // in the document, under any of its names
  void refuse(std::string_view key, std::string what, std::string remedy = "");
  void note(std::string_view key, std::string_view text);
  void no_effect(std::string_view key, std::string why);
  std::string path_of(std::string_view key) const;  // "trainer.beta"
  Keys below(std::string_view section) const { return {problems_, path_of(section)}; }
  Problems& problems() const { return problems_; }

 private:
  Problems& problems_;
  std::string path_;
};

}  // namespace easydel::config
