// `easydel chat`, from a pipe and at a terminal.
#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel {
namespace {

using test::run_program;

std::vector<std::string> chat_of_stories() {
  return {"chat",        test::test_data("models/stories260K-hf").string(),
          "--tokenizer", test::test_data("models/stories260K-chat").string(),
          "-n",          "5",
          "-t",          "0"};
}

std::string answer_to(const std::string& message) {
  std::vector<std::string> words = chat_of_stories();
  words[0] = "generate";
  words.insert(words.end(), {"--chat", "--no-echo", "-p", message});
  return run_program(words).out;
}

TEST(Chat, RefusesCommandsThatItDoesNotKnow) {
  const auto ran = run_program(chat_of_stories(), {.input = "/resett\n/help\n/xyz 1\nHello\n"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, answer_to("Hello"));
  EXPECT_NE(ran.err.find("'/resett' is not a command\n    did you mean '/reset'?"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("'/xyz' is not a command\n    /help lists the commands"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("/reset   start a new conversation\n"), std::string::npos) << ran.err;
}

TEST(Chat, TakesATemplateFromAFile) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "t.jinja", "{{ messages[-1].content }}");
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--template", (folder / "t.jinja").string()});
    return words;
  };
  const auto ran = run_program(with(chat_of_stories()), {.input = "Once upon a time\n"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out, answer_to("Once upon a time"));
  // A folder without a template of its own can chat, too.
  const auto bare = run_program(with({"chat", test::test_data("models/stories260K-hf").string(), "-n", "5", "-t", "0"}),
                                {.input = "Once upon a time\n"});
  EXPECT_EQ(bare.out, ran.out);
}

// Types at a terminal: each line of `keys` is sent when a prompt was written and nothing follows. Prints what standard
// output got.
constexpr const char* typist = R"(
import os, pty, select, sys, time
keys = [eval("b'" + line + "'") for line in open(sys.argv[1]).read().splitlines()]
read_end, write_end = os.pipe()
pid, terminal = pty.fork()
if pid == 0:
    os.dup2(write_end, 1)
    os.environ['TERM'] = 'xterm'
    os.environ['NO_COLOR'] = '1'
    os.execv(sys.argv[2], sys.argv[2:])
os.close(write_end)
screen, out, prompts, deadline = b'', b'', 0, time.time() + 60
while time.time() < deadline:
    ready, _, _ = select.select([terminal, read_end], [], [], 0.2)
    if read_end in ready:
        more = os.read(read_end, 65536)
        if not more:
            break
        out += more
    if terminal in ready:
        try:
            screen += os.read(terminal, 65536)
        except OSError:
            pass
    # The prompt is written after bracketed paste was switched on.
    if not ready and keys and screen.count(b'\x1b[?2004h') > prompts:
        prompts += 1
        os.write(terminal, keys.pop(0))
_, status = os.waitpid(pid, 0)
sys.stdout.write(out.decode())
sys.stderr.write(screen.decode(errors='replace'))
sys.exit(os.waitstatus_to_exitcode(status))
)";

test::Ran type(const std::string& keys) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "typist.py", typist);
  test::write_file(folder / "keys", keys);
  std::vector<std::string> command = {"python3", (folder / "typist.py").string(), (folder / "keys").string(),
                                      test::program().string()};
  const std::vector<std::string> words = chat_of_stories();
  command.insert(command.end(), words.begin(), words.end());
  return test::run(command);
}

TEST(ChatAtATerminal, TakesAPasteOfSeveralLinesAsOneMessage) {
  const auto ran = type("\\x1b[200~How did Max\\rfeel?\\x1b[201~\\r\n\\x04\n");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, answer_to("How did Max\nfeel?"));
  EXPECT_NE(ran.out, answer_to("How did Max feel?")) << "the line break is part of the message";
}

TEST(ChatAtATerminal, ClearsTheMessageOnCtrlC) {
  const auto ran = type("Nothing of this\\x03Hello\\r\n\\x04\n");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, answer_to("Hello"));
}

// The message of the line before last comes back by the keys up, up; the cursor's keys edit it.
TEST(ChatAtATerminal, HasAHistoryAndEditsLines) {
  const auto ran = type("Hello\\r\n/reset\\r\n\\x1b[A\\x1b[A\\r\n/reset\\r\nHllo\\x01\\x06e\\r\n\\x04\n");
  EXPECT_EQ(ran.status, 0) << ran.err;
  const std::string answer = answer_to("Hello");
  EXPECT_EQ(ran.out, answer + answer + answer);
}

}  // namespace
}  // namespace easydel
