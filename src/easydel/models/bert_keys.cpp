#include "easydel/models/bert_keys.h"

#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/models/heads.h"

namespace easydel::models {
namespace {

// Sum of the embeddings of tokens, positions and token types, normalized.
class BertEmbedding final : public DecoderEmbedding {
 public:
  // offset: row of position 0. If above 0, positions count tokens without padding, and padding uses the frozen row
  // before position 0.
  BertEmbedding(const nn::Scope& scope, const DecoderSpec& spec, int64_t token_types, int64_t offset)
      : padding_(spec.padding),
        offset_(offset),
        table_(scope / "word_embeddings", spec.vocabulary, spec.hidden, spec.deviation, nn::Split::vocabulary,
               spec.padding),
        positions_(scope / "position_embeddings", spec.max_positions + offset, spec.hidden, spec.deviation,
                   nn::Split::none, offset - 1),
        token_types_(scope / "token_type_embeddings", token_types, spec.hidden, spec.deviation, nn::Split::none),
        norm_(scope / "LayerNorm", spec.hidden, spec.norm) {}

  Tensor operator()(const Inputs& inputs, nn::Pass& pass) const override {
    const Tensor types = inputs.token_types.defined() ? inputs.token_types : at::zeros_like(inputs.tokens);
    const nn::Stream& stream = pass.stream();
    const Tensor positions =
        offset_ > 0 ? counted_positions(inputs.tokens.ne(padding_).to(at::kLong), stream) : stream.positions;
    return norm_(table_(inputs.tokens, pass) + token_types_(types, pass) + positions_(positions + offset_, pass));
  }
  nn::Parameter table() const override { return table_.weight(); }

 private:
  int64_t padding_, offset_;
  nn::Embedding table_, positions_, token_types_;
  nn::Norm norm_;
};

}  // namespace

DecoderSpec read_bert(const ConfigReader& config, const BertDefaults& defaults) {
  if (config.boolean("add_cross_attention", false))
    config.refuse_key("add_cross_attention", "cross attention is not built for this family");
  DecoderSpec spec;
  spec.names = {.base = defaults.stack,
                .layers = "encoder.layer",
                .norm = "",
                .before_mixer = "",
                .after_mixer = "attention.output.LayerNorm",
                .before_feed = "",
                .after_feed = "output.LayerNorm",
                .attention = "attention",
                .q = "self.query",
                .k = "self.key",
                .v = "self.value",
                .output = "output.dense",
                .mlp = "",
                .up = "intermediate.dense",
                .down = "output.dense"};
  spec.causal = config.boolean("is_decoder", false);
  spec.residual = Residual::norm_of_sum;
  spec.vocabulary = read_size(config, "vocab_size", defaults.vocabulary);
  spec.hidden = read_size(config, "hidden_size", 768);
  spec.heads = spec.kv_heads = read_size(config, "num_attention_heads", 12);
  spec.head_dim = head_size(config, "hidden_size", spec);
  spec.intermediate = read_size(config, "intermediate_size", 3072);
  const int64_t token_types = read_size(config, "type_vocab_size", 2);
  spec.max_positions = read_size(config, "max_position_embeddings", 512);
  spec.padding = read_padding(config, defaults.padding, spec.vocabulary);
  int64_t offset = 0;
  if (defaults.skips_padding) {
    if (spec.padding < 0) config.refuse_key("pad_token_id", "is null", "positions of this family are counted from it");
    if (spec.max_positions <= spec.padding + 1)
      config.refuse_key("max_position_embeddings",
                        str(spec.max_positions, " leaves no position after pad_token_id, ", spec.padding));
    offset = spec.padding + 1;
    spec.max_positions -= offset;
  }
  spec.embedding = [token_types, offset](const nn::Scope& base, const DecoderSpec& whole) {
    return std::make_unique<BertEmbedding>(base / "embeddings", whole, token_types, offset);
  };
  spec.layers.resize(size_t(read_size(config, "num_hidden_layers", 12)));
  for (DecoderLayerSpec& layer : spec.layers) layer.attention.scale = std::pow(double(spec.head_dim), -0.5);
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = config.number("layer_norm_eps", 1e-12)};
  read_activation(config, "hidden_act", "gelu", spec);
  spec.qkv_bias = spec.output_bias = spec.mlp_bias = true;
  spec.gated = false;
  spec.tied = config.boolean("tie_word_embeddings", true);
  spec.embedding_dropout = spec.residual_dropout = config.number("hidden_dropout_prob", 0.1);
  spec.attention_dropout = config.number("attention_probs_dropout_prob", 0.1);
  spec.deviation = spec.output_deviation = config.number("initializer_range", 0.02);
  // The feed-forward weights belong to the block itself, without a name of their own.
  const auto whole = std::make_shared<const DecoderSpec>(spec);
  for (DecoderLayerSpec& layer : spec.layers)
    layer.feed = [whole](const nn::Scope& block, int64_t index) { return build_feed(block, *whole, index); };
  return spec;
}

nn::ClassHeadSpec read_encoder_classes(const ConfigReader& config, double dropout, double deviation) {
  nn::ClassHeadSpec classes;
  classes.labels = read_labels(config);
  classes.dropout = dropout;
  classes.dense_deviation = classes.output_deviation = deviation;
  if (task_of(config) == Task::question_answering && classes.labels != 2)
    config.refuse_key(config.find("id2label") ? "id2label" : "num_labels",
                      str("names ", classes.labels, " labels; an answer has two, its first and its last token"));
  return classes;
}

double read_classifier_dropout(const ConfigReader& config) {
  return config.number("classifier_dropout", config.number("hidden_dropout_prob", 0.1));
}

std::unique_ptr<Model> build_bert(const ConfigReader& config, nn::Building& building, const BertDefaults& defaults,
                                  const BertHeads& heads) {
  DecoderSpec spec = read_bert(config, defaults);
  if (building.head.language) {
    spec.masked_head = {.dense = heads.dense,
                        .norm = heads.norm,
                        .decoder = heads.decoder,
                        .shared_bias = heads.shared_bias,
                        .activation = heads.activated_as_stack ? spec.activation : ops::Activation::gelu,
                        .norm_options = spec.norm,
                        .deviation = spec.deviation,
                        .output_deviation = spec.deviation};
    return build_decoder(std::move(spec), building);
  }
  const Task task = task_of(config);
  nn::ClassHeadSpec classes = read_encoder_classes(config, read_classifier_dropout(config), spec.deviation);
  const std::string pooler = building.head.stack_name(defaults.stack + ".pooler.dense");
  if (task == Task::base) {
    classes.dense = pooler;
  } else if (task == Task::sequence_classification) {
    classes.dense = heads.sequence_dense.empty() ? pooler : heads.sequence_dense;
    classes.dropout_before_dense = !heads.sequence_dense.empty();
    classes.output = heads.sequence_output;
  } else {
    classes.output = task == Task::question_answering ? "qa_outputs" : "classifier";
  }
  if (!classes.dense.empty()) classes.pooling = nn::Pooling::first;
  if (task == Task::base || task == Task::question_answering) classes.dropout = 0.0;
  spec.classes = std::move(classes);
  return build_decoder(std::move(spec), building);
}

std::unique_ptr<Model> build_roberta(const ConfigReader& config, nn::Building& building, int64_t vocabulary) {
  return build_bert(config, building,
                    {.stack = "roberta", .vocabulary = vocabulary, .padding = 1, .skips_padding = true},
                    {.dense = "lm_head.dense",
                     .norm = "lm_head.layer_norm",
                     .decoder = "lm_head.decoder",
                     .shared_bias = "lm_head.bias",
                     .sequence_dense = "classifier.dense",
                     .sequence_output = "classifier.out_proj"});
}

Family roberta_family(std::string_view model_type, decltype(Family::build) build) {
  return {.model_type = model_type,
          .base_prefix = "roberta",
          .ignored = {"embeddings.position_ids", "lm_head.decoder.weight", "lm_head.decoder.bias"},
          .build = build,
          .tied_by_default = true,
          .ignored_parts = {"pooler.dense"}};
}

}  // namespace easydel::models
