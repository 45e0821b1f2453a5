// A training method from outside the tree: the model continues prompts itself, and learns each token of its own
// completions as much as a teacher finds it likely.
#include "easydel/config/tables.h"
#include "easydel/data/encode.h"
#include "easydel/elarge/plugin.h"
#include "easydel/elarge/plugin_abi.h"
#include "easydel/train/method.h"

namespace data = easydel::data;
namespace models = easydel::models;
namespace train = easydel::train;

// Its keys and facts. Not in an unnamed namespace: the table of keys is made of the members' names.
struct TeacherWeightedConfig {
  int64_t max_prompt_length = 32;
  int64_t max_completion_length = 16;

  static constexpr train::MethodFacts facts{
      .rows = {data::RowKind::text}, .samples = true, .teacher = train::SideModelUse::required};

  static constexpr auto doc = "Learn one's own completions as a teacher weighs them.";
  template <class C>
  static constexpr auto fields() {
    using namespace easydel::config;
    return std::array{
        field<&C::max_prompt_length>("Tokens of a prompt.", at_least(1)),
        field<&C::max_completion_length>("Tokens of a completion.", at_least(1)),
    };
  }
};

namespace {

constexpr const char* teacher_logps = "teacher_logps";  // a column: of each learned token

class TeacherWeighted final : public train::Method {
 public:
  explicit TeacherWeighted(const train::Setting& setting)
      : config_(setting.trainer.own_as<TeacherWeightedConfig>()), teacher_(setting.side.teacher.model) {
    if (setting.tokenizer) encoder_.emplace(setting.tokenizer, data::EncoderOptions{.eos = {}, .append_eos = false});
  }

  data::Prepared prepare(const data::TypedRow& row) const override {
    std::vector<int32_t> ids = encoder_->encode(row).ids;
    data::Prepared out;
    if (const auto most = static_cast<size_t>(config_.max_prompt_length); ids.size() > most) {
      out.cut_tokens = static_cast<int64_t>(ids.size() - most);
      ids.resize(most);
    }
    out.example.emplace().add_sequence(ids, std::vector<uint8_t>(ids.size(), 0));
    return out;
  }

  std::unique_ptr<train::BatchSource> source(std::unique_ptr<train::BatchSource> rows,
                                             const train::Sampler* sampler) override;

  // A prompt with the model's completion of it, and what the teacher says of its tokens.
  data::Example example_of(const std::vector<int32_t>& prompt, const std::vector<int32_t>& completion) {
    ++completions_;
    std::vector<int32_t> ids = prompt;
    ids.insert(ids.end(), completion.begin(), completion.end());
    std::vector<uint8_t> learn(ids.size(), 1);
    std::fill_n(learn.begin(), prompt.size(), uint8_t{0});
    data::Example out;
    out.add_sequence(ids, learn);

    const c10::AutoGradMode no_grad(false);
    train::Forwarding how;
    how.training = how.metrics = false;
    const data::Example* const one = &out;
    const train::Batch batch = train::flat_batch({&one, 1});
    easydel::nn::Pass pass;
    const auto [hidden, labels] = train::labelled_rows(how.run(*teacher_, batch, pass).hidden, batch);
    const easydel::Tensor logps = teacher_->head().score(hidden, labels, pass, {}).logps.to(at::kCPU).contiguous();
    std::vector<float> column;
    int64_t next = 0;
    for (const int32_t label : out.labels)
      column.push_back(label == data::no_label ? 0.0f : logps.const_data_ptr<float>()[next++]);
    out.set({teacher_logps, data::Column::Per::token, std::move(column)});
    return out;
  }

  train::Batch collate(std::span<const data::Example* const> examples) const override {
    train::Batch batch = train::flat_batch(examples);
    batch.weight = static_cast<double>(batch.labelled);
    return batch;
  }

  train::Loss loss(const models::Model& model, const train::Batch& batch,
                   const train::Forwarding& forwarding) const override {
    easydel::nn::Pass pass;
    const auto [hidden, labels] = train::labelled_rows(forwarding.run(model, batch, pass).hidden, batch);
    const easydel::Tensor logps = model.head().score(hidden, labels, pass, {}).logps;
    const easydel::Tensor weights =
        batch.column(teacher_logps).masked_select(batch.labels.ne(data::no_label)).exp().to(logps.device());
    train::Loss out{-(logps * weights).sum(), {}};
    out.metrics.push_back({"teacher_probability", weights.sum().item<double>(), static_cast<double>(batch.labelled)});
    return out;
  }

  train::MethodState state() const override {
    train::MethodState out;
    out.document = easydel::Value::map();
    out.document.set("completions", easydel::Value::integer(completions_));
    return out;
  }
  void restore(const train::SavedState& saved) override {
    completions_ = saved.document().find("completions")->as_int().value();
  }

 private:
  TeacherWeightedConfig config_;
  std::shared_ptr<models::Model> teacher_;
  std::optional<data::Encoder> encoder_;
  int64_t completions_ = 0;  // of the run so far
};

// Micro-batches of completions instead of prompts.
class Completions final : public train::BatchSource {
 public:
  Completions(std::unique_ptr<train::BatchSource> prompts, const train::Sampler& sampler, TeacherWeighted& method,
              int64_t new_tokens)
      : prompts_(std::move(prompts)), sampler_(sampler), method_(method) {
    generation_.do_sample = true;
    generation_.max_new_tokens = new_tokens;
  }
  int64_t steps_in_epoch() const override { return prompts_->steps_in_epoch(); }
  easydel::Value cursor(int64_t step) const override { return prompts_->cursor(step); }
  std::string fingerprint() const override { return prompts_->fingerprint(); }

  std::vector<train::MicroBatch> step(int64_t step) override {
    generation_.seed = static_cast<uint64_t>(step);
    examples_.clear();
    std::vector<train::MicroBatch> out;
    for (const train::MicroBatch& micro : prompts_->step(step)) {
      std::vector<std::vector<int32_t>> prompts;
      for (const data::Example* prompt : micro) prompts.push_back(prompt->tokens);
      const auto completions = sampler_.run(prompts, generation_);
      out.emplace_back();
      for (size_t i = 0; i < prompts.size(); ++i) {
        examples_.push_back(std::make_unique<data::Example>(method_.example_of(prompts[i], completions[i])));
        out.back().push_back(examples_.back().get());
      }
    }
    return out;
  }

 private:
  std::unique_ptr<train::BatchSource> prompts_;
  const train::Sampler& sampler_;
  TeacherWeighted& method_;
  easydel::generation::GenerationConfig generation_;
  std::vector<std::unique_ptr<data::Example>> examples_;
};

std::unique_ptr<train::BatchSource> TeacherWeighted::source(std::unique_ptr<train::BatchSource> rows,
                                                            const train::Sampler* sampler) {
  return std::make_unique<Completions>(std::move(rows), *sampler, *this, config_.max_completion_length);
}

}  // namespace

extern "C" const char* easydel_plugin_abi() { return easydel::elarge::kPluginAbi; }

extern "C" void easydel_plugin(easydel::elarge::Registry& registry) {
  registry.add(train::method_config<TeacherWeightedConfig>("teacher_weighted"),
               [](const train::Setting& setting) -> std::unique_ptr<train::Method> {
                 return std::make_unique<TeacherWeighted>(setting);
               });
}
