// The chat page: nothing from outside, a policy that allows its own script alone, and Markdown that stays text.
#include "easydel/server/chat_page.h"

#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <array>

#include "easydel/server/embedding_json.h"
#include "support/data.h"

namespace easydel::server {
namespace {

std::string between(std::string_view text, std::string_view open, std::string_view close) {
  const size_t begin = text.find(open) + open.size();
  return std::string(text.substr(begin, text.find(close, begin) - begin));
}

TEST(ChatPage, LoadsNothingFromOutside) {
  const std::string page(chat_page_source());
  EXPECT_LT(page.size(), 80000u);
  for (const char* word : {"http://", "src=", "@import", "url(", "innerHTML", "outerHTML", "insertAdjacentHTML",
                           "document.write", "eval(", "onclick", "style=\""})
    EXPECT_EQ(page.find(word), std::string::npos) << word;
  EXPECT_EQ(page.find("<script>"), page.rfind("<script"));
  EXPECT_EQ(page.find("<style>"), page.rfind("<style"));
}

TEST(ChatPage, AllowsItsOwnScriptAlone) {
  const HttpResponse page = chat_page();
  const auto header = [&](std::string_view name) {
    for (const Header& one : page.headers)
      if (one.name == name) return one.value;
    return std::string();
  };
  const std::string script = between(page.body, "<script>", "</script>");
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(script.data()), script.size(), digest.data());
  const std::string hash = base64({reinterpret_cast<const char*>(digest.data()), digest.size()});
  const std::string policy = header("Content-Security-Policy");
  EXPECT_EQ(policy.substr(0, policy.find("; style-src")), "default-src 'none'; script-src 'sha256-" + hash + "'");
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
  EXPECT_NE(policy.find("frame-ancestors 'none'"), std::string::npos);
  EXPECT_EQ(header("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(header("Referrer-Policy"), "no-referrer");
}

TEST(ChatPage, ShowsWhatModelsWriteAsText) {
  if (test::run({"sh", "-c", "command -v node"}).status != 0) GTEST_SKIP() << "no node";
  const auto ran = test::run({"node", (test::source_root() / "tests/server/chat_page_check.mjs").string(),
                              (test::source_root() / "src/easydel/server/page/chat.html").string()});
  EXPECT_EQ(ran.status, 0) << ran.out;
  EXPECT_EQ(ran.out, "180 payloads, 0 wrong\n");
}

}  // namespace
}  // namespace easydel::server
