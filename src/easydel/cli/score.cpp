// `easydel score`: requests as lines of JSON, from a file or from a program that writes them, and their answers.
#include <fstream>
#include <iostream>

#include "easydel/base/error.h"
#include "easydel/cli/commands.h"
#include "easydel/cli/model_session.h"

namespace easydel::cli {
namespace {

// The lines up to an empty one or the end of the stream. False: there are none.
bool read_block(std::istream& in, std::vector<std::string>& lines) {
  lines.clear();
  for (std::string line; std::getline(in, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos)
      lines.push_back(std::move(line));
    else if (!lines.empty())
      break;
  }
  return !lines.empty();
}

// Prints answers in the order of the lines, each as soon as those before it are there.
class InOrder {
 public:
  explicit InOrder(size_t lines) : answers_(lines) {}

  void add(size_t line, const std::string& answer) {
    answers_[line] = answer + "\n";
    std::string ready;
    while (next_ < answers_.size() && !answers_[next_].empty()) ready += std::exchange(answers_[next_++], "");
    if (!ready.empty()) print(ready);
  }

 private:
  std::vector<std::string> answers_;
  size_t next_ = 0;
};

}  // namespace

int run_score(const ScoreCommand& command) {
  std::ifstream file;
  if (command.lines != "-") {
    file.open(command.lines);
    if (!file) refuse(command.lines, "cannot be read", "give a file of JSON Lines, or - for standard input");
  }
  std::istream& in = command.lines == "-" ? std::cin : file;
  elarge::LineSettings settings = command.settings;
  settings.chat_template = template_of(command);
  const StopOnInterrupt interrupts;
  settings.stop = &reply_is_stopped();
  const ModelSession model = open_session(command);
  model.session->build_model();
  for (std::vector<std::string> lines; !reply_is_stopped() && read_block(in, lines);) {
    InOrder answers(lines.size());
    model.session->answer_lines(lines, settings,
                                [&](size_t line, const std::string& answer) { answers.add(line, answer); });
  }
  return reply_is_stopped() ? 128 + SIGINT : 0;
}

}  // namespace easydel::cli
