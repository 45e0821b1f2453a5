// Masks over the vocabularies of every kind of tokenizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/text/constrain/constraint.h"
#include "easydel/text/unicode.h"
#include "json_check.h"
#include "support/data.h"

namespace easydel::text::constrain {
namespace {

using Kind = Language::Kind;

const std::vector<std::string>& tokenizer_names() {
  static const std::vector<std::string> names = {
      "cl100k.json.gz",           "falcon_like.json.gz",   "prepend_fallback.json.gz", "metaspace_first.json.gz",
      "clip_like.json.gz",        "prefixed_bpe.json.gz",  "word_piece.json.gz",       "word_level.json.gz",
      "unigram_charsmap.json.gz", "unigram_bytes.json.gz", "unigram_1000.model.gz"};
  return names;
}

std::shared_ptr<const Tokenizer> load(const std::string& name) {
  if (!name.ends_with(".model.gz")) return Tokenizer::load(test::test_data("tokenizers/" + name));
  const auto folder = test::TemporaryFolder();
  const auto file = folder.path() / "tokenizer.model";
  files::write(file, files::read_compressed(test::test_data("tokenizers/" + name)));
  return Tokenizer::load(file);
}

TEST(TokenBytes, AddUpToWhatTheTokenizerDecodes) {
  std::mt19937 random(3);
  for (const std::string& name : tokenizer_names()) {
    const auto tokenizer = load(name);
    size_t compared = 0;
    for (int i = 0; i < 400; ++i) {
      std::vector<TokenId> ids;
      std::string sum;
      TextPlace place = TextPlace::start;
      for (size_t length = 1 + random() % 6; ids.size() < length;) {
        ids.push_back(static_cast<TokenId>(random() % static_cast<uint32_t>(tokenizer->id_limit())));
        const auto bytes = tokenizer->bytes_of(ids.back(), place);
        if (!bytes && !tokenizer->is_special(ids.back())) {
          ids.pop_back();  // what it adds depends on its neighbours: no mask ever has it
          continue;
        }
        sum += bytes.value_or("");
      }
      if (valid_prefix(sum) != sum.size()) continue;  // the decoder would replace half characters
      ++compared;
      ASSERT_EQ(sum, tokenizer->decode(ids, true, false)) << name;
    }
    EXPECT_GT(compared, 150u) << name;
  }
}

// A text that is written by random tokens of the masks. Nothing: it was cut, or no token could go on.
std::optional<std::string> walk(const std::shared_ptr<const Constraint>& constraint, std::mt19937& random, bool plainly,
                                size_t most = 120) {
  Matcher matcher(constraint);
  const TokenBytes& tokens = constraint->tokens();
  std::vector<MaskWord> mask(mask_words(tokens.size())), plain(mask.size());
  std::vector<TokenId> ids, allowed, closing;
  while (ids.size() < most) {
    matcher.fill(mask);
    if (plainly) {
      matcher.fill_plainly(plain);
      EXPECT_EQ(mask, plain) << tokens.tokenizer().decode(ids, true, false);
    }
    allowed.clear(), closing.clear();
    for (TokenId id = 0; id < tokens.size(); ++id) {
      if (!has_token(mask, id)) continue;
      allowed.push_back(id);
      TextPlace place = matcher.place();
      if (tokens.bytes(id, place).find_first_of("\"}]") != std::string_view::npos) closing.push_back(id);
    }
    // What the mask lacks is not taken.
    for (int i = 0; i < 5; ++i) {
      const auto id = static_cast<TokenId>(random() % static_cast<uint32_t>(tokens.size()));
      EXPECT_EQ(Matcher(matcher).accept(id), has_token(mask, id)) << id;
    }
    if (allowed.empty()) return std::nullopt;
    EXPECT_EQ(has_token(mask, tokens.ends()[0]), matcher.may_end());
    const auto pick = [&](const std::vector<TokenId>& from) { return from[random() % from.size()]; };
    const bool hurry = ids.size() > most / 3;
    const TokenId id = matcher.may_end() && (hurry || random() % 3 == 0) ? tokens.ends()[0]
                       : hurry && !closing.empty()                       ? pick(closing)
                                                                         : pick(allowed);
    EXPECT_TRUE(matcher.accept(id)) << id;
    if (matcher.ended()) return tokens.tokenizer().decode(ids, true, false);
    ids.push_back(id);
  }
  return std::nullopt;
}

// An end token that no text has: the tokenizers of the tests have none of their own.
std::shared_ptr<const TokenBytes> tokens_of(const std::shared_ptr<const Tokenizer>& tokenizer) {
  const TokenId end = tokenizer->id_limit();
  return std::make_shared<const TokenBytes>(tokenizer, std::vector{end}, end + 1);
}

TEST(ConstrainMask, HasExactlyTheTokensThatLeadOn) {
  const std::vector<Language> languages = {
      {Kind::json_object},
      {Kind::regex, "[a-z ]+( (one|two) \\p{L}+)?[.!]*"},
      {Kind::json_schema,
       R"({"type":"object","properties":{"the":{"type":"string","maxLength":6},"of":{"type":"array","items":{"type":"integer","maximum":31}}},"required":["the"]})"},
      {Kind::grammar, "root ::= item (\" \" item)*\nitem ::= [a-e]+ | \"(\" root \")\" | \"the \" item"}};
  std::mt19937 random(5);
  for (const std::string& name : tokenizer_names()) {
    const auto tokens = tokens_of(load(name));
    for (const Language& language : languages) {
      const auto constraint = std::make_shared<const Constraint>(compile(language), tokens);
      for (int i = 0; i < 2; ++i) walk(constraint, random, true, 40);
      const auto prepared = std::make_shared<const Constraint>(compile(language), tokens);
      Matcher(prepared, TextPlace::inside).learn_ahead(false, 0.02);
      EXPECT_GT(prepared->known_states(), 0u);
      walk(prepared, random, true, 40);
    }
  }
}

TEST(ConstrainMask, IsTheSameWhileAnotherThreadLearnsAhead) {
  const auto tokens = tokens_of(load("cl100k.json.gz"));
  std::mt19937 random(6);
  for (int i = 0; i < 3; ++i) {
    const auto constraint = std::make_shared<const Constraint>(compile({Kind::json_object}), tokens);
    std::atomic<bool> stop = false;
    std::thread other([&] { Matcher(constraint, TextPlace::inside).learn_ahead(stop, 10); });
    walk(constraint, random, true, 20);
    stop = true;
    other.join();
  }
}

TEST(ConstrainMask, LearnsNothingAheadOnceItIsToStop) {
  const auto constraint =
      std::make_shared<const Constraint>(compile({Kind::json_object}), tokens_of(load("cl100k.json.gz")));
  Matcher(constraint).learn_ahead(true);
  EXPECT_EQ(constraint->known_states(), 0u);
  Matcher(constraint).learn_ahead(false, 0);
  EXPECT_EQ(constraint->known_states(), 0u);
}

TEST(ConstrainMask, IsTheSameWhenWhatWasLearnedIsForgotten) {
  std::mt19937 random(8);
  for (const std::string name : {"cl100k.json.gz", "unigram_bytes.json.gz"}) {
    const auto tokens = tokens_of(load(name));
    const auto automaton = compile({Kind::json_object});
    const auto whole = std::make_shared<const Constraint>(automaton, tokens);
    Matcher(whole, TextPlace::inside).learn_ahead(false, 10);
    const size_t before = Constraint(automaton, tokens).memory_bytes(), learned = whole->memory_bytes() - before;
    ASSERT_GT(learned, 100000u);
    const auto bounded = std::make_shared<const Constraint>(automaton, tokens, learned / 12);
    Matcher(bounded, TextPlace::inside).learn_ahead(false, 10);
    EXPECT_LT(bounded->known_states(), whole->known_states());
    size_t most = 0, forgotten = 0, states = 0;
    std::vector<MaskWord> mask(mask_words(tokens->size()));
    for (int i = 0; i < 10; ++i) {
      walk(bounded, random, true, 40);
      Matcher matcher(bounded);
      for (const char byte : std::string(R"({"a":[1,"b",{"c":-2.5e3}],"d":null,"e":[true,[]]})")) {
        matcher.fill(mask);
        most = std::max(most, bounded->memory_bytes() - before);
        forgotten += bounded->known_states() < states;
        states = bounded->known_states();
        ASSERT_TRUE(matcher.accept_bytes({&byte, 1}));
      }
    }
    EXPECT_LE(most, learned / 12) << name;
    EXPECT_GT(forgotten, 0u) << name;
  }
}

// Tokens that are text may end a text too, as requests can ask for.
TEST(ConstrainMask, HasEndsOnlyWhereTheTextMayEnd) {
  const auto tokenizer = load("cl100k.json.gz");
  const auto ids = tokenizer->encode("a", {.add_special_tokens = false});
  ASSERT_EQ(ids.size(), 1u);
  const auto plain = tokens_of(tokenizer);
  const auto ending = std::make_shared<const TokenBytes>(*plain, ids);
  EXPECT_TRUE(ending->shares_tokens_with(*plain));
  EXPECT_EQ(ending->ends(), ids);
  const auto automaton = compile({Kind::regex, "ab+|b+"});
  Matcher free(std::make_shared<const Constraint>(automaton, plain));
  Matcher matcher(std::make_shared<const Constraint>(automaton, ending));
  std::vector<MaskWord> mask(mask_words(plain->size()));
  free.fill(mask);
  EXPECT_TRUE(has_token(mask, ids[0]));
  matcher.fill(mask);
  EXPECT_FALSE(has_token(mask, ids[0])) << "it would end a text that may not end yet";
  matcher.fill_plainly(mask);
  EXPECT_FALSE(has_token(mask, ids[0]));
  EXPECT_FALSE(matcher.accept(ids[0]));
  EXPECT_TRUE(matcher.accept_bytes("b"));
  matcher.fill(mask);
  EXPECT_TRUE(has_token(mask, ids[0]));
  EXPECT_FALSE(has_token(mask, plain->ends()[0])) << "another constraint's end";
  EXPECT_TRUE(matcher.accept(ids[0]));
  EXPECT_TRUE(matcher.ended());
}

std::string random_schema(std::mt19937& random, int depth = 0) {
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<uint32_t>(limit)); };
  const auto next = [&] { return random_schema(random, depth + 1); };
  switch (below(depth < 2 ? 11 : 6)) {
    case 0:
      return R"({"type":"string"})";
    case 1:
      return str(R"({"type":"string","minLength":)", below(3), R"(,"maxLength":)", 3 + below(4), "}");
    case 2:
      return str(
          R"({"type":"string","pattern":")",
          std::vector<std::string>{"^[a-z]+$", "[0-9]{2}", "^(foo|bar)?-x", "a.c"}[static_cast<size_t>(below(4))],
          "\"}");
    case 3:
      return str(R"({"type":"integer","minimum":)", below(30) - 20, R"(,"maximum":)", 12 + below(2000), "}");
    case 4:
      return str(R"({"type":"number","exclusiveMinimum":)", below(30) - 20, ".5}");
    case 5:
      return R"({"enum":[1,"two",null,true,{"a":[1.5]},"\u00e9\"\\"]})";
    case 6:
      return str(R"({"anyOf":[)", next(), ",", next(), "]}");
    case 7:
      return str(R"({"type":"array","items":)", next(), R"(,"minItems":)", below(3), R"(,"maxItems":)", 2 + below(3),
                 "}");
    case 8:
      return str(R"({"type":"array","prefixItems":[)", next(), R"(],"items":)", next(), "}");
    case 9:
      return str(R"({"allOf":[{"type":["integer","null"],"multipleOf":)", 1 + below(9), R"(},{"maximum":500}]})");
    default:
      break;
  }
  return str(R"({"type":"object","properties":{"a":)", next(), R"(,"x y":)", next(), R"(,"\u00e9":)", next(),
             R"(},"required":["x y")", below(2) ? ",\"other\"" : "", R"(],"additionalProperties":)",
             below(2) ? "true" : next(), R"(,"maxProperties":)", 3 + below(2), "}");
}

// 500 walks in all; what was finished is valid by a second opinion. EASYDEL_WALKS=200 walks 50 times for each of so
// many schemas with each tokenizer, or with that of EASYDEL_WALKS_TOKENIZER alone; EASYDEL_WALKS_SEED: of other ones.
TEST(ConstrainMask, GivesOnlyTextsThatTheSchemaAccepts) {
  const char *const asked = std::getenv("EASYDEL_WALKS"), *const file = std::getenv("EASYDEL_WALKS_TOKENIZER");
  std::vector<std::string> names = {"cl100k.json.gz", "falcon_like.json.gz", "prepend_fallback.json.gz",
                                    "unigram_bytes.json.gz", "unigram_1000.model.gz"};
  if (asked) names = file ? std::vector<std::string>{file} : tokenizer_names();
  const int schemas = asked ? std::atoi(asked) : 20, walks = asked ? 50 : 5;
  const char* const seed = std::getenv("EASYDEL_WALKS_SEED");
  std::mt19937 random(seed ? unsigned(std::atoi(seed)) : 11);
  size_t finished = 0;
  for (const std::string& name : names) {
    const auto tokens = tokens_of(asked && file ? Tokenizer::load(file) : load(name));
    const size_t before = finished;
    for (int i = 0; i < schemas; ++i) {
      const std::string schema = random_schema(random);
      const Value parsed = parse_json(schema);
      const auto constraint = std::make_shared<const Constraint>(compile({Kind::json_schema, schema}), tokens);
      for (int j = 0; j < walks; ++j) {
        const auto text = walk(constraint, random, false);
        if (!text) continue;
        ++finished;
        try {
          EXPECT_TRUE(test::is_valid(parsed, parse_json(*text))) << name << "\n" << schema << "\n" << *text;
        } catch (const UserError& error) {
          // Only names that come twice are refused by the reader and accepted by the language.
          EXPECT_NE(std::string(error.what()).find("twice"), std::string::npos) << *text << "\n" << error.what();
        }
      }
    }
    if (asked) std::printf("%s: %zu walks came to their end\n", name.c_str(), finished - before);
  }
  EXPECT_GT(finished, asked ? 0u : 350u);
}

TEST(ConstrainMask, LetsSpecialTokensIntoFreeTextAndTakesThemAsMarkers) {
  const auto tokenizer = load("cl100k.json.gz");
  std::vector<TokenId> special;
  for (TokenId id = 0; id < tokenizer->id_limit(); ++id)
    if (tokenizer->is_special(id)) special.push_back(id);
  ASSERT_GE(special.size(), 2u);
  const auto tokens = tokens_of(tokenizer);
  const auto constraint = std::make_shared<const Constraint>(
      compile({Trigger{tokenizer->token_of(special[0]), {Kind::choice, "", {"abc"}}}}), tokens);
  std::vector<MaskWord> mask(mask_words(tokens->size()));
  Matcher matcher(constraint);
  matcher.fill(mask);
  EXPECT_TRUE(has_token(mask, special[0]) && has_token(mask, special[1]) && has_token(mask, tokens->ends()[0]));
  EXPECT_TRUE(matcher.accept(special[1]));
  EXPECT_TRUE(matcher.accept_bytes("free"));
  EXPECT_TRUE(matcher.accept(special[0]));
  matcher.fill(mask);
  EXPECT_FALSE(has_token(mask, special[0]) || has_token(mask, special[1]) || has_token(mask, tokens->ends()[0]));
  EXPECT_FALSE(matcher.accept(special[1]));
  EXPECT_FALSE(matcher.accept_bytes("x"));
  EXPECT_TRUE(matcher.accept_bytes("abc"));
  EXPECT_TRUE(matcher.accept(special[1]));
  EXPECT_TRUE(matcher.accept_bytes("free again"));
}

TEST(ConstrainMask, TakesTheSpecialTokenThatAGrammarNames) {
  const auto tokenizer = load("cl100k.json.gz");
  TokenId special = 0;
  while (!tokenizer->is_special(special)) ++special;
  const std::string spelled = tokenizer->token_of(special);
  ASSERT_TRUE(spelled.starts_with('<') && spelled.ends_with('>')) << spelled;
  const auto tokens = tokens_of(tokenizer);
  const std::string grammar = "root ::= \"a\" " + spelled + " \"b\"";
  const auto constraint = std::make_shared<const Constraint>(compile({Kind::grammar, grammar}), tokens);
  std::vector<MaskWord> mask(mask_words(tokens->size()));
  Matcher matcher(constraint);
  EXPECT_FALSE(matcher.accept(special));
  EXPECT_TRUE(matcher.accept_bytes("a"));
  matcher.fill(mask);
  EXPECT_TRUE(has_token(mask, special));
  EXPECT_TRUE(matcher.accept(special));
  EXPECT_TRUE(matcher.accept_bytes("b"));
  EXPECT_TRUE(matcher.must_end());
}

TEST(ConstrainMask, KeepsTheSameFramesForSequencesOfAnyLength) {
  const auto tokens = tokens_of(load("cl100k.json.gz"));
  Matcher matcher(std::make_shared<const Constraint>(compile({Kind::json_object}), tokens));
  ASSERT_TRUE(matcher.accept_bytes("{\"a\":[1"));
  for (int i = 0; i < 20000; ++i) ASSERT_TRUE(matcher.accept_bytes(i % 3 ? ",[[2]]" : ",{\"b\":[null]}"));
  EXPECT_TRUE(matcher.accept_bytes("]}"));
  EXPECT_TRUE(matcher.must_end());
}

}  // namespace
}  // namespace easydel::text::constrain
