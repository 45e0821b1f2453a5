// One answer to a conversation in a form of its own, streamed or whole: both are made of the same pieces by the same
// code, so they cannot differ.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "easydel/server/answer_job.h"
#include "easydel/server/chat_reader.h"

namespace easydel::server {

class SingleAnswer : public AnswerWriter {
 public:
  SingleAnswer(std::shared_ptr<const ChatReading> reading, bool streamed, std::vector<Header> headers);

  void begin(Call& call) final;
  void add(Call& call, size_t index, const esurge::RequestOutput& output, const TokenUsage& usage) final;
  void end(Call& call, const TokenUsage& usage) final;
  void fail(Call& call, const ApiError& error) final;

 protected:
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
  bool streamed_;
  std::vector<Header> headers_;
};

}  // namespace easydel::server
