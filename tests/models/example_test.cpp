// The example of docs/adding_a_model.md is tests/models/example.cpp: it compiles, and the model that it builds runs.
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "easydel/models/family.h"
#include "support/data.h"

namespace easydel::models {

namespace zoo::example {
Family family();
}

namespace {

TEST(AddingAModel, ShowsTheExampleThatIsCompiledHere) {
  const std::string page = test::read_file(test::source_root() / "docs/adding_a_model.md");
  std::string wanted = "```cpp\n" + test::read_file(test::source_root() / "tests/models/example.cpp") + "```\n";
  EXPECT_NE(page.find(wanted), std::string::npos);
}

TEST(AddingAModel, BuildsAModelThatRuns) {
  const Value config =
      parse_json(R"({"model_type": "example", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 24,
    "num_hidden_layers": 2, "num_attention_heads": 2, "sliding_window": 3, "final_logit_softcapping": 2.0})",
                 "config.json");
  nn::ParameterTable table;
  nn::Building building{table, at::kFloat, collective::Team::alone(), {}, {}, {}, {}, {}};
  building.fill = [](nn::Entry& entry, const nn::Initial&, const std::vector<nn::TensorSource>&) {
    entry.shard = at::arange(entry.elements(), at::TensorOptions().dtype(at::kFloat)).sin().view(entry.shape);
  };
  const auto model = zoo::example::family().build(ConfigReader(config, FilePlace{"config.json"}), building);
  const at::NoGradGuard no_gradient;
  nn::Pass pass = nn::Pass::over({0, 5});
  const Tensor logits =
      model->head().logits(model->forward({at::arange(5, at::TensorOptions().dtype(at::kLong))}, pass).hidden, pass);
  EXPECT_EQ(logits.sizes(), (std::vector<int64_t>{5, 32}));
  EXPECT_LE(logits.abs().max().item<double>(), 2.0);
  EXPECT_NE(table.find("model.layers.1.input_layernorm.bias"), nullptr);
}

}  // namespace
}  // namespace easydel::models
