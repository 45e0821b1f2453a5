// Requests to encoders: whose texts share a pass, who sees and ends them, and what becomes of failures.
#include "easydel/server/encode_queue.h"

#include <gtest/gtest.h>

#include <thread>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "server/fake_engine.h"
#include "support/data.h"

namespace easydel::server {
namespace {

using test::FakeServer;
using test::Reply;

// A text's embedding is the number of its tokens, and ten times as much after each change of weights; holds passes back
// until release().
class FakeEncoder final : public ServedEncoder {
 public:
  FakeEncoder() { vocabulary = 512; }

  std::vector<Vector> encode(std::span<const EncodedText> texts) override {
    std::unique_lock lock(mutex_);
    std::vector<size_t>& pass = passes_.emplace_back();
    for (const EncodedText& text : texts) pass.push_back(text.ids.size());
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::milliseconds(test::patience_milliseconds), [this] { return !held_; });
    if (std::ranges::count(pass, fails_at_.load())) throw Bug("the model failed");
    std::vector<Vector> out;
    for (const size_t size : pass) out.push_back({float(size) * factor_});
    return out;
  }
  std::function<std::string()> load_weights(const std::filesystem::path& folder) override {
    if (folder.filename() == "other") throw UserError("model", "the new weights have another shape", "");
    return [this, folder] {
      const std::lock_guard lock(mutex_);
      factor_ *= 10;
      return folder.filename().string();
    };
  }
  void release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  void fail_at(size_t size) { fails_at_ = size; }
  bool has_begun(size_t passes) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(test::patience_milliseconds),
                             [&] { return passes_.size() >= passes; });
  }
  std::vector<std::vector<size_t>> passes() {
    const std::lock_guard lock(mutex_);
    return passes_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::vector<size_t>> passes_;
  std::atomic<size_t> fails_at_ = 0;
  float factor_ = 1;  // of these weights
  bool held_ = true;
};

class EncodeQueueTest : public testing::Test {
 protected:
  ~EncodeQueueTest() override { encoder_->release(); }

  // Sends texts of these numbers of tokens.
  std::unique_ptr<test::RawClient> ask(const std::vector<int>& sizes, const std::string& headers = "") const {
    std::string input;
    for (const int size : sizes) {
      std::string ids = "5";
      for (int i = 1; i < size; ++i) ids += ",5";
      input += (input.empty() ? "[" : ",[") + ids + "]";
    }
    return std::make_unique<test::RawClient>(
        server_.http->port(), FakeServer::posted("/v1/embeddings", "{\"input\": [" + input + "]}",
                                                 headers + server_.key_header() + "Connection: close\r\n"));
  }
  bool has_requests(int64_t count) const {
    return test::eventually([&] { return server_.encodes.count() == count; });
  }
  static std::vector<std::string> numbers(const std::string& response) {
    std::vector<std::string> out;
    const Value answer = parse_json(response.substr(response.find("\r\n\r\n") + 4));
    if (!answer.find("data")) return {response};
    for (const Value& one : answer.find("data")->items) out.push_back(one.find("embedding")->items[0].scalar);
    return out;
  }

  static Reply change(const FakeServer& server, const std::string& body) {
    return server.post("/v1/admin/weights", body);
  }

  test::TemporaryFolder folder_;
  std::shared_ptr<FakeEncoder> encoder_ = std::make_shared<FakeEncoder>();
  FakeServer server_{test::random_answer,
                     [this](ServeConfig& config) {
                       for (const char* name : {"second", "third", "other"}) {
                         files::make_directories(folder_ / name);
                         files::write(folder_ / name / "config.json", "{}");
                       }
                       config.weights_dir = folder_.path().string(), config.admin_key = "an-administrators-key";
                     },
                     [this](ServedModel& model) {
                       model.engine = nullptr;
                       model.encoder = encoder_;
                       model.max_model_len = 5000;
                       model.fingerprint = "first";
                     }};
};

using Sizes = std::vector<size_t>;

TEST_F(EncodeQueueTest, PutsTextsOfSeveralRequestsIntoAPassInTurn) {
  const auto first = ask({1});
  ASSERT_TRUE(encoder_->has_begun(1));
  const auto large = ask({2000, 2001, 2002});
  ASSERT_TRUE(has_requests(2));
  const auto small = ask({7, 8});
  ASSERT_TRUE(has_requests(3));
  encoder_->release();
  EXPECT_EQ(numbers(first->all()), (std::vector<std::string>{"1"}));
  EXPECT_EQ(numbers(small->all()), (std::vector<std::string>{"7", "8"}));
  EXPECT_EQ(numbers(large->all()), (std::vector<std::string>{"2000", "2001", "2002"}));
  EXPECT_EQ(encoder_->passes(), (std::vector<Sizes>{{1}, {2000, 7, 2001, 8}, {2002}}));
}

TEST_F(EncodeQueueTest, ListsRequestsAndEndsThem) {
  const auto first = ask({1});
  ASSERT_TRUE(encoder_->has_begun(1));
  const auto second = ask({2, 3}, "X-Request-Id: mine\r\n");
  ASSERT_TRUE(has_requests(2));
  const std::vector<AnswerJobs::Info> listed = server_.encodes.list();
  ASSERT_EQ(listed.size(), 2);
  EXPECT_EQ(listed[1].id, "mine");
  EXPECT_EQ(listed[1].route, "/v1/embeddings");
  EXPECT_EQ(listed[1].model, "tiny");
  EXPECT_EQ(listed[1].prompt_tokens, 5);
  const ApiError error{.status = 503, .message = "An administrator ended the request.", .code = "cancelled"};
  EXPECT_FALSE(server_.encodes.cancel("other", error));
  EXPECT_TRUE(server_.encodes.cancel("mine", error));
  const std::string ended = second->all();
  EXPECT_TRUE(ended.starts_with("HTTP/1.1 503")) << ended;
  EXPECT_NE(ended.find("An administrator ended the request."), std::string::npos);
  encoder_->release();
  EXPECT_EQ(numbers(first->all()), (std::vector<std::string>{"1"}));
  EXPECT_EQ(encoder_->passes(), std::vector<Sizes>{{1}});
}

TEST_F(EncodeQueueTest, ComputesNothingForClientsThatHaveGone) {
  const auto first = ask({1});
  ASSERT_TRUE(encoder_->has_begun(1));
  const auto gone = ask({2});
  ASSERT_TRUE(has_requests(2));
  gone->reset();
  const auto third = ask({3});
  ASSERT_TRUE(has_requests(3));
  ASSERT_EQ(server_.get("/health").status, 200);  // the reset was seen before
  encoder_->release();
  EXPECT_EQ(numbers(third->all()), (std::vector<std::string>{"3"}));
  EXPECT_EQ(encoder_->passes(), (std::vector<Sizes>{{1}, {3}}));
}

TEST_F(EncodeQueueTest, GoesOnAfterAFailure) {
  encoder_->fail_at(2);
  encoder_->release();
  const std::string failed = ask({2})->all();
  EXPECT_TRUE(failed.starts_with("HTTP/1.1 500")) << failed;
  EXPECT_EQ(numbers(ask({3})->all()), (std::vector<std::string>{"3"}));
}

// The whole of an answer is of one set of weights, though its texts are in several passes.
TEST_F(EncodeQueueTest, FinishesWhatHasBegunBeforeWeightsChange) {
  const auto large = ask({2000, 2001, 2002});
  ASSERT_TRUE(encoder_->has_begun(1));
  const auto small = ask({7});
  ASSERT_TRUE(has_requests(2));
  Reply changed;
  std::thread changing([&] { changed = change(server_, R"({"path": "second"})"); });
  while (!server_.encodes.is_changing()) std::this_thread::yield();
  encoder_->release();
  changing.join();
  EXPECT_EQ(numbers(large->all()), (std::vector<std::string>{"2000", "2001", "2002"}));
  EXPECT_EQ(numbers(small->all()), (std::vector<std::string>{"70"}));
  EXPECT_EQ(encoder_->passes(), (std::vector<Sizes>{{2000, 2001}, {2002}, {7}}));
  ASSERT_EQ(changed.status, 200) << changed.body;
  EXPECT_EQ(to_json(changed.json()),
            to_json(parse_json(R"({"model": "tiny", "path": "second", "fingerprint": "second",)"
                               R"( "previous_fingerprint": "first"})")));
}

TEST_F(EncodeQueueTest, EndsWhatIsThereForNewWeightsIfAsked) {
  const auto large = ask({2000, 2001, 2002});
  ASSERT_TRUE(encoder_->has_begun(1));
  const auto small = ask({7});
  ASSERT_TRUE(has_requests(2));
  std::thread changing([&] { change(server_, R"({"path": "second", "abort_requests": true})"); });
  for (const auto* client : {&large, &small}) {
    const std::string ended = (*client)->all();
    EXPECT_TRUE(ended.starts_with("HTTP/1.1 503")) << ended;
    EXPECT_NE(ended.find("An administrator ended the request."), std::string::npos) << ended;
  }
  encoder_->release();
  changing.join();
  EXPECT_EQ(numbers(ask({3})->all()), (std::vector<std::string>{"30"}));
  EXPECT_EQ(encoder_->passes(), (std::vector<Sizes>{{2000, 2001}, {3}}));
}

TEST_F(EncodeQueueTest, KeepsThePresentWeightsIfTheNewOnesAreRefused) {
  encoder_->release();
  EXPECT_EQ(change(server_, R"({"path": "other"})").error("message"), "path: the new weights have another shape");
  EXPECT_EQ(numbers(ask({3})->all()), (std::vector<std::string>{"3"}));
}

}  // namespace
}  // namespace easydel::server
