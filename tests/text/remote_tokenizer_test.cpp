#include "easydel/text/remote/remote_tokenizer.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "easydel/base/clock.h"
#include "easydel/base/deadline.h"
#include "easydel/base/files.h"
#include "easydel/text/remote/line_channel.h"
#include "easydel/text/remote/tokenize_lines.h"
#include "easydel/text/remote/tokenizer_worker.h"
#include "support/data.h"

namespace easydel::text {
namespace {

using test::refusal;

std::shared_ptr<const Tokenizer> story() { return Tokenizer::load(test::test_data("models/stories260K-hf")); }

// A worker on a thread of the test.
class Worker {
 public:
  Worker(std::shared_ptr<const Tokenizer> tokenizer, const std::string& address)
      : worker_(std::in_place, std::move(tokenizer), address), address_(worker_->address()) {
    EXPECT_EQ(::pipe(stop_), 0);
    thread_ = std::thread([this] { worker_->run(stop_[0]); });
  }
  ~Worker() { end(); }
  Worker(const Worker&) = delete;

  const std::string& address() const { return address_; }
  void end() {
    if (!worker_) return;
    EXPECT_EQ(::write(stop_[1], "x", 1), 1);
    thread_.join();
    worker_.reset();
    ::close(stop_[0]), ::close(stop_[1]);
  }

 private:
  std::optional<TokenizerWorker> worker_;
  std::string address_;
  int stop_[2] = {-1, -1};
  std::thread thread_;
};

// Takes the connections of an encoder and a decoder, says the hash on both, and then answers the decoder's first
// question with `answer`; nothing: it says nothing more.
class FalseWorker {
 public:
  FalseWorker(const std::string& address, const std::string& hash, const std::optional<std::string>& answer)
      : listener_(parse_line_address(address, "test"), "test"), thread_([=, this] {
          LineConnection encoder = welcomed(hash), decoder = welcomed(hash);
          decoder.receive(std::nullopt);
          if (answer) decoder.send(*answer, 1);
          decoder.receive(std::nullopt);  // until it is closed
        }) {}
  ~FalseWorker() { thread_.join(); }
  FalseWorker(const FalseWorker&) = delete;

 private:
  LineConnection welcomed(const std::string& hash) {
    Deadline(std::nullopt).wait(listener_.socket(), POLLIN);
    LineConnection one = *listener_.accept();
    one.receive(1);
    one.send(str(R"({"tokenizer_hash": ")", hash, R"("})"), 1);
    return one;
  }

  LineListener listener_;
  std::thread thread_;
};

RemoteTokenizerOptions options_of(const std::string& address) {
  return {.encoder = address, .decoder = address, .startup_seconds = 0.2, .answer_seconds = 0.3};
}

std::vector<std::string> sample_texts() {
  return {"",
          "Once upon a time",
          " two  spaces\n\tand a tab",
          "<s> special </s> tokens",
          "\xC3\xA9t\xC3\xA9 \xF0\x9F\xA6\x8A",
          std::string("\xE4\xBD\xA0 bad \xFF\xE4\xBD bytes \0 nul", 26),
          "a \"quote\" \\ and \x01 control"};
}

void expect_equal(const Encoding& a, const Encoding& b) {
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.offsets, b.offsets);
  EXPECT_EQ(a.special_tokens_mask, b.special_tokens_mask);
  EXPECT_EQ(a.type_ids, b.type_ids);
  ASSERT_EQ(a.overflowing.size(), b.overflowing.size());
  for (size_t i = 0; i < a.overflowing.size(); ++i) expect_equal(a.overflowing[i], b.overflowing[i]);
}

void expect_equal(const std::shared_ptr<const Tokenizer>& own, const std::shared_ptr<const Tokenizer>& remote) {
  for (const std::string& text : sample_texts()) {
    for (const bool flag : {false, true}) {
      const EncodeOptions options{.add_special_tokens = flag, .parse_special = !flag, .file_limits = flag};
      EXPECT_EQ(own->encode(text, options), remote->encode(text, options)) << text;
      expect_equal(own->encode_full(text, std::nullopt, options), remote->encode_full(text, std::nullopt, options));
      expect_equal(own->encode_full(text, "and another", options), remote->encode_full(text, "and another", options));
    }
    const std::vector<TokenId> ids = own->encode(text);
    for (const bool skip : {false, true})
      for (const std::optional<bool> clean : {std::optional<bool>(), std::optional(false), std::optional(true)})
        EXPECT_EQ(own->decode(ids, skip, clean, skip), remote->decode(ids, skip, clean, skip)) << text;
    DecodeStream one(own), other(remote);
    for (const TokenId id : ids) EXPECT_EQ(one.push(id), other.push(id)) << text;
    EXPECT_EQ(one.finish(), other.finish());
  }
  const std::vector<size_t> breaks = {1};
  expect_equal(own->encode_with_breaks("<s> and <s>", breaks), remote->encode_with_breaks("<s> and <s>", breaks));
}

TEST(RemoteTokenizer, GivesTheTokensAndTextsOfTheTokenizerItself) {
  for (const char* name : {"cl100k", "prepend_fallback", "word_piece", "unigram_charsmap"}) {
    SCOPED_TRACE(name);
    const auto own = Tokenizer::load(test::test_data(str("tokenizers/", name, ".json.gz")));
    const test::TemporaryFolder folder;
    const Worker worker(own, str("unix:", (folder / "socket").string()));
    expect_equal(own, remote_tokenizer(own, options_of(worker.address())));
  }
  const Worker worker(story(), "tcp://127.0.0.1:0");
  expect_equal(story(), remote_tokenizer(story(), options_of(worker.address())));
}

TEST(RemoteTokenizer, AnswersManyThreadsAtOnce) {
  const auto own = story();
  const Worker worker(own, "tcp://127.0.0.1:0");
  const auto remote = remote_tokenizer(own, options_of(worker.address()));
  std::vector<std::future<void>> all;
  for (int thread = 0; thread < 8; ++thread)
    all.push_back(std::async(std::launch::async, [&, thread] {
      for (int i = 0; i < 100; ++i) {
        const std::string text = str("text ", i, " of thread ", thread);
        const std::vector<TokenId> ids = remote->encode(text);
        EXPECT_EQ(ids, own->encode(text));
        EXPECT_EQ(remote->decode(ids), text);
      }
    }));
  for (auto& one : all) one.get();
}

TEST(RemoteTokenizer, IsRefusedWithoutTheModelsTokenizerAtItsAddress) {
  const test::TemporaryFolder folder;
  const std::string address = str("unix:", (folder / "socket").string());
  EXPECT_EQ(refusal([&] { remote_tokenizer(story(), options_of(address)); }),
            str("esurge.tokenizer_endpoint: no tokenizer answers at ", address,
                " within 0.2 s: it cannot be reached: No such file or directory\n"
                "    start one: easydel tokenize MODEL --serve ",
                address));
  const Worker worker(story(), "tcp://127.0.0.1:0");
  const Worker other(Tokenizer::load(test::test_data("tokenizers/cl100k.json.gz")), address);
  RemoteTokenizerOptions options = options_of(worker.address());
  options.decoder = address;
  EXPECT_EQ(
      refusal([&] { remote_tokenizer(story(), options); }),
      str("esurge.detokenizer_endpoint: the tokenizer at ", address,
          " is another one than the model's\n    start it with the model's: easydel tokenize MODEL --serve ", address));
}

TEST(RemoteTokenizer, GoesOnAfterItsWorkerWasStartedAgain) {
  const test::TemporaryFolder folder;
  const std::string address = str("unix:", (folder / "socket").string());
  const auto own = story();
  std::optional<Worker> worker(std::in_place, own, address);
  const auto remote = remote_tokenizer(own, options_of(address));
  EXPECT_EQ(remote->encode("Once"), own->encode("Once"));
  worker.reset();
  EXPECT_EQ(refusal([&] { remote->encode("Once"); }),
            str("esurge.tokenizer_endpoint: the tokenizer at ", address,
                " cannot be reached: No such file or directory\n    start it again: easydel tokenize MODEL --serve ",
                address));
  EXPECT_THROW(remote->decode(own->encode("Once")), TokenizerLost);
  worker.emplace(own, address);
  EXPECT_EQ(remote->encode("Once"), own->encode("Once"));
  EXPECT_EQ(remote->decode(own->encode("Once")), "Once");
}

TEST(RemoteTokenizer, DoesNotWaitAgainForAWorkerThatHangs) {
  const test::TemporaryFolder folder;
  const std::string address = str("unix:", (folder / "socket").string());
  const FalseWorker worker(address, tokenizer_hash(*story()), std::nullopt);
  const auto remote = remote_tokenizer(story(), options_of(address));
  const std::vector<TokenId> ids = {300, 301};
  const std::string expected = str("esurge.detokenizer_endpoint: the tokenizer at ", address,
                                   " did not answer within 0.3 s\n    start it again: easydel tokenize MODEL "
                                   "--serve ",
                                   address);
  EXPECT_EQ(refusal([&] { remote->decode(ids); }), expected);
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < 10; ++i) EXPECT_THROW(remote->decode(ids), TokenizerLost);
  EXPECT_LT(seconds_since(begin), 0.25);
}

TEST(RemoteTokenizer, RefusesAnswersThatAreNone) {
  for (const auto& [answer, problem] : {std::pair("Segmentation fault", "answers with what is not JSON"),
                                        std::pair("[1, 2]", "answers something else than what was asked"),
                                        std::pair(R"({"ids": [1]})", "answers something else than what was asked"),
                                        std::pair(R"({"text": 7})", "answers something else than what was asked")}) {
    const test::TemporaryFolder folder;
    const std::string address = str("unix:", (folder / "socket").string());
    const FalseWorker worker(address, tokenizer_hash(*story()), answer);
    const auto remote = remote_tokenizer(story(), options_of(address));
    EXPECT_EQ(refusal([&] { remote->decode(std::vector<TokenId>{300}); }),
              str("esurge.detokenizer_endpoint: the tokenizer at ", address, " ", problem,
                  "\n    start it again: easydel tokenize MODEL --serve ", address));
  }
}

TEST(RemoteTokenizer, PassesOnWhatTheTokenizerRefuses) {
  EXPECT_EQ(TokenizeLines(story()).answer(R"({"text": "a", "breaks": [5]})"),
            R"({"error": "line: 'breaks' has something that is not a place in the text"})");
  EXPECT_EQ(TokenizeLines(story()).answer(R"({"ids": [-1]})"),
            R"({"error": "line: 'ids' has something that is not a token id"})");
}

TEST(TokenizerHash, TellsTokenizersOfOneVocabularyApart) {
  const std::string json = files::read_compressed(test::test_data("tokenizers/roberta.json.gz"));
  const test::TemporaryFolder folder;
  std::string other = json;
  const std::string flag = "\"add_prefix_space\":";
  const size_t at = other.find(flag);
  ASSERT_NE(at, std::string::npos);
  const bool is_true = other.find("true", at) < other.find("false", at);
  const std::string value = is_true ? "true" : "false";
  other.replace(other.find(value, at), value.size(), is_true ? "false" : "true");
  test::write_file(folder / "a.json", json);
  test::write_file(folder / "b.json", other);
  EXPECT_EQ(tokenizer_hash(*Tokenizer::load(folder / "a.json")),
            tokenizer_hash(*Tokenizer::load(test::test_data("tokenizers/roberta.json.gz"))));
  EXPECT_NE(tokenizer_hash(*Tokenizer::load(folder / "a.json")), tokenizer_hash(*Tokenizer::load(folder / "b.json")));
}

TEST(LineChannel, KeepsItsSocketToItsUserAndOtherFilesAsTheyAre) {
  const test::TemporaryFolder folder;
  const std::string path = (folder / "socket").string(), file = (folder / "file").string();
  {
    const LineListener listener({.path = path}, "--serve");
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    EXPECT_EQ(refusal([&] { LineListener({.path = path}, "--serve"); }),
              str("--serve: cannot listen at unix:", path, ": Address already in use\n    give another address"));
  }
  EXPECT_FALSE(files::exists(path));
  test::write_file(file, "kept");
  EXPECT_EQ(refusal([&] { LineListener({.path = file}, "--serve"); }),
            str("--serve: cannot listen at unix:", file, ": Address already in use\n    give another address"));
  EXPECT_EQ(test::read_file(file), "kept");
}

TEST(LineChannel, BoundsItsLines) {
  const test::TemporaryFolder folder;
  const LineAddress address{.path = (folder / "socket").string()};
  const LineListener listener(address, "test");
  const LineConnection one = connect_to(address, 1);
  LineConnection other = *listener.accept();
  one.send("short", 1);
  one.send(std::string(101, 'x'), 1);
  EXPECT_EQ(other.receive(1, 100), "short");
  try {
    other.receive(1, 100);
    FAIL();
  } catch (const ConnectionLost& lost) {
    EXPECT_STREQ(lost.what(), "sends a line of more than 100 bytes");
  }
}

TEST(LineChannel, RefusesWhatIsNotAnAddressOfThisMachine) {
  const std::string remedy =
      "\n    give unix:/path, or tcp://127.0.0.1:PORT; texts are sent as they are, so they stay on this machine";
  for (const char* text : {"", "localhost:80", "tcp://10.0.0.1:80", "tcp://127.0.0.1:", "tcp://127.0.0.1:70000",
                           "tcp://127.0.0.1:80x", "tcp://127.0.0.1:0"})
    EXPECT_EQ(refusal([&] { parse_line_address(text, "key"); }),
              str("key: '", text, "' is not an address of this machine", remedy));
  EXPECT_EQ(parse_line_address("ipc:///tmp/a", "key").path, "/tmp/a");
  EXPECT_EQ(refusal([&] { parse_line_address("unix:", "key"); }),
            "key: 'unix:' is not the path of a socket\n    give unix:/path with at most 107 bytes of path");
  EXPECT_EQ(parse_line_address("tcp://127.0.0.1:0", "key", true).text(), "tcp://127.0.0.1:0");
}

}  // namespace
}  // namespace easydel::text
