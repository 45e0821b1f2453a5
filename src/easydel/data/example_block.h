// Consecutive examples in a few flat arrays: 2 or 4 bytes a token and a bit for its label. Memory and files hold
// examples in this form; an Example is made of it when it is asked for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "easydel/data/example.h"

namespace easydel::data {

// What the labels of an example are, where a token has one. Other labels are exceptions.
enum class LabelRule : uint8_t {
  next,  // the example's next token
  same   // the token itself
};

// A column of a block. Examples without it have zeros in `values`, and a 0 in `present`.
struct BlockColumn {
  std::string name;
  Column::Per per = Column::Per::example;
  std::variant<std::span<const float>, std::span<const int64_t>> values;
  std::span<const uint8_t> present;  // [examples]
};

// Views of the arrays; who made it says who owns them. Readers in several threads are allowed.
struct BlockView {
  // [tokens]; one of the two, and the narrow one if all ids fit.
  std::span<const uint16_t> narrow_tokens;
  std::span<const uint32_t> wide_tokens;
  std::span<const uint8_t> learned;            // [tokens / 8, rounded up] bits, the lowest first: the token has a label
  std::span<const uint32_t> token_offsets;     // [examples + 1]
  std::span<const uint32_t> sequence_offsets;  // [examples + 1]
  std::span<const int32_t> lengths;            // [sequences]
  std::span<const uint8_t> rules;              // [examples], LabelRule
  // [exceptions], in the order of their places, which count the block's tokens.
  std::span<const uint32_t> exception_places;
  std::span<const int32_t> exception_labels;
  std::vector<BlockColumn> columns;

  int64_t size() const { return int64_t(rules.size()); }
  int64_t tokens_of(int64_t example) const;
  // How many of the example's tokens [begin, end) have a label.
  int64_t labels_of(int64_t example, int64_t begin, int64_t end) const;
  Example at(int64_t example) const;
  // Tokens [begin, end) of an example as one sequence, with the columns of its tokens; the other columns are whole.
  Example slice(int64_t example, int64_t begin, int64_t end) const;

 private:
  int32_t token(size_t place) const;
  bool has_label(size_t place) const { return learned[place / 8] >> (place % 8) & 1; }
  void read(int64_t example, int64_t begin, int64_t end, Example& out) const;
};

// Of a sequence of examples: their tokens, labels, lengths and weights. Equal for equal ones.
struct ExampleDigest {
  uint64_t value = 0xcbf29ce484222325;
  void add(const Example& example);
  void add(uint64_t word) { value = (value ^ word) * 0x100000001b3; }
  std::string text() const;  // 16 hex digits
};

// A block that grows, and owns its arrays.
class ExampleBlock {
 public:
  static constexpr size_t tokens_in_memory = size_t{1} << 20;
  explicit ExampleBlock(size_t tokens = tokens_in_memory);  // that fill it
  // Bug: a column of this name has had other numbers.
  void add(const Example& example);
  bool is_full() const;
  int64_t size() const { return int64_t(rules_.size()); }
  // Gives back what the arrays do not need. Nothing may be added afterwards.
  void seal();
  BlockView view() const;  // after seal()

 private:
  struct OwnColumn {
    std::string name;
    Column::Per per;
    std::variant<std::vector<float>, std::vector<int64_t>> values;
    std::vector<uint8_t> present;
  };
  void add_labels(const Example& example);
  void add_columns(const Example& example);

  size_t capacity_;
  std::vector<uint32_t> wide_;
  std::vector<uint16_t> narrow_;
  uint32_t largest_token_ = 0;
  std::vector<uint8_t> learned_;
  std::vector<uint32_t> token_offsets_{0}, sequence_offsets_{0};
  std::vector<int32_t> lengths_;
  std::vector<uint8_t> rules_;
  std::vector<uint32_t> exception_places_;
  std::vector<int32_t> exception_labels_;
  std::vector<OwnColumn> columns_;
};

}  // namespace easydel::data
