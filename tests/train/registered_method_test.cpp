// A method that is registered at run time: the trainer does what the method states. The file's name ensures that tests
// of messages that list all methods run before it.
#include "easydel/train/method.h"

#include <gtest/gtest.h>

#include <ATen/ops/zeros.h>

#include "easydel/config/tables.h"
#include "train/small_run.h"

namespace easydel::train {

// Keys of a method that only exists here.
struct CountingConfig {
  int64_t continued = 3;

  static constexpr MethodFacts facts{.rows = {data::RowKind::text}, .samples = true};
  static constexpr auto doc = "Learns texts with continuations of its own.";
  template <class C>
  static constexpr auto fields() {
    return std::array{config::field<&C::continued>("Tokens of a continuation.")};
  }
};

namespace {

using test::LogLines, test::TemporaryFolder;
using Ids = std::vector<int32_t>;

// Records of the method of the last run. The plan builds others.
struct Seen {
  std::vector<Ids> examples;
  int64_t restored = -1;
  bool sampler = false;
} seen;

// Learns each text with a continuation, and counts its steps in a tensor and in a document.
class Counting final : public Method {
 public:
  explicit Counting(const Setting& setting) : config_(setting.trainer.own_as<CountingConfig>()) {}

  data::Prepared prepare(const data::TypedRow& row) const override {
    data::Prepared out;
    Ids ids{1};
    for (const char c : row.text.scalar.substr(0, 8)) ids.push_back(100 + c % 32);
    out.example.emplace().add_sequence(ids);
    return out;
  }

  std::unique_ptr<BatchSource> source(std::unique_ptr<BatchSource> rows, const Sampler* sampler) override;

  Batch collate(std::span<const data::Example* const> examples) const override {
    Batch batch = flat_batch(examples);
    batch.weight = static_cast<double>(batch.labelled);
    return batch;
  }
  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    nn::Pass pass;
    const auto [hidden, labels] = labelled_rows(forwarding.run(model, batch, pass).hidden, batch, pass);
    return {-model.head().score(hidden, labels, pass, {}).logps.sum(), {}};
  }
  void updated(const models::Model&, int64_t) override { steps_ += 1; }

  MethodState state() const override {
    MethodState out;
    out.tensors.push_back({"counting.steps", steps_});
    out.document = Value::integer(steps_.item<int64_t>());
    return out;
  }
  void restore(const SavedState& saved) override {
    EXPECT_TRUE(saved.has("counting.steps") && !saved.has("counting.other"));
    EXPECT_EQ(saved.tensor("counting.steps").item<int64_t>(), saved.document().as_int());
    saved.copy_into(steps_, "counting.steps");
    seen.restored = steps_.item<int64_t>();
  }

 private:
  CountingConfig config_;
  Tensor steps_ = at::zeros({1}, at::kLong);
};

class Continued final : public BatchSource {
 public:
  Continued(std::unique_ptr<BatchSource> rows, const Sampler& sampler, int64_t tokens)
      : rows_(std::move(rows)), sampler_(sampler) {
    config_.max_new_tokens = tokens;
  }
  int64_t steps_in_epoch() const override { return rows_->steps_in_epoch(); }
  Value cursor(int64_t step) const override { return rows_->cursor(step); }
  std::string fingerprint() const override { return rows_->fingerprint(); }
  std::vector<MicroBatch> step(int64_t step) override {
    std::vector<MicroBatch> out = rows_->step(step);
    examples_.clear();
    for (MicroBatch& micro : out)
      for (const data::Example*& example : micro) {
        Ids ids = example->tokens;
        const Ids more = sampler_.run({ids}, config_).at(0);
        ids.insert(ids.end(), more.begin(), more.end());
        examples_.push_back(std::make_unique<data::Example>());
        examples_.back()->add_sequence(ids);
        seen.examples.push_back(ids);
        example = examples_.back().get();
      }
    return out;
  }

 private:
  std::unique_ptr<BatchSource> rows_;
  const Sampler& sampler_;
  generation::GenerationConfig config_;
  std::vector<std::unique_ptr<data::Example>> examples_;
};

std::unique_ptr<BatchSource> Counting::source(std::unique_ptr<BatchSource> rows, const Sampler* sampler) {
  seen = {};
  seen.sampler = sampler != nullptr;
  return std::make_unique<Continued>(std::move(rows), *sampler, config_.continued);
}

std::unique_ptr<Method> build_counting(const Setting& setting) { return std::make_unique<Counting>(setting); }

void register_counting() {
  if (!find_method_config("counting")) register_method(method_config<CountingConfig>("counting"), build_counting);
}

TEST(Methods, OneThatIsRegisteredReadsItsKeysAndItsNameIsTaken) {
  register_counting();
  TrainerSection trainer;
  config::read(parse_yaml("{trainer_type: counting, continued: 5}"), trainer).throw_if_any();
  EXPECT_EQ(trainer.own_as<CountingConfig>().continued, 5);
  EXPECT_EQ(test::refusal([] { register_method(method_config<CountingConfig>("sft"), build_counting); }),
            "trainer_type: 'sft' already exists\n    give the method a name of its own");
  const auto names = methods();
  EXPECT_TRUE(std::ranges::is_sorted(names, {}, &MethodEntry::name));
  EXPECT_TRUE(std::ranges::is_sorted(method_configs(), {}, &MethodConfig::name));
}

// Its examples contain continuations of the step's weights, and its state is restored from the checkpoint.
TEST(Methods, OneThatSamplesLearnsFromItsOwnSourceAndItsStateIsSaved) {
  register_counting();
  const TemporaryFolder folder;
  const LogLines log;
  const std::string keys = "{trainer_type: counting, total_batch_size: 2, learning_rate: 0.05, ";
  const auto run = [&](int64_t steps, const std::string& name) {
    Trainer trainer(
        test::small_run(folder.path(), keys + str("max_training_steps: ", steps, ", model_name: ", name, "}")));
    trainer.run();
    return test::weights_of(trainer.model());
  };
  const std::string whole = run(3, "whole");
  EXPECT_TRUE(seen.sampler);
  EXPECT_EQ(seen.restored, -1);
  ASSERT_EQ(seen.examples.size(), 6u);
  const std::vector<Ids> all = seen.examples;
  EXPECT_GT(all[0].size(), 9u);
  run(2, "cut");
  EXPECT_TRUE(run(3, "cut") == whole);
  EXPECT_EQ(seen.restored, 2);
  EXPECT_EQ(seen.examples, std::vector<Ids>(all.begin() + 4, all.end()));
}

// A method gets a sampler only if it says that it samples.
TEST(Methods, OthersKeepTheSourceOfTheRows) {
  const TemporaryFolder folder;
  const LogLines log;
  TrainerParts parts = test::small_run(folder.path());
  const auto method = build_method({parts.trainer, parts.mixture, parts.tokenizer, nullptr});
  auto source = std::make_unique<DatasetSource>(build_dataset(parts.trainer, parts.mixture, parts.tokenizer), 4, 1);
  BatchSource* const rows = source.get();
  EXPECT_EQ(method->source(std::move(source), nullptr).get(), rows);
  EXPECT_TRUE(method->state().tensors.empty() && method->state().document.is_null());
}

}  // namespace
}  // namespace easydel::train
