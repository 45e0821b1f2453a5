// The keys of config.json that BERT and the families of its shape share.
#pragma once

#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models {

struct BertDefaults {
  std::string stack;  // "bert": prefix of the stack's names
  int64_t vocabulary = 30522, padding = 0;
  bool skips_padding = false;  // positions start after the padding id and do not count padding
};

// The stack (arXiv 1810.04805): learned positions, token types, a norm after each residual sum. No head.
DecoderSpec read_bert(const ConfigReader& config, const BertDefaults& defaults);

// The classification heads of encoders. UserError if question answering has other than two labels.
nn::ClassHeadSpec read_encoder_classes(const ConfigReader& config, double dropout, double deviation);
// classifier_dropout, else hidden_dropout_prob.
double read_classifier_dropout(const ConfigReader& config);

// Names of the heads, from the model's root.
struct BertHeads {
  std::string dense, norm, decoder, shared_bias;  // of the masked language head
  bool activated_as_stack = false;                // its activation is the stack's; else gelu
  // Of sequence classification; without a dense layer of its own it reads the stack's pooler.
  std::string sequence_dense = "", sequence_output = "classifier";
};
std::unique_ptr<Model> build_bert(const ConfigReader& config, nn::Building& building, const BertDefaults& defaults,
                                  const BertHeads& heads);

// RoBERTa under the name `model_type`: XLM-RoBERTa is the same with another vocabulary.
std::unique_ptr<Model> build_roberta(const ConfigReader& config, nn::Building& building, int64_t vocabulary);
// The family under that name; `build` says the vocabulary.
Family roberta_family(std::string_view model_type, decltype(Family::build) build);

}  // namespace easydel::models
