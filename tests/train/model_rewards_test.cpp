// Rewards that others give: a model, a service, a function of a plug-in.
#include "easydel/train/model_reward.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/data.h"

namespace easydel::train {
namespace {

namespace fs = std::filesystem;
using Answers = std::vector<std::optional<double>>;

Answers score(CompletionReward& reward, const std::vector<std::string>& completions, const Value& prompt) {
  const Value fields = Value::map();
  const std::vector<int32_t> ids{1, 2, 3};
  std::vector<Judged> judged;
  for (const std::string& completion : completions) judged.push_back({fields, "prompt", completion, ids, prompt});
  return reward.score(judged);
}

// A classifier of `labels` classes with the story model's stack, with its tokenizer.
void write_classifier(const fs::path& folder, int64_t labels) {
  const fs::path story = test::test_data("models/stories260K-hf");
  models::LoadOptions options;
  options.task = models::Task::sequence_classification;
  options.labels = labels;
  options.seed = 3;
  models::save_model(*models::load_model(story, options), folder);
  text::save_tokenizer(*text::Tokenizer::load(story), folder);
}

TEST(ModelReward, IsTheScoreOfPromptAndCompletion) {
  const test::TemporaryFolder folder;
  write_classifier(folder.path(), 1);
  const auto reward = folder_reward(folder.path().string(), "trainer.rewards: judge");
  const std::vector<std::string> completions{" there was a cat.", " a", " the dog ran away and never came back"};
  const Answers got = score(*reward, completions, Value::text("Once upon a time"));

  const auto model = models::load_model(folder.path(), {});
  const auto tokenizer = text::Tokenizer::load(folder.path());
  const c10::InferenceMode no_grad;
  for (size_t i = 0; i < completions.size(); ++i) {
    std::vector<int64_t> ids;
    for (const int32_t id : tokenizer->encode("Once upon a time" + completions[i], {.add_special_tokens = false}))
      ids.push_back(id);
    nn::Pass pass = nn::Pass::over({0, int64_t(ids.size())});
    const Tensor tokens = at::tensor(ids, at::kLong);
    const Tensor scores = model->class_head()->scores(model->forward({tokens}, pass).hidden, tokens, pass);
    ASSERT_TRUE(got.at(i)) << i;
    EXPECT_NEAR(*got[i], scores[0][0].item<double>(), 1e-6) << i;
  }
  EXPECT_NE(*got[0], *got[1]);
}

TEST(ModelReward, RefusesModelsThatGiveNoScore) {
  const test::TemporaryFolder folder;
  write_classifier(folder.path(), 2);
  EXPECT_EQ(test::refusal([&] { folder_reward(folder.path().string(), "trainer.rewards: judge"); }),
            "trainer.rewards: judge: the model's class head has 2 labels, and a reward is one number\n    give a model "
            "with one label");
  EXPECT_EQ(test::refusal(
                [&] { folder_reward(test::test_data("models/stories260K-hf").string(), "trainer.rewards: judge"); }),
            "trainer.rewards: judge: the model gives no score to a text: it has no class head\n    give one that was "
            "trained to score texts");
}

// A service that answers each request as its body says: lengths of completions, or a status, or something else.
class Service {
 public:
  explicit Service(const std::string& answers) {
    int out[2];
    check(pipe(out) == 0, "pipe");
    child_ = fork();
    if (child_ == 0) {
      dup2(out[1], 1);
      for (const int end : out) close(end);
      const std::string program = "answers = " + answers + R"(
import http.server, json
class Judge(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["completions"]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, int):
            self.send_response(answer)
            self.send_header("Location", "http://localhost:1/elsewhere")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        body = json.dumps({"rewards": [len(one["completion"]) for one in asked]} if answer == "lengths" else answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Judge)
print(server.server_port, flush=True)
server.serve_forever()
)";
      execlp("python3", "python3", "-c", program.c_str(), nullptr);
      _exit(127);
    }
    close(out[1]);
    std::string line;
    for (char c = 0; ::read(out[0], &c, 1) == 1 && c != '\n';) line += c;
    close(out[0]);
    url_ = "http://127.0.0.1:" + line + "/judge";
  }
  ~Service() {
    kill(child_, SIGTERM);
    waitpid(child_, nullptr, 0);
  }
  const std::string& url() const { return url_; }

 private:
  pid_t child_ = -1;
  std::string url_;
};

// The answers to three completions in requests of two, or the refusal with URL for the service's.
std::string asked(const std::string& answers, int64_t retries = 0) {
  const Service service(answers);
  RewardEntry entry;
  entry.type = RewardType::http;
  entry.url = service.url();
  entry.retries = retries;
  entry.batch_size = 2;
  std::string out;
  const auto ask = [&] {
    for (const auto& one : score(*build_rewards({entry}).at(0).reward, {"a", "bb", "ccc"}, Value::text("p")))
      out += one ? str(*one, " ") : "null ";
  };
  const std::string refused = test::refusal(ask);
  return out.ends_with(" ") ? out : test::replaced(refused, service.url(), "URL");
}

TEST(HttpReward, IsWhatTheServiceAnswers) {
  EXPECT_EQ(asked("['lengths']"), "1 2 3 ");
  EXPECT_EQ(asked("[{'rewards': [None, 0.5]}, [2]]"), "null 0.5 2 ");
  EXPECT_EQ(asked("[503, 'lengths']", 1), "1 2 3 ");
}

TEST(HttpReward, RefusesWhatIsNoAnswer) {
  const std::string where = "trainer.rewards: http 'http': ";
  EXPECT_EQ(asked("[500]"),
            where + "URL answered 500: \n    it was asked 1 times; see that the service runs, or raise retries");
  EXPECT_EQ(asked("[404]"), where + "URL answered 404: ");
  EXPECT_EQ(asked("[307]"),
            where +
                "URL redirects to http://localhost:1/elsewhere, a host that was not named\n    give the "
                "url that it redirects to");
  EXPECT_EQ(asked("[[1, 2, 3]]"), where + "answered 3 rewards for 2 completions");
  EXPECT_EQ(asked("[{'rewards': ['much', 1]}]"), where + "answered \"much\", which is neither a number nor null");
  EXPECT_EQ(asked("[{'reward': 1}]"), where + "answered without a list of rewards: {\"reward\": 1}");
}

std::optional<double> longer_than_two(const Judged& one) {
  if (one.completion.empty()) return std::nullopt;
  return one.completion.size() > 2 ? 1.0 : 0.0;
}

TEST(PluginReward, IsAFunctionByItsName) {
  RewardEntry entry;
  entry.type = RewardType::plugin;
  entry.function = "longer_than_two";
  EXPECT_EQ(test::refusal([&] { build_rewards({entry}); }),
            "trainer.rewards: no plug-in has a reward function 'longer_than_two'\n    load the plug-in that has it "
            "(--plugin)");
  register_reward("longer_than_two", longer_than_two);
  EXPECT_EQ(score(*build_rewards({entry}).at(0).reward, {"a", "bbb", ""}, Value()), (Answers{0, 1, std::nullopt}));
  EXPECT_EQ(test::refusal([&] { register_reward("longer_than_two", longer_than_two); }),
            "plug-in: the reward function 'longer_than_two' is there already\n    give it another name");
}

TEST(JsonReward, MayAskForASchema) {
  RewardEntry entry;
  entry.type = RewardType::json;
  entry.schema = parse_json(
      R"({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"], "additionalProperties": false})");
  EXPECT_EQ(
      score(*build_rewards({entry}).at(0).reward,
            {"{\"age\": 3}", " {\"age\":3}\n", "{\"age\": \"3\"}", "{}", "{\"age\": 3} and more", "", "{\"age\": "},
            Value()),
      (Answers{1, 1, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace easydel::train
