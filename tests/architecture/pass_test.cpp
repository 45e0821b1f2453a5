// nn::Pass owns its parts (the streams, the randomness, the activations) and adds what needs several of them. A new
// question of a layer belongs to one of the parts.
#include <gtest/gtest.h>

#include <set>

#include "architecture/source.h"

namespace easydel::test {
namespace {

// Names of the public members of a class whose public part comes first; overloads count once, constructors do not.
std::set<std::string> public_members(const std::string& header, const std::string& name) {
  const size_t begin = header.find("class " + name + " {\n public:\n"), end = header.find("\n private:\n", begin);
  EXPECT_TRUE(begin != std::string::npos && end != std::string::npos) << name;
  std::string text = header.substr(begin, end - begin);
  text = text.substr(text.find(" public:\n") + 9);
  text = std::regex_replace(text, std::regex("//[^\n]*"), "");
  std::set<std::string> out;
  // Bodies of functions, innermost first: what stays is a list of declarations.
  const std::regex body(R"(\{[^{}]*\})"), declared(R"(^[^=(]*?([A-Za-z_]\w*)\s*(\(|=|$))");
  while (std::regex_search(text, body)) text = std::regex_replace(text, body, ";");
  std::smatch found;
  for (size_t at = 0, stop; (stop = text.find(';', at)) != std::string::npos; at = stop + 1) {
    const std::string line = std::regex_replace(text.substr(at, stop - at), std::regex(R"(\s+)"), " ");
    if (std::regex_search(line, found, declared) && found[1] != name) out.insert(found[1]);
  }
  return out;
}

TEST(Pass, HasFewMembersOfItsOwn) {
  const std::string example = R"(class Example {
 public:
  Example();
  int size() const { return f({1}); }  // a comment; with a semicolon
  template <class T>
  T make(int a = 3);
  std::map<int, int> table = {};
  int size(int other);

 private:
  int hidden_;
};
)";
  EXPECT_EQ(public_members(example, "Example"), (std::set<std::string>{"size", "make", "table"}));
  const auto files = source_files("src/easydel/nn", {"pass.h"});
  ASSERT_EQ(files.size(), 1u);
  const auto members = public_members(files[0].text, "Pass");
  EXPECT_TRUE(members.contains("attend") && members.contains("attention") && members.contains("stream"));
  std::string all;
  for (const std::string& member : members) all += " " + member;
  EXPECT_LE(members.size(), 12u) << "put a new member into nn::Stream, nn::Randomness or nn::Activations:" << all;
}

}  // namespace
}  // namespace easydel::test
