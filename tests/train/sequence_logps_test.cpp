#include "easydel/train/sequence_logps.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::train {
namespace {

using Ids = std::vector<int32_t>;
using Learn = std::vector<uint8_t>;

// The sums of a batch of several sequences are those of each alone, and only labelled tokens count.
TEST(SequenceScores, AreThoseOfEachSequenceAlone) {
  const auto model = models::load_model(test::test_data("models/stories260K-hf"), {});
  const c10::AutoGradMode no_grad(false);
  std::vector<data::Example> examples(2);
  examples[0].add_sequence(Ids{1, 403, 407, 261},
                           Learn{0, 0, 1, 1});  // a pair: the last two tokens of each are answers
  examples[0].add_sequence(Ids{1, 403, 378, 31, 300}, Learn{0, 0, 0, 1, 1});
  examples[1].add_sequence(Ids{1, 410, 300});
  examples[1].add_sequence(Ids{1, 400});
  const data::Example* const both[] = {&examples[0], &examples[1]};
  const Batch batch = flat_batch(both);
  Forwarding forwarding;
  forwarding.training = false;
  const SequenceScores scores = score_sequences(*model, batch, forwarding, {});
  const Tensor sums = scores.sums(scores.logps);
  ASSERT_EQ(sums.size(0), 4);
  const std::vector<std::vector<int64_t>> rows = {{1, 403, 407, 261}, {1, 410, 300}, {1, 403, 378, 31, 300}, {1, 400}};
  const std::vector<int64_t> answers = {2, 2, 2, 1};
  for (size_t i = 0; i < rows.size(); ++i) {
    const Tensor tokens = at::tensor(at::IntArrayRef(rows[i]), at::kLong);
    nn::Pass pass = nn::Pass::over({0, tokens.size(0)});
    const Tensor logps = model->head().logits(model->forward({tokens}, pass).hidden, pass).log_softmax(-1);
    const Tensor of_next = logps.slice(0, 0, -1).gather(1, tokens.slice(0, 1).unsqueeze(1)).squeeze(1);
    EXPECT_EQ(scores.lengths[long(i)].item<double>(), double(answers[i])) << i;
    EXPECT_NEAR(sums[long(i)].item<double>(), of_next.slice(0, -answers[i]).sum().item<double>(), 1e-4) << i;
  }
}

}  // namespace
}  // namespace easydel::train
