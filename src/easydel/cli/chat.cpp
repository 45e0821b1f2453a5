// `easydel chat`: a conversation with a model, a message a line.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <optional>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/cli/commands.h"
#include "easydel/cli/line_editor.h"
#include "easydel/cli/model_session.h"
#include "easydel/cli/remote_model.h"
#include "easydel/cli/shown_reply.h"

namespace easydel::cli {
namespace {

constexpr const char* help =
    "/help    show this help\n"
    "/reset   start a new conversation\n"
    "/quit    quit (also /exit and Ctrl-D)\n"
    "Ctrl-C stops an answer; while you type, it clears the message. Several pasted lines are one message.\n";

// Messages from a pipe or a file, a line each.
class PlainLines final : public LineEditor {
 public:
  explicit PlainLines(std::string prompt) : prompt_(std::move(prompt)) {}
  std::optional<std::string> read() override {
    std::cerr << prompt_ << std::flush;
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  }

 private:
  std::string prompt_;
};

std::unique_ptr<LineEditor> lines_from_input(bool terminal) {
  const char* const no_color = std::getenv("NO_COLOR");
  const bool colour = !no_color || !*no_color;
  std::unique_ptr<LineEditor> editor = terminal ? make_line_editor(colour) : nullptr;
  if (editor) return editor;
  return std::make_unique<PlainLines>(!terminal ? "" : colour ? "\033[1m>\033[0m " : "> ");
}

std::string unknown_command(const std::string& line) {
  const std::string word = line.substr(0, line.find_first_of(" \t\n"));
  const std::string near = nearest(word, std::vector<std::string>{"/help", "/reset", "/quit", "/exit"});
  return str("'", word, "' is not a command\n    ",
             near.empty() ? "/help lists the commands" : "did you mean '" + near + "'?",
             "; begin the line with a space to send it as a message\n");
}

}  // namespace

int run_chat(const ChatOptions& options) {
  generation::GenerationConfig generation = generation_flags(options);
  const std::optional<std::string> chat_template = template_of(options);
  const Generator generator(options, generation);
  const bool terminal = ::isatty(STDIN_FILENO) && ::isatty(STDERR_FILENO);
  if (terminal) std::cerr << "/help lists the commands, Ctrl-D quits.\n";
  const std::unique_ptr<LineEditor> input = lines_from_input(terminal);
  Value conversation = Value::list();
  const auto reset = [&] {
    conversation = Value::list();
    if (!options.system.empty()) conversation.items.push_back(chat_message("system", options.system));
  };
  reset();
  while (const std::optional<std::string> line = input->read()) {
    if (line->empty()) continue;
    if (*line == "/quit" || *line == "/exit") return 0;
    if (line->starts_with('/')) {
      if (*line == "/help")
        std::cerr << help;
      else if (*line == "/reset")
        reset();
      else
        std::cerr << unknown_command(*line);
      continue;
    }
    conversation.items.push_back(chat_message("user", *line));
    elarge::GenerateRequest request;
    request.conversations = {conversation};
    request.generation = generation;
    request.negative_prompt = options.negative_prompt;
    request.chat_template = chat_template;
    ShownReply shown;
    request.on_text = [&shown](size_t index, std::string_view piece) {
      if (index == 0) shown.text(piece);
    };
    RemoteExtras extras;
    extras.on_reasoning = [&shown](size_t index, std::string_view piece) {
      if (index == 0) shown.reasoning(piece);
    };
    request.stop = &reply_is_stopped();
    std::string reply;
    {
      const StopOnInterrupt interrupts;
      const std::vector<elarge::Generated> replies = generator.generate(request, extras);
      if (!replies.empty()) reply = replies[0].text;  // none: stopped before it began
    }
    shown.end();
    conversation.items.push_back(chat_message("assistant", reply));
  }
  if (terminal) std::cerr << "\n";
  return 0;
}

}  // namespace easydel::cli
