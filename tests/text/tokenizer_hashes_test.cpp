// Ten thousand texts for each tokenizer, compared by one hash with the ids of the package for its file format
// (scripts/hash_tokenizers.py).
#include <gtest/gtest.h>

#include "easydel/base/document.h"
#include "easydel/base/files.h"
#include "easydel/text/tokenizers/tokenizer.h"
#include "easydel/text/unicode.h"
#include "support/data.h"

namespace easydel::text {
namespace {

class Texts {
 public:
  Texts() : fragments_(parse_json(files::read(test::test_data("tokenizers/fragments.json")))) {}

  std::string next() {
    std::string out;
    for (size_t parts = 1 + below(16); parts > 0; --parts) {
      const size_t kind = below(8);
      if (kind < 5) {
        const Value& of = *fragments_.find(kind < 3 ? "words" : "blanks");
        out += of.items[below(of.items.size())].scalar;
      } else if (kind < 7) {
        for (size_t count = 1 + below(6); count > 0; --count) append_utf8(out, character());
      } else {
        const char32_t one = character();
        for (size_t count = 1 + below(60); count > 0; --count) append_utf8(out, one);
      }
    }
    return out;
  }

 private:
  size_t below(size_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % n;
  }
  char32_t character() {
    const auto& ranges = fragments_.find("ranges")->items;
    const auto& range = ranges[below(ranges.size())].items;
    const auto low = static_cast<size_t>(*range[0].as_int()), high = static_cast<size_t>(*range[1].as_int());
    return static_cast<char32_t>(low + below(high - low));
  }
  Value fragments_;
  uint64_t state_ = 1;
};

std::string hash_of_ids(const Tokenizer& tokenizer, bool parse_special) {
  Texts texts;
  uint64_t value = 0xCBF29CE484222325u;
  for (int i = 0; i < 10000; ++i) {
    std::vector<TokenId> ids =
        tokenizer.encode(texts.next(), {.add_special_tokens = false, .parse_special = parse_special});
    ids.push_back(-1);
    for (TokenId id : ids)
      for (int shift = 0; shift < 32; shift += 8)
        value = (value ^ (static_cast<uint32_t>(id) >> shift & 0xff)) * 0x100000001B3u;
  }
  char out[17];
  std::snprintf(out, sizeof out, "%016lx", static_cast<unsigned long>(value));
  return out;
}

TEST(TokenizerHashes, OfSmallTokenizersAreThoseOfThePackage) {
  for (auto& [name, hash] : parse_json(files::read(test::test_data("tokenizers/hashes.json"))).entries)
    EXPECT_EQ(hash_of_ids(*Tokenizer::load(test::test_data("tokenizers/" + name + ".json.gz")), true), hash.scalar)
        << name;
}

TEST(TokenizerHashes, OfTheFamiliesAreThoseOfThePackage) {
  auto root = test::shared_data("tokenizers");
  if (!root) GTEST_SKIP() << "no shared data";
  for (auto& [name, hash] : parse_json(files::read(test::test_data("tokenizers/hashes_shared.json"))).entries) {
    const bool finds_special = name.find("tokenizer.json") != std::string::npos;
    EXPECT_EQ(hash_of_ids(*Tokenizer::load(*root / name), finds_special), hash.scalar) << name;
  }
}

}  // namespace
}  // namespace easydel::text
