#include "easydel/models/bert_keys.h"

#include <cmath>

#include "easydel/base/error.h"
#include "easydel/models/decoder_parts.h"
#include "easydel/models/heads.h"

namespace easydel::models {

DecoderSpec read_bert(const ConfigReader& config, const BertDefaults& defaults) {
  if (config.boolean("add_cross_attention", false))
    config.refuse_key("add_cross_attention", "cross attention is not built for this family");
  DecoderSpec spec;
  spec.names = {.base = defaults.stack,
                .embedding = "embeddings.word_embeddings",
                .positions = "embeddings.position_embeddings",
                .layers = "encoder.layer",
                .token_types = "embeddings.token_type_embeddings",
                .embedding_norm = "embeddings.LayerNorm",
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
  spec.token_types = read_size(config, "type_vocab_size", 2);
  spec.max_positions = read_size(config, "max_position_embeddings", 512);
  spec.padding = read_padding(config, defaults.padding, spec.vocabulary);
  spec.learned_positions = true;
  if (defaults.skips_padding) {
    if (spec.padding < 0) config.refuse_key("pad_token_id", "is null", "positions of this family are counted from it");
    if (spec.max_positions <= spec.padding + 1)
      config.refuse_key("max_position_embeddings",
                        str(spec.max_positions, " leaves no position behind pad_token_id, ", spec.padding));
    spec.positions_skip_id = spec.padding;
    spec.position_offset = spec.padding + 1;
    spec.max_positions -= spec.position_offset;
  }
  spec.layers.resize(size_t(read_size(config, "num_hidden_layers", 12)));
  for (DecoderLayerSpec& layer : spec.layers) layer.scale = std::pow(double(spec.head_dim), -0.5);
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = config.number("layer_norm_eps", 1e-12)};
  spec.embedding_norm = spec.norm;
  read_activation(config, "hidden_act", "gelu", spec);
  spec.qkv_bias = spec.output_bias = spec.mlp_bias = true;
  spec.gated = false;
  spec.tied = config.boolean("tie_word_embeddings", true);
  spec.embedding_dropout = spec.residual_dropout = config.number("hidden_dropout_prob", 0.1);
  spec.attention_dropout = config.number("attention_probs_dropout_prob", 0.1);
  spec.deviation = spec.output_deviation = config.number("initializer_range", 0.02);
  // The feed-forward weights stand in the block itself, under no name of their own.
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
