// python/easydel_harness under the program, without lm-evaluation-harness: tests/support/harness/fake_lm_eval stands
// for it, whose tasks are requests that a test writes. What the keys of the section eval do to requests and answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel {
namespace {

using test::Ran;

const char* const pairs = R"({"pairs": {"requests": [
  {"kind": "loglikelihood", "arguments": ["Once upon a time", ", there"]},
  {"kind": "loglikelihood", "arguments": ["Once upon a time", " Tom"]},
  {"kind": "loglikelihood", "arguments": ["Once upon a time ", "there"]},
  {"kind": "loglikelihood", "arguments": ["", "Once"]},
  {"kind": "loglikelihood_rolling", "arguments": ["Once upon a time. The end."]},
  {"kind": "generate_until", "arguments": ["Once upon a time", {"until": ["girl"], "max_gen_toks": 20}]}]}})";

// A text of 16 tokens up to a full stop, one without a limit, and one that is asked for twice.
const char* const texts = R"({"sums": {"requests": [
  {"kind": "generate_until", "arguments": ["Once upon a time, there was", {"until": ["."], "max_gen_toks": 16}]},
  {"kind": "generate_until", "arguments": ["1 2 3 4 5 6 7 8 9 10", {"until": ["\n"]}]},
  {"kind": "generate_until", "repeats": 2, "arguments": ["Tom and", {"until": ["."]}]}]}})";

class Adapter : public testing::Test {
 protected:
  Ran evaluate(const std::string& tasks, const std::vector<std::string>& keys, std::vector<std::string> more = {}) {
    test::write_file(folder_ / "tasks.json", tasks);
    std::vector<std::string> arguments{"eval", story(), "--tasks", "*", "-o", (folder_ / "r.json").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    for (const std::string& key : keys) arguments.insert(arguments.end(), {"--set", "eval." + key});
    return test::run_program(arguments, {.environment = environment()});
  }
  std::vector<std::pair<std::string, std::string>> environment() const {
    return {{"EASYDEL_PYTHON", "python3"},
            {"PYTHONPATH", (test::source_root() / "tests/support/harness/fake_lm_eval").string()},
            {"PYTHONDONTWRITEBYTECODE", "1"},
            {"FAKE_TASKS", (folder_ / "tasks.json").string()}};
  }
  Value document(const std::string& tasks, const std::vector<std::string>& keys, std::vector<std::string> more = {}) {
    const Ran ran = evaluate(tasks, keys, std::move(more));
    EXPECT_EQ(ran.status, 0) << ran.err;
    return parse_file(folder_ / "r.json");
  }
  // The answers of the task `sums`, as one text each; with repeats all of them.
  std::vector<std::string> answers(std::vector<std::string> keys) {
    keys.insert(keys.begin(), "max_new_tokens=24");
    const Value read = document(texts, keys);
    std::vector<std::string> out;
    for (const Value& answer : read.find("answers")->find("sums")->items) {
      if (answer.is_text()) out.push_back(answer.scalar);
      for (const Value& one : answer.items) out.push_back(one.scalar);
    }
    EXPECT_EQ(out.size(), 4u);
    return out;
  }
  static std::string story() { return test::test_data("models/stories260K-hf").string(); }

  test::TemporaryFolder folder_;
};

TEST_F(Adapter, AnswersAsTheCommandScoreDoes) {
  const Value read = document(pairs, {});
  const Ran score =
      test::run_program({"score", story()}, {.input = R"({"context": "Once upon a time", "continuation": ", there"}
{"context": "Once upon a time", "continuation": " Tom"}
{"context": "Once upon a time ", "continuation": "there"}
{"context": "", "continuation": "Once"}
{"text": "Once upon a time. The end."}
{"context": "Once upon a time", "until": ["girl"], "max_gen_toks": 20}
)"});
  std::vector<Value> expected;
  for (size_t begin = 0, end; (end = score.out.find('\n', begin)) != std::string::npos; begin = end + 1)
    expected.push_back(parse_json(score.out.substr(begin, end - begin)));
  ASSERT_EQ(expected.size(), 6u);
  const std::vector<Value>& found = read.find("answers")->find("pairs")->items;
  ASSERT_EQ(found.size(), 6u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(found[i].items[0].as_double(), expected[i].find("logprob")->as_double()) << i;
    EXPECT_EQ(found[i].items[1].as_bool(), expected[i].find("is_greedy")->as_bool()) << i;
  }
  EXPECT_EQ(found[4].as_double(), expected[4].find("logprob")->as_double());
  EXPECT_EQ(found[5].scalar, expected[5].find("text")->scalar);
  EXPECT_EQ(read.find("model")->find("length")->as_int(), 512);
  EXPECT_EQ(read.find("model")->find("prefix")->as_int(), 1);
  EXPECT_EQ(read.find("model")->find("end")->as_int(), 2);
  EXPECT_EQ(read.find("config")->find("model_num_parameters")->as_int(), 260032);
  EXPECT_EQ(read.find("config")->find("model_dtype")->scalar, "torch.float32");
  EXPECT_GT(read.find("easydel")->find("seconds")->find("pairs")->as_double().value(), 0);
}

TEST_F(Adapter, TakesKeysOfGeneration) {
  using Answers = std::vector<std::string>;
  const Answers plain = answers({}), named = {"a little girl named Lily", "000 many things. Peppa was very excited. He",
                                              "Lily were playing in the park", "Lily were playing in the park"};
  ASSERT_EQ(plain, named);
  const Answers on = answers({"ignore_benchmark_eos_flags=true"});
  EXPECT_TRUE(on[0].starts_with(plain[0] + ". She")) << on[0];
  EXPECT_EQ(answers({"max_new_tokens=4"}), (Answers{plain[0], "000 m", "Lily were play", "Lily were play"}));
  EXPECT_EQ(answers({"max_new_tokens=4", "hard_max_new_tokens=true"})[0], "a little gir");
  EXPECT_EQ(answers({"gen_kwargs={max_gen_toks: 3}"}), (Answers{"a little g", "000", "Lily were", "Lily were"}));
  EXPECT_NE(answers({"sampling_params={repetition_penalty: 9.0}"})[0], plain[0]);
  EXPECT_EQ(answers({"think_end_token=girl"})[0], "named Lily");
  EXPECT_EQ(answers({"think_end_token=none", "think_start_token=playing"})[2], "Lily were ");
}

TEST_F(Adapter, DrawsAnswersFromTheSeedTheDocumentAndTheRepeat) {
  const auto plain = answers({}), drawn = answers({"temperature=1.5"});
  EXPECT_NE(drawn[0], plain[0]);
  EXPECT_NE(drawn[2], drawn[3]) << "each repeat has draws of its own";
  EXPECT_EQ(answers({"temperature=1.5", "batch_size=1"}), drawn);
  EXPECT_NE(answers({"temperature=1.5", "random_seed=1"}), drawn);
  EXPECT_EQ(answers({"temperature=1.5", "top_p=0.0001"}), plain);
}

TEST_F(Adapter, WritesTheNumberOfAMathematicalAnswerAsTasksLookForIt) {
  const std::string text = answers({})[1];
  EXPECT_EQ(answers({"normalize_math_answers=true", "math_answer_task_hints=[sum]"})[1], text + "\n#### 000");
  EXPECT_EQ(answers({"normalize_math_answers=true", "math_answer_task_hints=[other]"})[1], text);
  const std::string script = R"(
from easydel_harness.model import normalized_math_answer as of
print([of(text) for text in ("so \\boxed{x^{2}} = 4", "it is $1,234.50.", "-7 apples", "#### 3", "none", "\\boxed{open 5")])
)";
  const Ran ran = test::run(
      {"python3", "-B", "-c", script},
      {.environment = {{"PYTHONPATH", (test::source_root() / "python").string() + ":" +
                                          (test::source_root() / "tests/support/harness/fake_lm_eval").string()}}});
  EXPECT_EQ(
      ran.out,
      "['so \\\\boxed{x^{2}} = 4\\n#### x^{2}', 'it is $1,234.50.\\n#### 1234.50', '-7 apples\\n#### -7', '#### 3', "
      "'none', '\\\\boxed{open 5\\n#### 5']\n")
      << ran.err;
}

TEST_F(Adapter, RendersConversationsByTheTemplate) {
  const char* const chat = R"({"chat": {"requests": [
    {"kind": "generate_until", "messages": [{"role": "user", "content": "Hello"}], "arguments": [{"until": ["."]}]}]}})";
  test::write_file(folder_ / "chat.jinja",
                   "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
                   "{% if thinking is defined %}{{ thinking }}{% endif %}"
                   "{% if enable_thinking is defined %}[{{ enable_thinking }}]{% endif %}"
                   "{% if add_generation_prompt %}<assistant>{% endif %}");
  const auto context = [&](std::vector<std::string> keys) {
    keys.insert(keys.end(), {"max_new_tokens=3"});
    const Value read = document(chat, keys, {"--template", (folder_ / "chat.jinja").string()});
    return read.find("contexts")->find("chat")->items[0].scalar;
  };
  EXPECT_EQ(context({}), "Hello");
  EXPECT_EQ(context({"system_instruction=Be brief"}), "Be brief\nHello");
  EXPECT_EQ(context({"apply_chat_template=true"}), "<user>Hello<assistant>");
  EXPECT_EQ(context({"apply_chat_template=true", "system_instruction=Be brief"}),
            "<system>Be brief<user>Hello<assistant>");
  EXPECT_EQ(context({"apply_chat_template=true", "chat_template_args={thinking: hard}", "enable_thinking=false"}),
            "<user>Hellohard[False]<assistant>");
}

TEST_F(Adapter, PassesTheHarnessKeysOn) {
  const Value read = document(pairs, {"batch_size=3", "fewshot_as_multiturn=true", "random_seed=5",
                                      "numpy_random_seed=6", "torch_random_seed=7", "fewshot_random_seed=8",
                                      "bootstrap_iters=9", "predict_only=true", "log_samples=false", "use_tqdm=true"});
  const Value& called = *read.find("called")->find("arguments");
  for (const auto& [key, value] : std::vector<std::pair<const char*, const char*>>{{"batch_size", "3"},
                                                                                   {"fewshot_as_multiturn", "true"},
                                                                                   {"random_seed", "5"},
                                                                                   {"numpy_random_seed", "6"},
                                                                                   {"torch_random_seed", "7"},
                                                                                   {"fewshot_random_seed", "8"},
                                                                                   {"bootstrap_iters", "9"},
                                                                                   {"predict_only", "true"},
                                                                                   {"log_samples", "false"}})
    EXPECT_EQ(to_json(*called.find(key)), value) << key;
  EXPECT_EQ(read.find("called")->find("bars")->as_bool(), false) << "bars are for terminals";
}

TEST_F(Adapter, ComputesAsManyRequestsTogetherAsItIsTold) {
  const auto passes = [&](std::vector<std::string> keys) {
    const Ran ran = evaluate(pairs, keys);
    EXPECT_EQ(ran.status, 0) << ran.err;
    const size_t end = ran.err.find(" pass"), begin = ran.err.rfind(' ', end - 1);
    return end == std::string::npos ? std::string("none") : ran.err.substr(begin + 1, end - begin - 1);
  };
  EXPECT_EQ(passes({}), "1");
  EXPECT_EQ(passes({"batch_size=1"}), "4");
  EXPECT_EQ(passes({"batch_size=2"}), "2");
  EXPECT_EQ(passes({"batch_size=auto", "max_batch_size=1"}), "4");
}

// Requests are divided over the ranks of the batch's axes, and none is computed twice.
TEST_F(Adapter, DividesRequestsAmongRanks) {
  const auto answers = [&](const char* axes) {
    test::write_file(folder_ / "run.yaml",
                     str("model: {name_or_path: ", story(),
                         "}\nloader: {dtype: fp32, param_dtype: fp32}\nsharding: {axis_dims: ", axes,
                         "}\nactions:\n  - eval: {tasks: ['*'], output_path: ", (folder_ / "r.json").string(), "}\n"));
    const Ran ran =
        test::run_program({"--nproc", "2", "elarge", (folder_ / "run.yaml").string()}, {.environment = environment()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    return std::pair(ran.err, to_json(*parse_file(folder_ / "r.json").find("answers")));
  };
  const std::string alone = to_json(*document(pairs, {}).find("answers"));
  for (const char* axes : {"[2,1,1,1,1]", "[1,2,1,1,1]"}) {
    const auto [log, divided] = answers(axes);
    EXPECT_EQ(divided, alone) << axes;
    EXPECT_NE(log.find("eval: 2 requests,"), std::string::npos) << log;
  }
  EXPECT_NE(answers("[1,1,1,2,1]").first.find("eval: 4 requests,"), std::string::npos);
}

TEST_F(Adapter, SaysWhichTasksCannotBeRun) {
  const char* const tasks = R"({"pairs": {"requests": []}, "nothing": {"group": []}})";
  const auto error = [&](const char* names, std::vector<std::string> keys = {}) {
    test::write_file(folder_ / "tasks.json", tasks);
    std::vector<std::string> arguments{"eval", story(), "--tasks", names};
    for (const std::string& key : keys) arguments.insert(arguments.end(), {"--set", "eval." + key});
    const Ran ran = test::run_program(arguments, {.environment = environment()});
    EXPECT_EQ(ran.status, 2);
    return ran.err;
  };
  EXPECT_EQ(error("pars"), "actions[0].eval: there is no task 'pars'\n    did you mean 'pairs'?\n");
  EXPECT_EQ(error("pairs,nothing"), "actions[0].eval: the group 'nothing' has no tasks\n");
  EXPECT_EQ(error("pairs", {"num_fewshot=9"}),
            "actions[0].eval: task 'pairs' has 8 documents to show as examples, and num_fewshot is 9\n"
            "    lower num_fewshot\n");
  EXPECT_EQ(error("pairs", {"samples={copa: [1]}"}),
            "actions[0].eval: samples names 'copa', which is not among the tasks\n");
}

TEST_F(Adapter, KeepsCodeOfAModelFromTheNetworkAndAsksFirst) {
  const char* const code = R"json({"code": {"requests": [], "config": {"unsafe_code": true, "code":
    "import os, resource, socket, evaluate\nsay(os.environ['HF_ALLOW_CODE_EVAL'])\ntry:\n    socket.socket()\nexcept OSError as error:\n    say(type(error).__name__)\nsay(evaluate.load('code_eval').compute(k=[1]))\nsay(resource.getrlimit(resource.RLIMIT_AS)[0] > 0)\nif os.fork() == 0:\n    os._exit(resource.getrlimit(resource.RLIMIT_CPU)[0] % 256)\nsay(os.waitstatus_to_exitcode(os.wait()[1]))"}}})json";
  EXPECT_TRUE(
      evaluate(code, {}).err.ends_with("actions[0].eval: task 'code' runs code that the model writes\n"
                                       "    set eval.confirm_run_unsafe_code: true if it may do so on this machine\n"));
  const Value read = document(code, {"confirm_run_unsafe_code=true", "code_eval_timeout=7", "code_eval_num_workers=3"});
  const std::string said = to_json(*read.find("said")->find("code"));
  EXPECT_EQ(said, R"(["1", "PermissionError", {"k": [1], "num_workers": 3, "timeout": 7.0}, true, 70])");
}

}  // namespace
}  // namespace easydel
