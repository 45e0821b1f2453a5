// Programs that the user names, as child processes: a line of JSON goes in for each question, and a line with its
// number comes back. No torch.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::train {

class LineProgram;

// Processes of one command that share the questions. Not thread-safe.
class LinePrograms {
 public:
  struct Setup {
    std::string where;  // for messages
    std::vector<std::string> command;
    int64_t workers = 1;
    double timeout_seconds = 60;
    std::string field;      // that every answer has, in addition to id
    std::string questions;  // what is asked, for messages: "completions to judge"
  };
  explicit LinePrograms(Setup setup);
  ~LinePrograms();

  // Has the key id: next_id() plus its place among the questions.
  struct Question {
    Value document;
    size_t worker = 0;  // modulo the number of workers
  };
  int64_t next_id() const { return next_id_; }
  // The answers in the order of the questions; the first call starts the programs. `problem`: what is wrong with an
  // answer; empty: nothing. UserError with the program's last line if one dies, is silent for timeout_seconds, or
  // answers something else.
  std::vector<Value> ask(const std::vector<Question>& questions,
                         const std::function<std::string(const Value&)>& problem);

 private:
  size_t index_of(const Value& answer, const LineProgram& worker, size_t count) const;

  Setup setup_;
  std::vector<std::unique_ptr<LineProgram>> workers_;
  int64_t next_id_ = 0;
};

}  // namespace easydel::train
