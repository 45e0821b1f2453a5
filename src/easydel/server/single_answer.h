// One answer to a conversation in a form of its own, streamed or whole: both are made of the same pieces by the same
// code, so they cannot differ.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/server/answer_job.h"
#include "easydel/server/chat_reader.h"
#include "easydel/server/prompt_tokens.h"

namespace easydel::server {

class SingleAnswer : public AnswerWriter {
 public:
  SingleAnswer(std::shared_ptr<const ChatReading> reading, const GenerationFields& fields, std::vector<Header> headers);

  void begin(Call& call) final;
  void add(Call& call, size_t index, const esurge::RequestOutput& output, const TokenUsage& usage) final;
  void end(Call& call, const TokenUsage& usage) final;
  void fail(Call& call, const ApiError& error) final;

 protected:
  // Members of the object about the tokens of prompt and answer, each with a comma before it; empty: none were asked
  // for.
  std::string token_members() const;

  // The form. Events are not sent if the answer is not streamed.
  virtual std::string begin_events() = 0;
  virtual std::string piece_events(const ChatPiece& piece) = 0;
  virtual std::string end_events(const TokenUsage& usage) = 0;
  virtual std::string fail_events(const Call& call, const ApiError& error) = 0;
  virtual std::string object() const = 0;
  virtual bool fails_with_object() const { return false; }  // what is there is an answer in spite of the error

 private:
  void respond(Call& call);

  ChatReader reader_;
  PromptTokens prompt_;
  std::vector<esurge::TokenLogprobs> prompt_logprobs_;
  std::optional<std::vector<int32_t>> token_ids_;  // of the answer
  bool streamed_;
  std::vector<Header> headers_;
};

}  // namespace easydel::server
