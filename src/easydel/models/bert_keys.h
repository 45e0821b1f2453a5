// What BERT and the families that kept its shape read of config.json.
#pragma once

#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models {

struct BertDefaults {
  std::string stack;  // "bert": what the stack's names begin with
  int64_t vocabulary = 30522, padding = 0;
  bool skips_padding = false;  // positions count what is not padding, from the padding's id on
};

// The stack (arXiv 1810.04805): learned positions and kinds of tokens, a norm behind each residual sum. No head.
DecoderSpec read_bert(const ConfigReader& config, const BertDefaults& defaults);

// Heads of classes: what all encoders share. UserError where a question's answer would have more than its two ends.
nn::ClassHeadSpec read_encoder_classes(const ConfigReader& config, double dropout, double deviation);
// classifier_dropout, else hidden_dropout_prob.
double read_classifier_dropout(const ConfigReader& config);

// What stands behind the stack: names, from the model's root.
struct BertHeads {
  std::string dense, norm, decoder, shared_bias;  // of the masked language head
  bool activated_as_stack = false;                // that head's activation; else gelu
  // Of sequence classification; without a dense layer of its own it reads the stack's pooler.
  std::string sequence_dense = "", sequence_output = "classifier";
};
std::unique_ptr<Model> build_bert(const ConfigReader& config, nn::Building& building, const BertDefaults& defaults,
                                  const BertHeads& heads);

// RoBERTa under the name `model_type`: XLM-RoBERTa is the same with another vocabulary.
std::unique_ptr<Model> build_roberta(const ConfigReader& config, nn::Building& building, int64_t vocabulary);
// What its checkpoints hold, under that name; `build` says the vocabulary.
Family roberta_family(std::string_view model_type, decltype(Family::build) build);

}  // namespace easydel::models
