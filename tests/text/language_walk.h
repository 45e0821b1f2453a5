// Walks through languages of text/constrain, byte by byte, for tests.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/text/constrain/constraint.h"
#include "easydel/text/constrain/stacks.h"

namespace easydel::test {

using text::constrain::Language;
using text::constrain::Position;
using text::constrain::Stacks;

// Whether the text is one of the language, or the beginning of one.
enum class Reading { accepted, begun, refused };
inline Reading read(const Language& language, std::string_view text) {
  const auto automaton = text::constrain::compile(language);
  Stacks stacks(*automaton);
  Position at = stacks.begin(), next;
  for (const char byte : text) {
    stacks.step(at, uint8_t(byte), next);
    if (next.dead()) return Reading::refused;
    std::swap(at, next);
  }
  return at.may_end ? Reading::accepted : Reading::begun;
}

// Random bytes that the language allows, until it has to end or may and does.
inline std::string random_text(const Language& language, std::mt19937& random, std::string_view begin = "") {
  const auto automaton = text::constrain::compile(language);
  Stacks stacks(*automaton);
  Position at = stacks.begin(), next;
  std::string out;
  while (out.size() < 4000) {
    if (at.may_end && (at.configs.empty() || random() % 2 == 0)) return out;
    std::vector<uint8_t> bytes;
    if (out.size() < begin.size()) {
      bytes = {uint8_t(begin[out.size()])};
    } else {
      for (int byte = 0; byte < 256; ++byte) {
        stacks.step(at, uint8_t(byte), next);
        if (!next.dead()) bytes.push_back(uint8_t(byte));
      }
    }
    if (bytes.empty()) break;
    const uint8_t byte = bytes[random() % bytes.size()];
    stacks.step(at, byte, next);
    EXPECT_FALSE(next.dead()) << out;
    std::swap(at, next);
    out += char(byte);
  }
  ADD_FAILURE() << "no end: " << out;
  return out;
}

}  // namespace easydel::test
