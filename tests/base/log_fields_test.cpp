#include "easydel/base/log_fields.h"

#include <gtest/gtest.h>

#include <array>

#include "easydel/base/document.h"
#include "easydel/base/json_text.h"

namespace easydel::log {
namespace {

struct Logged {
  Logged() {
    set_sink([this](Level, std::string_view line) { last = line; });
  }
  ~Logged() {
    set_sink(nullptr);
    set_format(Format::text);
  }
  std::string last;
};

TEST(LogFields, AreWrittenAsTextAndAsJson) {
  Logged logged;
  const std::array fields = {Field{"id", "req-1"}, Field{"status", int64_t{200}}, Field{"seconds", 0.25},
                             Field{"model", "a b\n\"c\"=\x01\xff"}, Field{"key", ""}};
  write(Level::info, "request", fields);
  EXPECT_EQ(logged.last,
            "request id=req-1 status=200 seconds=0.25 model=\"a b\\n\\\"c\\\"=\\u0001\xef\xbf\xbd\" key=\"\"");
  set_format(Format::json);
  write(Level::warning, "two\nlines", fields);
  const Value line = parse_json(logged.last);
  EXPECT_EQ(logged.last.find('\n'), std::string::npos);
  EXPECT_EQ(line.find("level")->scalar, "warning");
  EXPECT_EQ(line.find("message")->scalar, "two\nlines");
  EXPECT_GT(*line.find("time")->as_int(), 1'600'000'000);
  EXPECT_EQ(line.find("id")->scalar, "req-1");
  EXPECT_EQ(line.find("status")->as_int(), 200);
  EXPECT_EQ(line.find("seconds")->as_double(), 0.25);
  EXPECT_EQ(line.find("model")->scalar, "a b\n\"c\"=\x01\xef\xbf\xbd");
  info("plain");
  EXPECT_EQ(parse_json(logged.last).find("message")->scalar, "plain");
}

TEST(LogFields, CannotForgeALine) {
  Logged logged;
  write(Level::info, "a\nb", std::array{Field{"x", "1\n2"}});
  EXPECT_EQ(logged.last, "a\\nb x=\"1\\n2\"");
}

TEST(JsonText, EscapesControlCharactersAndReplacesInvalidBytes) {
  EXPECT_EQ(json_text("a\"\\\b\f\n\r\t\x7f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
            "\"a\\\"\\\\\\u0008\\u000c\\n\\r\\t\\u007f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(json_text("\xff\xc3\xed\xa0\x80\xc0\xaf\xf4\x90\x80\x80"),
            "\"" + std::string(bad) + bad + bad + bad + bad + bad + bad + bad + bad + bad + bad + "\"");
}

}  // namespace
}  // namespace easydel::log
