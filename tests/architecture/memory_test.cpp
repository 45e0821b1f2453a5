// Only nn::Pass and the memories behind it know where a token's keys, values and states are stored: no other file of
// the layers and families names a page, a table or nn::Memory.
#include <gtest/gtest.h>

#include "architecture/source.h"

namespace easydel::test {
namespace {

const std::regex knows(R"(\b(nn::Memory|class Memory|Memory[&*]|KeyPages|PagePool|page_tokens|page_stride)\b|)"
                       R"(\b(take_states|put_states|gather_pages|write_pages|cache_slots)\b|)"
                       R"((\.|->)(memory|tables|ranges)\b)");
const std::regex may(R"(nn/(pass[a-z_]*|stream|memory|cache|page_pool|page_layout|page_storage)\.(h|cpp)$)");

TEST(Memory, IsCalledOnlyByThePass) {
  EXPECT_TRUE(std::regex_search("on.memory->length(s)", knows) && std::regex_search("pass.stream().memory", knows));
  EXPECT_TRUE(std::regex_search("void f(nn::Memory& m)", knows) && std::regex_search("x.page_tokens", knows));
  EXPECT_FALSE(std::regex_search("memory.beta = at::sigmoid(b);", knows));
  EXPECT_TRUE(std::regex_search("src/easydel/nn/pass_rows.cpp", may));
  EXPECT_FALSE(std::regex_search("src/easydel/nn/mla.cpp", may));
  for (const char* folder : {"src/easydel/nn", "src/easydel/models"})
    for (const SourceFile& file : source_files(folder, {".h", ".cpp"})) {
      if (std::regex_search(file.path, may)) continue;
      size_t number = 0;
      for (const std::string& line : file.lines()) {
        ++number;
        EXPECT_FALSE(std::regex_search(line, knows)) << file.path << ":" << number << ": " << line;
      }
    }
}

// A layer requests what it needs by name, and a token's computation depends on its span: no layer asks a stream whether
// there is a cache.
TEST(Memory, IsNotAskedForByLayers) {
  for (const SourceFile& file : source_files("src/easydel", {".h", ".cpp"})) {
    if (std::regex_search(file.path, may)) continue;
    for (const char* stream : {"stream()", "stream(\"text\")", " on", "(on", "!on", " stream", "!stream"})
      for (const char* member : {".memory", ".cache"})
        EXPECT_EQ(file.text.find(std::string(stream) + member), std::string::npos)
            << file.path << ": " << stream << member;
  }
}

}  // namespace
}  // namespace easydel::test
