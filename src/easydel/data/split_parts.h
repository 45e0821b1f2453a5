// `split` of an inform: a split, a slice of one, or several joined by +, as Hugging Face's `datasets` reads them:
// train, train[:10%], train[100:200]+validation (datasets/arrow_reader.py, ReadInstruction).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace easydel::data {

struct SplitPart {
  struct Boundary {
    int64_t value = 0;  // negative: from the end
    bool percent = false;
  };
  // How percents become rows: the closest row, or multiples of rows / 100, rounded down (pct1_dropremainder).
  enum class Rounding : uint8_t { closest, dropremainder };

  std::string split;  // "train"
  std::optional<Boundary> from, to;
  Rounding rounding = Rounding::closest;

  bool is_slice() const { return from || to; }
  // Whether the slice depends on how many rows there are.
  bool needs_count() const;
  // The rows [first, last) of a split of `rows` rows. `rows` does not matter if needs_count() is false.
  struct Range {
    int64_t first = 0, last = 0;
  };
  Range range(int64_t rows) const;
};

// UserError: it is not of this form, a percentage is beyond 100, or boundaries of one slice have two units.
std::vector<SplitPart> split_parts(std::string_view split, const std::string& where);

}  // namespace easydel::data
