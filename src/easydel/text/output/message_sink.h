// Collects the results of parsers. Holds white space back until it knows what follows, and remembers what it returned
// so that it can be withdrawn.
#pragma once

#include <string>
#include <string_view>

#include "easydel/text/output/output_parser.h"

namespace easydel::text {

class MessageSink {
 public:
  bool trims_before_calls = true;         // white space between content and a call is not content
  bool content_excludes_calls = false;    // an answer with a call has no content
  bool content_after_calls = false;       // text after a call is content, too
  bool content_may_be_reasoning = false;  // content_was_reasoning() may still be called
  bool certain = false;                   // take() holds back what might still be withdrawn

  // Content after a call is ignored (unless content_after_calls): formats allow only white space between and after
  // calls, and what models write there repeats the call.
  void content(std::string_view text);
  void reasoning(std::string_view text);
  void end_reasoning();  // drops white space at its end and before what follows
  void content_was_reasoning();

  void begin_call(std::string name, std::string id = "");
  void arguments(std::string_view json);
  void call_id(std::string_view id);  // if it comes after the name
  void end_call();
  void withdraw_call();  // the last call that began is not a call

  bool in_call() const { return in_call_; }
  size_t calls() const { return calls_; }
  void finish();
  Delta take();  // everything since the previous take()

 private:
  Delta::Call& current();
  void withdraw_content();
  Delta take_certain();
  Delta delta_;
  std::string held_, held_reasoning_, given_content_;
  size_t calls_ = 0;
  bool in_call_ = false, content_begun_ = false, reasoning_begun_ = false, skips_space_ = false, finished_ = false;
};

}  // namespace easydel::text
