// A tokenizer in another process that ends while requests run: those with text end with its error, others go on.
#include <unistd.h>

#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "easydel/text/remote/remote_tokenizer.h"
#include "easydel/text/remote/tokenizer_worker.h"
#include "esurge/same_bits.h"
#include "support/data.h"

namespace easydel::esurge {
namespace {

TEST(LostTokenizer, EndsTheRequestsWithTextAlone) {
  const auto folder = test::test_data("models/stories260K-chat");
  EngineSetup setup;
  setup.model = models::load_model(folder, {});
  setup.tokenizer = text::Tokenizer::load(folder);
  setup.config.max_model_len = setup.config.max_num_batched_tokens = 64;
  std::vector<Request> requests(5);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = std::string("Once upon a time");
    requests[i].sampling.max_tokens = 20, requests[i].sampling.temperature = 0, requests[i].sampling.ignore_eos = true;
    requests[i].sampling.output_kind = OutputKind::final_only;
  }
  requests[1].sampling.max_tokens = 4;  // ends where its text is finished alone
  requests[2].sampling.extra_args.set("num_beams", Value::integer(2));
  requests[3].sampling.detokenize = false;
  requests[4].sampling.max_tokens = 1;  // ends before
  std::vector<std::string> alone;
  for (const Request& request : requests) {
    StepEngine engine(setup);
    alone.push_back(answers(engine, {request}).at(0));
  }
  for (const bool overlaps : {false, true}) {
    const test::TemporaryFolder sockets;
    const std::string address = str("unix:", (sockets / "socket").string());
    int stop[2];
    ASSERT_EQ(::pipe(stop), 0);
    auto worker = std::make_unique<text::TokenizerWorker>(setup.tokenizer, address);
    std::thread thread([&] { worker->run(stop[0]); });
    EngineSetup own = setup;
    own.tokenizer = text::remote_tokenizer(setup.tokenizer, {.encoder = address, .decoder = address});
    own.config.overlap_execution = overlaps;
    StepEngine engine(own);
    std::map<size_t, RequestOutput> found;
    for (size_t i = 0; i < requests.size(); ++i)
      engine.add(requests[i], [&found, i](const RequestOutput& output) { found[i] = output; });
    for (int step = 0; step < 3; ++step) engine.step();
    EXPECT_EQ(::write(stop[1], "x", 1), 1);
    thread.join();
    worker.reset();
    ::close(stop[0]), ::close(stop[1]);
    while (engine.step()) {
    }
    const std::string lost = str("esurge.detokenizer_endpoint: the tokenizer at ", address,
                                 " cannot be reached: No such file or directory\n    start it again: easydel tokenize "
                                 "MODEL --serve ",
                                 address);
    for (const size_t i : {0, 1, 2}) EXPECT_EQ(found[i].error, lost) << i << overlaps;
    for (const size_t i : {3, 4}) EXPECT_EQ(bits_of(found[i]), alone[i]) << i << overlaps;
    EXPECT_THROW(engine.add(requests[0], {}), text::TokenizerLost);
    EXPECT_EQ(engine.metrics().running_requests, 0);
  }
}

}  // namespace
}  // namespace easydel::esurge
