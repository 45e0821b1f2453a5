// Where parsers put what they found. It holds white space back until it is known what follows, and remembers what was
// given out so that it can be taken back.
#pragma once

#include <string>
#include <string_view>

#include "easydel/text/output_parser.h"

namespace easydel::text {

class MessageSink {
 public:
  bool trims_before_calls = true;       // white space between content and a call is none of the content
  bool content_excludes_calls = false;  // an answer with a call has no content at all
  bool content_after_calls = false;     // what follows a call is content too

  // Once there is a call, content is passed over (unless content_after_calls): what formats allow between and behind
  // calls is white space, and what models write there repeats the call.
  void content(std::string_view text);
  void reasoning(std::string_view text);
  void end_reasoning();  // white space at its end, and before what follows, is dropped
  void content_was_reasoning();

  void begin_call(std::string name, std::string id = "");
  void arguments(std::string_view json);
  void call_id(std::string_view id);  // where it comes after the name
  void end_call();
  void withdraw_call();  // what began last is no call

  bool in_call() const { return in_call_; }
  size_t calls() const { return calls_; }
  void finish();
  Delta take();  // everything since the last time

 private:
  Delta::Call& current();
  Delta delta_;
  std::string held_, held_reasoning_, given_content_;
  size_t calls_ = 0;
  bool in_call_ = false, content_begun_ = false, reasoning_begun_ = false, skips_space_ = false;
};

}  // namespace easydel::text
