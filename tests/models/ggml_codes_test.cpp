// Q8_0, Q4_0, Q4_1 and K-quants of GGUF files as codes: their values, and what a model does with them. ggml's own
// values are in tests/data/weights/ggml_blocks.gguf.
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "easydel/models/model.h"
#include "easydel/quant/coded_folder.h"
#include "easydel/quant/file_format.h"
#include "easydel/quant/quantize.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/gguf.h"
#include "easydel/weights/gguf_rows.h"
#include "easydel/weights/gguf_write.h"
#include "support/data.h"

namespace easydel::models {
namespace {

using weights::GgmlType;

// Where a block has its scale and its offset (-1: none), and a size of scales that gives small weights.
struct BlockHead {
  int64_t scale, offset;
  uint16_t size;
};
BlockHead head_of(GgmlType type) {
  switch (type) {
    case GgmlType::q8_0:
      return {0, -1, 0x0c00};
    case GgmlType::q4_1:
      return {0, 2, 0x1800};
    case GgmlType::q2_k:
      return {80, 82, 0x1400};
    case GgmlType::q3_k:
      return {108, -1, 0x1000};
    case GgmlType::q4_k:
    case GgmlType::q5_k:
      return {0, 2, 0x0400};
    case GgmlType::q6_k:
      return {208, -1, 0x0200};
    default:
      return {0, -1, 0x1800};
  }
}

// A model of two layers whose matrices are blocks of random codes. Scales of Q4_0 have both signs.
struct BlocksModel {
  test::TemporaryFolder folder;
  std::filesystem::path file = folder / "model.gguf";
  weights::GgufWriter out;
  std::mt19937 random{7};

  explicit BlocksModel(GgmlType type, const std::string& architecture = "llama", uint16_t first_scale = 0) {
    const bool large = weights::form_of(type).elements == 256;
    const int64_t hidden = large ? 256 : 64, inner = large ? 256 : 96, vocabulary = 96;
    out.text("general.architecture", architecture);
    for (const auto& [key, value] : std::vector<std::pair<const char*, int64_t>>{{"context_length", 64},
                                                                                 {"embedding_length", hidden},
                                                                                 {"block_count", 2},
                                                                                 {"feed_forward_length", inner},
                                                                                 {"attention.head_count", 4},
                                                                                 {"attention.head_count_kv", 2}})
      out.integer(architecture + "." + key, value);
    out.number(architecture + ".attention.layer_norm_rms_epsilon", 1e-5);
    matrix("token_embd.weight", type, vocabulary, hidden);
    matrix("output.weight", type, vocabulary, hidden);
    norm("output_norm.weight", hidden);
    for (const std::string layer : {"blk.0.", "blk.1."}) {
      norm(layer + "attn_norm.weight", hidden);
      norm(layer + "ffn_norm.weight", hidden);
      if (architecture == "qwen3")
        norm(layer + "attn_q_norm.weight", hidden / 4), norm(layer + "attn_k_norm.weight", hidden / 4);
      matrix(layer + "attn_q.weight", type, hidden, hidden);
      matrix(layer + "attn_k.weight", type, hidden / 2, hidden);
      matrix(layer + "attn_v.weight", type, hidden / 2, hidden);
      matrix(layer + "attn_output.weight", type, hidden, hidden);
      matrix(layer + "ffn_gate.weight", type, inner, hidden, first_scale);
      matrix(layer + "ffn_up.weight", type, inner, hidden);
      matrix(layer + "ffn_down.weight", type, hidden, inner);
    }
    out.write(file);
  }

  void norm(const std::string& name, int64_t size) {
    const std::vector<float> ones(size_t(size), 1.0f);
    out.tensor(name, GgmlType::f32, {size},
               [ones](const auto& sink) { sink(ones.data(), ones.size() * sizeof(float)); });
  }
  void matrix(const std::string& name, GgmlType type, int64_t rows, int64_t columns, uint16_t first_scale = 0) {
    const weights::GgmlForm& form = weights::form_of(type);
    const BlockHead head = head_of(type);
    std::string bytes(size_t(rows * columns / form.elements) * form.bytes, '\0');
    for (char& byte : bytes) byte = char(random());
    for (size_t block = 0; block < bytes.size(); block += form.bytes) {
      // Of Q4 between 2^-9 and 2^-7, of bytes an eighth of it; an offset of -8 to -4 times as much.
      const auto scale = uint16_t(head.size + random() % 0x800 + (type == GgmlType::q4_0 ? random() % 2 << 15 : 0));
      const bool is_minimum = form.elements == 256;  // which is taken away
      const auto offset = uint16_t((is_minimum ? 0 : 0x8000u) + (scale & 0x7fffu) + 0x800u);
      std::memcpy(bytes.data() + block + head.scale, block == 0 && first_scale ? &first_scale : &scale, 2);
      if (head.offset >= 0) std::memcpy(bytes.data() + block + head.offset, &offset, 2);
    }
    out.tensor(name, type, {rows, columns}, [bytes](const auto& sink) { sink(bytes.data(), bytes.size()); });
  }
};

Tensor logits(const Model& model) {
  const at::NoGradGuard no_gradient;
  nn::Pass pass = nn::Pass::over({0, 40});
  return model.head().logits(model.forward({at::arange(40, at::TensorOptions().dtype(at::kLong))}, pass).hidden, pass);
}

std::shared_ptr<Model> loaded(const std::filesystem::path& model, DTypeSetting dtype = DTypeSetting::fp32) {
  LoadOptions options;
  options.dtype = dtype;
  return load_model(model, options);
}

class GgmlCodes : public testing::TestWithParam<GgmlType> {};

TEST_P(GgmlCodes, DecodeToTheBitsOfGgml) {
  const auto file = weights::GgufFile::open(test::test_data("weights/ggml_blocks.gguf"));
  const std::string name(weights::form_of(GetParam()).name);
  weights::TensorView view = file->view(*file->find(name));
  const weights::TensorView right = file->view(*file->find(name + ".values"));
  view.shape = {2, view.elements() / 2};
  ASSERT_TRUE(quant::is_blocks_of_codes(view));
  const auto weight = std::make_shared<quant::CodedWeight>();
  weight->shape = view.shape;
  quant::set_blocks(*weight, {view});
  const Tensor found = quant::values_of(weight).contiguous();
  ASSERT_EQ(found.nbytes(), right.bytes.size());
  EXPECT_EQ(std::memcmp(found.const_data_ptr(), right.bytes.data(), right.bytes.size()), 0);
}

// Also of queries and keys, whose rows lie in another order in a file of llama.
TEST_P(GgmlCodes, StandForTheValuesOfEveryWeight) {
  for (const char* const architecture : {"llama", "qwen3"}) {
    const BlocksModel model(GetParam(), architecture);
    const weights::ConfigFile config = weights::read_config(model.file);
    const quant::CodedFolder folder = quant::open_coded(model.file, config.document, config.where);
    EXPECT_EQ(folder.all_codes().size(), 16u);
    for (const auto& [name, weight] : folder.all_codes()) {
      const weights::TensorView view = folder.folder().at(name);
      std::vector<float> wanted(size_t(view.elements()));
      weights::decode(*view.blocks, view.bytes.data(), wanted.data(), view.elements());
      const Tensor found = quant::values_of(weight).contiguous();
      EXPECT_EQ(std::memcmp(found.const_data_ptr(), wanted.data(), found.nbytes()), 0) << architecture << " " << name;
    }
  }
}

// In bf16 codes of four bits are multiplied before their scale is applied.
TEST_P(GgmlCodes, AreKeptAndGiveTheLogitsOfTheirValues) {
  const BlocksModel model(GetParam());
  for (const DTypeSetting dtype : {DTypeSetting::fp32, DTypeSetting::bf16}) {
    const auto kept = loaded(model.file, dtype);
    int64_t in_codes = 0;
    for (const nn::Entry& entry : kept->parameters().entries()) {
      in_codes += entry.shard.defined() ? 0 : 1;
      EXPECT_EQ(entry.shard.defined(), entry.path.find("norm") != std::string::npos || entry.path.find("embed") < 99)
          << entry.path;
    }
    EXPECT_EQ(in_codes, 15);
    save_model(*kept, model.folder / "values");
    const auto plain = loaded(model.folder / "values", dtype);
    for (const nn::Entry& entry : plain->parameters().entries()) EXPECT_TRUE(entry.shard.defined()) << entry.path;
    const Tensor found = logits(*kept).to(at::kFloat), wanted = logits(*plain).to(at::kFloat);
    const bool by_codes = GetParam() == GgmlType::q4_0 || GetParam() == GgmlType::q4_1 || GetParam() == GgmlType::q4_k;
    if (dtype == DTypeSetting::bf16 && by_codes)
      EXPECT_LE((found - wanted).abs().max().item<double>(), 0.05 * wanted.abs().max().item<double>());
    else
      EXPECT_TRUE(found.equal(wanted));
    EXPECT_GT(wanted.abs().max().item<double>(), 0.01);
  }
}

TEST_P(GgmlCodes, AreDecodedWhereTheirValuesAreTrainedOrQuantized) {
  const BlocksModel model(GetParam());
  save_model(*loaded(model.file), model.folder / "values");
  LoadOptions options;
  options.training = true;
  const auto trained = load_model(model.file, options);
  for (const nn::Entry& entry : trained->parameters().entries())
    EXPECT_TRUE(entry.shard.defined() && entry.shard.requires_grad()) << entry.path;
  options.training = false;
  options.dtype = DTypeSetting::fp32;
  options.quantization = nn::Quantization{.format = quant::format_of({.method = "nf4"}, "quantization"),
                                          .linear_pattern = ".*",
                                          .where = "quantization.model"};
  EXPECT_TRUE(logits(*load_model(model.file, options)).equal(logits(*load_model(model.folder / "values", options))));
}

TEST_P(GgmlCodes, AreBasesOfAdapters) {
  const BlocksModel model(GetParam());
  LoadOptions options;
  options.training = true;
  options.adapters.emplace_back();
  options.adapters.back().config.target_modules = std::string("all-linear");
  const auto trained = load_model(model.file, options);
  nn::Pass pass = nn::Pass::over({0, 9});
  trained->forward({at::arange(9, at::TensorOptions().dtype(at::kLong))}, pass).hidden.sum().backward();
  int64_t with_gradient = 0;
  for (const nn::Entry& entry : trained->parameters().entries())
    if (entry.shard.defined() && entry.shard.requires_grad()) {
      EXPECT_TRUE(entry.adapter && entry.shard.grad().defined()) << entry.path;
      ++with_gradient;
    }
  EXPECT_EQ(with_gradient, 28);
}

TEST_P(GgmlCodes, RefuseScalesThatAreNotFinite) {
  const BlocksModel model(GetParam(), "llama", 0x7e00);
  EXPECT_EQ(test::replaced(test::refusal([&] { loaded(model.file); }), model.folder.path().string(), "F"),
            "F/model.gguf: model.layers.0.mlp.gate_proj.weight: scale 0 is nan\n    a scale is a finite number; fetch "
            "the file again");
}

INSTANTIATE_TEST_SUITE_P(Gguf, GgmlCodes,
                         testing::Values(GgmlType::q8_0, GgmlType::q4_0, GgmlType::q4_1, GgmlType::q2_k, GgmlType::q3_k,
                                         GgmlType::q4_k, GgmlType::q5_k, GgmlType::q6_k),
                         [](const auto& info) { return std::string(weights::form_of(info.param).name); });

}  // namespace
}  // namespace easydel::models
